package rolling

import (
	"context"
	"flag"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/test/devproc"
	"antipode/test/faults/rig"
)

var (
	turns    = flag.Int("turns", 1, "how often each process is restarted")
	pauseMax = flag.Duration("pause", 0, "how long no write may be acknowledged at most; 0 asserts no time: make rolling sets it")
)

func TestMain(m *testing.M) { os.Exit(devproc.Main(m)) }

const (
	writers  = 8
	stopWait = time.Minute
	syncWait = 2 * time.Minute
)

// All six nodes and both gateways are restarted by SIGTERM under clients, one at a time, a node once three replicas of
// every range are in sync: no acknowledged write is lost, and every request succeeds at the first or the second try. With
// -pause no longer time than that passes without an acknowledged write.
//
// Capability: Operation: A rolling restart under load.
func TestRollingRestart(t *testing.T) {
	r := rig.StartTest(t, nil)
	require.NoError(t, r.StartSecondGateway())
	c := newClients(r)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(*turns)*20*time.Minute)
	defer cancel()
	require.NoError(t, c.setup(ctx))

	loading, halt := context.WithCancel(ctx)
	var load sync.WaitGroup
	for id := range writers {
		load.Go(func() { c.run(loading, id) })
	}
	rig.Pause(ctx, time.Second)
	for range *turns {
		for _, name := range slices.Concat(rig.NodesOf(rig.North), rig.NodesOf(rig.South), []string{rig.Gateway, rig.SecondGateway}) {
			c.restarting(name)
			restart(ctx, t, r, name)
		}
	}
	rig.Pause(ctx, time.Second)
	halt()
	load.Wait()

	lost, checked := c.lost(ctx)
	t.Logf("%d requests, tried twice: %v, failed twice: %v", c.requests, c.retried, c.failed)
	t.Logf("longest time without an acknowledged write, by the process that was restarted: %v", c.pauses)
	t.Logf("%d acknowledged writes, %d lost; longest time without one %s, longest write %s", checked, len(lost),
		c.pause.Round(time.Millisecond), c.longest.Round(time.Millisecond))
	require.Empty(t, lost)
	require.Positive(t, checked)
	require.Empty(t, c.failed, "a request failed twice")
	if *pauseMax > 0 {
		require.LessOrEqual(t, c.pause, *pauseMax)
	}
}

// restart stops a process as a supervisor does, starts it again, and waits until the deployment is whole.
func restart(ctx context.Context, t *testing.T, r *rig.Rig, name string) {
	t.Helper()
	began := time.Now()
	stopping, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	require.NoError(t, r.Stop(stopping, name))
	stopped := time.Since(began)
	require.NoError(t, r.Launch(name))
	whole, cancel := context.WithTimeout(ctx, syncWait)
	defer cancel()
	require.NoError(t, r.Ready(whole))
	if name == rig.SecondGateway {
		_, err := r.Admin(name).Readiness(whole)
		for err != nil && whole.Err() == nil {
			rig.Pause(whole, 50*time.Millisecond)
			_, err = r.Admin(name).Readiness(whole)
		}
		require.NoError(t, err)
	}
	t.Logf("%s: stopped in %s, whole again after %s", name, stopped.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}
