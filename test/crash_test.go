package test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/test/devproc"
	"antipode/test/load"
	"antipode/test/rest"
)

// Of the crash test: the rounds `make test` plays, the variable that asks for
// another number, and what each round must have acknowledged before it is killed.
const (
	crashRounds         = 20
	crashRoundsVariable = "ANTIPODE_CRASH_ROUNDS"
	acksPerRound        = 500
	// roundWait bounds one round, from start to the last read at -secondary.
	roundWait = 3 * time.Minute
)

// Kill -9 of the process, again and again on one data folder, under 32 clients
// of inserts, merges, deletes, transactions, blobs small and of 4 MiB, metadata, and
// uploads in blocks, some of which are resumed after the kill: after each restart an
// oracle outside the process finds every acknowledged final value at the primary, by
// its name and in the listings, and then at -secondary; at no moment is a transaction
// split, does a block show that no list has committed, or does a listing lack what was
// acknowledged before it; and at no moment does the statistics' Last Sync Time claim
// what cannot be read there.
// It holds invariants 2 and 3 and 6.
//
// Capability: The primary location: Nothing acknowledged is lost.
// Capability: Two locations: Last Sync Time is true.
func TestCrash(t *testing.T) {
	rounds := crashRounds
	if s := os.Getenv(crashRoundsVariable); s != "" {
		var err error
		rounds, err = strconv.Atoi(s)
		require.NoError(t, err, crashRoundsVariable)
	}
	p := startDev(t)
	ctx, cancel := contextFor(t, time.Duration(rounds+1)*roundWait)
	defer cancel()
	l := load.New(p.Client(0, false), p.Client(0, true), load.Options{Seed: uint64(rounds)})
	require.NoError(t, l.Setup(ctx))
	watch := watching(ctx, l, l.Secondary)

	for round := range rounds {
		acked := crash(ctx, t, p, l)
		began := time.Now()
		p = launch(t, p.Config)
		ready := time.Since(began)
		require.NoError(t, l.Resolve(ctx), "round %d, at the primary", round)
		require.NoError(t, l.Final(ctx), "round %d, at -secondary", round)
		_, reads := watch.sampler.Counts()
		t.Logf("round %d: %d writes acknowledged, ready after %v, %d keys, %d demands of last sync time",
			round, acked, ready.Round(time.Millisecond), len(l.Oracle.Keys()), reads)
	}
	watch.stop(t)
	done := l.Done()
	t.Logf("in all: %v", done)
	for _, kind := range l.Kinds() {
		require.Positive(t, done[kind], "no %s", kind)
	}
}

// crash kills the server while clients write, some time after they have enough
// acknowledgements, and returns how many they had.
func crash(ctx context.Context, t *testing.T, p *devproc.Process, l *load.Load) int {
	t.Helper()
	before, _ := l.Oracle.Acks()
	running, halt := context.WithTimeout(ctx, roundWait/2)
	defer halt()
	done := make(chan error, 1)
	go func() { done <- l.Run(running) }()

	acked := 0
	for extra := time.Duration(rand.IntN(2000)) * time.Millisecond; ; {
		select {
		case err := <-done:
			require.NoError(t, err)
			t.Fatalf("only %d writes acknowledged in %v", acked, roundWait/2)
		case <-p.Exited():
			halt()
			t.Fatalf("the server exited by itself: %v", <-done)
		case <-time.After(poll):
		}
		n, _ := l.Oracle.Acks()
		if acked = n - before; acked >= acksPerRound {
			time.Sleep(extra)
			break
		}
	}
	require.NoError(t, p.Kill9())
	n, _ := l.Oracle.Acks()
	halt()
	require.NoError(t, <-done)
	return n - before
}

// watch is a sampler that runs beside a test.
type watch struct {
	sampler *load.Sampler
	halt    context.CancelFunc
	done    chan error
}

// watching starts a sampler over the writes of l at one secondary endpoint.
func watching(ctx context.Context, l *load.Load, secondary *rest.Client) *watch {
	ctx, halt := context.WithCancel(ctx)
	w := &watch{sampler: load.NewSampler(l, secondary), halt: halt, done: make(chan error, 1)}
	go func() { w.done <- w.sampler.Run(ctx) }()
	return w
}

// stop ends the sampler, and requires that it found nothing and looked at
// something.
func (w *watch) stop(t *testing.T) {
	t.Helper()
	w.halt()
	require.NoError(t, <-w.done)
	samples, reads := w.sampler.Counts()
	require.Positive(t, samples, "the sampler read no Last Sync Time")
	require.Positive(t, reads, "no Last Sync Time demanded anything")
	t.Logf("sampler: %d values, %d reads demanded", samples, reads)
}

// scrape returns the lines of a metrics page.
func scrape(p *devproc.Process, r *http.Request) ([]string, error) {
	resp, err := p.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", r.URL, resp.Status)
	}
	var lines []string
	sc := bufio.NewScanner(resp.Body)
	for sc.Scan() {
		lines = append(lines, sc.Text())
	}
	return lines, errors.Join(sc.Err())
}
