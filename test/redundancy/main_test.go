package redundancy

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/test/devproc"
	"antipode/test/faults/rig"
)

const (
	startWait = 2 * time.Minute
	poll      = 50 * time.Millisecond
)

// How much: `make redundancy` sets it.
var (
	objects    = flag.Int("objects", 1000, "how many blobs of -object-bytes the account has whose copy is made under kills")
	objectSize = flag.Int("object-bytes", 10_737, "the bytes of each: 100,000 of them are 1 GiB")
	kills      = flag.Int("kills", 3, "how often the leader of either side is killed meanwhile")
	rate       = flag.Uint64("rate", 200_000, "bytes per second that the copy takes at most, until the last of them; a tenth of it from the middle on")
	apart      = flag.Uint64("apart", 50, "a kill follows the one before after one part of so many of all rows")
	writers    = flag.Int("writers", 8, "clients that write meanwhile, each some 10 times a second")
	calmWait   = flag.Duration("wait", 4*time.Minute, "how long what follows a change or a kill may take: a slow machine is not a broken promise")
)

func TestMain(m *testing.M) { os.Exit(devproc.Main(m)) }

// start runs a deployment until the test ends; no process may end by itself.
func start(t *testing.T) *rig.Rig {
	t.Helper()
	if testing.Short() {
		t.Skip("node processes need more time than -short has")
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	r, err := rig.Start(ctx, rig.Options{Binary: devproc.Binary(), Dir: t.TempDir()})
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

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
