package slowlink

import (
	"flag"
	"os"
	"testing"
	"time"

	"antipode/server/config"
	"antipode/test/devproc"
	"antipode/test/faults/rig"
)

const (
	// readyWait bounds what comes after a fault: a slow machine is not a broken promise.
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

// start is rig.StartTest with a small cache.
func start(t *testing.T) *rig.Rig {
	t.Helper()
	return rig.StartTest(t, func(c *config.Node) { c.CacheBytes = cacheBytes })
}

// promise fails the test, which goes on: the other figures of a long run are wanted all the same.
func promise(t *testing.T, kept bool, format string, args ...any) {
	t.Helper()
	if !kept {
		t.Errorf(format, args...)
	}
}
