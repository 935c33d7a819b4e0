package load

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/test/fake"
	"antipode/test/oracle"
	"antipode/test/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process serves a fake store at one address from each start to the next kill.
type process struct {
	store   *fake.Store
	server  *httptest.Server
	address atomic.Value
}

func (p *process) start() {
	p.store.Restart()
	p.server = httptest.NewServer(p.store)
	p.address.Store(p.server.Listener.Addr().String())
}

// kill returns when no request that was sent before it can be done any more, be it still
// in a socket. What was not answered must not happen after the restart.
func (p *process) kill() {
	p.store.Crash()
	p.server.CloseClientConnections()
	p.server.Close()
}

// startFake serves a fake store and returns a load on it.
func startFake(t *testing.T, faults fake.Faults, delay time.Duration) (*process, *Load) {
	t.Helper()
	p := &process{store: fake.New(faults, delay)}
	p.start()
	var dialer net.Dialer
	hc := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, p.address.Load().(string))
		},
	}}
	t.Cleanup(func() {
		hc.CloseIdleConnections()
		p.server.Close()
	})
	client := func(secondary bool) *rest.Client { return rest.NewPathStyle(hc, 1, secondary) }
	return p, New(client(false), client(true), Options{
		Clients: 8, BlocksEach: 8, BigClients: 1, BigWritesMax: 4, Logs: 2, Taken: 2, Long: 2, Seed: 1,
	})
}

// shipDelay is how long the fake takes to the secondary: longer than the second by which
// a printed Last Sync Time may be late, so that a wrong one is wrong at any moment.
const shipDelay = 1200 * time.Millisecond

// play runs two rounds of writing, crash and reading back, with the sampler beside
// them, and returns the load and what was complained of first.
func play(t *testing.T, faults fake.Faults) (l *Load, samples, reads int, complaint error) {
	t.Helper()
	p, l := startFake(t, faults, shipDelay)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	require.NoError(t, l.Setup(ctx))

	sampler := NewSampler(l, l.Secondary)
	sampling, stop := context.WithCancel(ctx)
	sampled := make(chan error, 1)
	go func() { sampled <- sampler.Run(sampling) }()

	for round := 0; round < 2 && complaint == nil; round++ {
		complaint = playRound(ctx, p, l)
	}
	stop()
	complaint = errors.Join(complaint, <-sampled)
	samples, reads = sampler.Counts()
	return l, samples, reads, complaint
}

// playRound writes until the process is killed, and reads everything back.
func playRound(ctx context.Context, p *process, l *Load) error {
	running, halt := context.WithCancel(ctx)
	defer halt()
	done := make(chan error, 1)
	go func() { done <- l.Run(running) }()
	select {
	case err := <-done:
		return err
	case <-time.After(1500 * time.Millisecond):
	}
	p.kill()
	halt()
	if err := <-done; err != nil {
		return err
	}
	p.start()
	if err := l.Resolve(ctx); err != nil {
		return err
	}
	return l.Final(ctx)
}

// A sound store passes the whole check, and the check looked at something.
func TestSoundStore(t *testing.T) {
	t.Parallel()
	l, samples, reads, complaint := play(t, fake.Faults{})
	require.NoError(t, complaint)
	done := l.Done()
	for _, kind := range l.Kinds() {
		require.Positive(t, done[kind], "no %s", kind)
	}
	require.Positive(t, samples)
	require.Greater(t, reads, 100)
}

// errMissing stands for what is lost or behind, by what was read of it first and where.
var errMissing = errors.New("lost or behind")

// Each planted fault is found, and under its own name.
//
// Capability: Two locations: Last Sync Time is true.
func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		faults fake.Faults
		want   error
	}{
		"acknowledged writes lost by a crash": {fake.Faults{LoseOnCrash: true}, oracle.ErrLost},
		"last sync time is now()":             {fake.Faults{SyncTimeIsNow: true}, errMissing},
		"a change skipped at the secondary":   {fake.Faults{SkipAtSecondary: 50}, errMissing},
		"a merge applied by half":             {fake.Faults{Tear: true}, errTorn},
		"other ETag at the secondary":         {fake.Faults{OtherTag: true}, oracle.ErrTag},
		"a transaction applied in part":       {fake.Faults{SplitTransactions: true}, errSplit},
		"an uncommitted block shows":          {fake.Faults{ShowUncommitted: true}, errUncommitted},
		"uncommitted blocks lost by a crash":  {fake.Faults{DropUncommitted: true}, errBlockLost},
		"a blob missing from listings":        {fake.Faults{ListMisses: 9}, errListing},
		"a deleted blob in listings":          {fake.Faults{ListDeleted: true}, errListing},
		"a condition ignored":                 {fake.Faults{IgnoreConditions: true}, ErrContradiction},
		"an append at a wrong offset":         {fake.Faults{WrongOffset: true}, oracle.ErrMoved},
		"an append at another position":       {fake.Faults{IgnorePositions: true}, oracle.ErrMoved},
		"a wrong count of blocks":             {fake.Faults{WrongCount: true}, oracle.ErrMoved},
		"an append twice":                     {fake.Faults{AppendTwice: true}, oracle.ErrTwice},
		"two appends swapped":                 {fake.Faults{SwapAppends: true}, oracle.ErrMoved},
		"an append lost at the secondary":     {fake.Faults{AppendsLost: true}, oracle.ErrMoved},
		"a snapshot with later content":       {fake.Faults{SharedSnapshots: true}, oracle.ErrChanged},
		"a snapshot with earlier content":     {fake.Faults{EarlySnapshots: true}, oracle.ErrChanged},
		"a deleted snapshot stays":            {fake.Faults{KeepSnapshots: true}, oracle.ErrBack},
		"snapshots missing from listings":     {fake.Faults{HideSnapshots: true}, errListing},
		"a copy of an earlier version":        {fake.Faults{StaleCopies: true}, oracle.ErrChanged},
		"a part of a copy":                    {fake.Faults{PartialCopies: true}, errTorn},
		"an acknowledged copy lost":           {fake.Faults{CopiesLost: true}, errMissing},
		"a copy lost at the secondary":        {fake.Faults{CopiesSkipped: true}, errMissing},
		"a deleted copy stays":                {fake.Faults{KeepCopied: true}, oracle.ErrBack},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, _, complaint := play(t, tt.faults)
			if errors.Is(tt.want, errMissing) {
				require.True(t, errors.Is(complaint, oracle.ErrLost) || errors.Is(complaint, oracle.ErrBehind), "%v", complaint)
				return
			}
			require.ErrorIs(t, complaint, tt.want)
		})
	}
}
