package faults

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/test/devproc"
	"antipode/test/faults/rig"
)

const (
	// readyWait bounds a return to health after faults: a slow machine is not a broken promise.
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

// startLong is rig.StartTest for a test that `make test` leaves out: TestCluster of package test
// holds the same promises once, and this one again and again.
func startLong(t *testing.T) *rig.Rig {
	t.Helper()
	if *rounds == 0 {
		t.Skip("make faults plays it: -rounds is 0")
	}
	return rig.StartTest(t, nil)
}

// ready waits until the deployment is healthy again.
func ready(ctx context.Context, t *testing.T, r *rig.Rig) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	require.NoError(t, r.Ready(ctx))
}

func random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, stream)) }
