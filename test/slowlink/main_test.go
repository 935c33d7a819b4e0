package slowlink

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/server/config"
	"antipode/test/devproc"
	"antipode/test/faults/rig"
)

const (
	// startWait bounds a start, and readyWait what comes after a fault: a slow machine is not a broken
	// promise.
	startWait = 2 * time.Minute
	readyWait = 4 * time.Minute
	poll      = 50 * time.Millisecond
)

// How long: `make slowlink` sets it.
var duration = flag.Duration("duration", 3*time.Second, "how long each of the faults lasts")

// cacheBytes is the cache of a node's state, the least there may be: it fills up in any case, and what grows beside it is
// what the bound on memory is about.
const cacheBytes = 96 << 20

// strict reports whether times and memory are to be what is promised of them. The short form, beside other
// tests, shows the figures alone.
func strict() bool { return *duration >= time.Minute }

func TestMain(m *testing.M) { os.Exit(devproc.Main(m)) }

// start runs a deployment until the test ends; no process may end by itself.
func start(t *testing.T) *rig.Rig {
	t.Helper()
	if testing.Short() {
		t.Skip("node processes need more time than -short has")
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	r, err := rig.Start(ctx, rig.Options{
		Binary: devproc.Binary(), Dir: t.TempDir(), Configure: func(c *config.Node) { c.CacheBytes = cacheBytes },
	})
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

// promise fails the test, which goes on: the other figures of a long run are wanted all the same.
func promise(t *testing.T, kept bool, format string, args ...any) {
	t.Helper()
	if !kept {
		t.Errorf(format, args...)
	}
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
