package faults

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/server/config"
	"antipode/test/devproc"
	"antipode/test/faults/rig"
)

const (
	// startWait bounds a start, and readyWait a return to health after faults: a slow machine is
	// not a broken promise.
	startWait = 2 * time.Minute
	readyWait = 2 * time.Minute
	poll      = 50 * time.Millisecond
)

// How long, how often and with what chance: `make faults` sets them.
var (
	duration = flag.Duration("duration", 10*time.Second, "how long TestFaults and TestLinearizable break things")
	rounds   = flag.Int("rounds", 0, "how often the other tests kill or pause; with 0 those that take longest are left out")
	seed     = flag.Uint64("seed", 1, "of the faults and of the load; the interleaving is the machine's")
)

func TestMain(m *testing.M) { os.Exit(devproc.Main(m)) }

// start runs a deployment until the test ends; no process may end by itself.
func start(t *testing.T) *rig.Rig { return startWith(t, nil) }

// startWith is start with nodes whose options configure changes.
func startWith(t *testing.T, configure func(c *config.Node)) *rig.Rig {
	t.Helper()
	if testing.Short() {
		t.Skip("node processes need more time than -short has")
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	r, err := rig.Start(ctx, rig.Options{Binary: devproc.Binary(), Dir: t.TempDir(), Configure: configure})
	require.NoError(t, err)
	t.Cleanup(func() {
		err := r.Check()
		if t.Failed() {
			for _, name := range rig.All() {
				t.Logf("output of %s:\n%s", name, r.Output(name))
			}
		}
		require.NoError(t, r.Close())
		require.NoError(t, err)
	})
	return r
}

// startLong is start for a test that `make test` leaves out: TestCluster of package test
// holds the same promises once, and this one again and again.
func startLong(t *testing.T) *rig.Rig {
	t.Helper()
	if *rounds == 0 {
		t.Skip("make faults plays it: -rounds is 0")
	}
	return start(t)
}

// ready waits until the deployment is healthy again.
func ready(ctx context.Context, t *testing.T, r *rig.Rig) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	require.NoError(t, r.Ready(ctx))
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, stream)) }
