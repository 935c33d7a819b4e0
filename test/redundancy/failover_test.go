package redundancy

import (
	"context"
	"flag"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/test/faults/rig"
	"antipode/test/load"
	"antipode/test/rest"
)

// How much: `make redundancy` sets it.
var (
	failovers = flag.Int("failovers", 4, "how often an account moves to its other location and back, under load")
	pauseMax  = flag.Duration("pause", 0, "how long writes may stand in 99 of 100 failovers; 0 bounds nothing, 3s is the aim")
)

// Planned failovers from one location to the other and back, under load, against processes of both: nothing acknowledged
// is lost, Last Sync Time at -secondary is true throughout and does not go back, one of the two names can always be read,
// and both copies agree at the end (R13, R19). Then Last Sync Time of each service moves on, and the nodes of both store
// nothing of an epoch before the last one (R7, R10). How long writes stood is reported.
//
// Capability: Blobs: Under faults of processes.
// Capability: Failover: From A to B and back, five times under load, with processes (R19).
func TestR19PlannedFailoversUnderLoad(t *testing.T) {
	r := rig.StartTest(t, nil)
	ctx := t.Context()
	require.NoError(t, r.Finalize(ctx))
	a := create(ctx, t, r, "moves", load.Options{
		Clients: 8, EntitiesEach: 12, BigClients: 1, BigWritesMax: 4, Long: 1, Seed: 1, Pause: 30 * time.Millisecond,
	})
	_, err := r.Admin(rig.Gateway).UpdateAccount(ctx, a.name, wire.UpdateAccount{Redundancy: string(catalog.RAGRS)})
	require.NoError(t, err)
	a.comesTo(ctx, catalog.RAGRS)
	a.Secondary = r.ClientOf(rig.Gateway, a.name, true) // Wherever that is.
	a.live(ctx)
	sampled, end := a.sampling(ctx), a.writing(ctx)
	defer sampled.end()
	defer end()
	pulse := a.feelPulse(ctx)
	defer pulse.end()
	var took, paused []time.Duration
	from, to := rig.North, rig.South
	for range *failovers {
		a.eventually(ctx, "writes arrive", func(context.Context) bool { _, reads := sampled.Counts(); return reads > 0 })
		pulse.lap()
		began := time.Now()
		a.failover(ctx, from, to)
		took = append(took, time.Since(began))
		rig.Pause(ctx, beside)
		paused = append(paused, pulse.lap())
		from, to = to, from
	}
	end()
	pulse.end()
	require.NoError(t, a.Resolve(ctx), "at the primary")
	a.live(ctx)
	require.NoError(t, a.Final(ctx), "at -secondary")
	sampled.end()
	a.agrees(ctx)
	a.movesOn(ctx)
	now, err := a.shown(ctx)
	require.NoError(t, err)
	a.requireOneEpoch(ctx, now.Epoch)
	acked, _ := a.Oracle.Acks()
	samples, reads := sampled.Counts()
	require.Positive(t, a.Done()[load.Copies], "no copies")
	t.Logf("%d writes acknowledged, %d answered 503; %v; %d samples of Last Sync Time, %d reads at the secondary; epoch %s; failovers took %v",
		acked, len(a.failed), a.Done(), samples, reads, now.Epoch, took)
	summary(t, "%d planned failovers under load: writes stood for %s (p99 allowed: %v); took %s; nothing of a former epoch is left",
		*failovers, percentiles(paused), *pauseMax, percentiles(took))
	if *pauseMax > 0 {
		require.LessOrEqual(t, rank(paused, 99), *pauseMax, "p99 of how long writes stood")
	}
}

// failover moves the account, and waits until both locations agree that it has moved.
func (a *account) failover(ctx context.Context, from, to geo.Location) {
	a.t.Helper()
	var epoch wire.Epoch
	a.eventually(ctx, "the failover begins", func(ctx context.Context) bool {
		got, err := a.r.Admin(rig.NodesOf(from)[0]).UpdateAccount(ctx, a.name, wire.UpdateAccount{
			Failover: &wire.Failover{Type: wire.FailoverPlanned, WithinSeconds: calmWait.Seconds()},
		})
		epoch = got.Epoch
		return err == nil
	})
	a.eventually(ctx, "both locations agree", func(ctx context.Context) bool {
		for _, l := range []geo.Location{rig.North, rig.South} {
			got, err := a.r.Admin(rig.NodesOf(l)[0]).Account(ctx, a.name)
			if err != nil || got.Primary != to || got.Operation != "" || got.Epoch.Number <= epoch.Number {
				return false
			}
		}
		return true
	})
}

// pulse writes a row again and again, and reads it through both names.
type pulse struct {
	a   *account
	end func()

	mu sync.Mutex
	// last is when a write was acknowledged last, longest the longest time between two since the last lap.
	last    time.Time
	longest time.Duration
	// unread are the names through which the row cannot be read now.
	unread [2]bool
}

func (a *account) feelPulse(ctx context.Context) *pulse {
	p := &pulse{a: a, last: time.Now()}
	ctx, halt := context.WithCancel(ctx)
	var wg sync.WaitGroup
	write := func() bool {
		got, err := a.Primary.Replace(ctx, "crash", "*", rest.Entity{"PartitionKey": "pulse", "RowKey": "r", "v": "1"})
		return err == nil && got.OK()
	}
	read := func(of *rest.Client) bool {
		_, got, err := of.GetEntity(ctx, "crash", "pulse", "r")
		return err == nil && (got.OK() || got.Status == http.StatusNotFound)
	}
	loop := func(f func()) {
		wg.Go(func() {
			for ctx.Err() == nil {
				f()
				rig.Pause(ctx, 5*time.Millisecond)
			}
		})
	}
	_, _ = a.Primary.Insert(ctx, "crash", rest.Entity{"PartitionKey": "pulse", "RowKey": "r", "v": "0"})
	loop(func() {
		if write() {
			p.mu.Lock()
			now := time.Now()
			p.longest, p.last = max(p.longest, now.Sub(p.last)), now
			p.mu.Unlock()
		}
	})
	for i, of := range []*rest.Client{a.Primary, a.Secondary} {
		loop(func() { p.readable(ctx, i, read(of)) })
	}
	p.end = sync.OnceFunc(func() {
		halt()
		wg.Wait()
	})
	return p
}

// readable notes whether the row could be read through a name.
func (p *pulse) readable(ctx context.Context, name int, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unread[name] = !is && ctx.Err() == nil
	if p.unread[0] && p.unread[1] {
		p.a.t.Error("neither name of the account could be read")
	}
}

// lap returns the longest time between two acknowledged writes since the last lap.
func (p *pulse) lap() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := max(p.longest, time.Since(p.last))
	p.longest = 0
	return longest
}
