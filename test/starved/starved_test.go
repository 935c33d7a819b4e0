package starved

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/test/devproc"
)

var (
	rounds   = flag.Int("rounds", 1, "how often to start on a new folder and then on the folder that is left")
	niceness = flag.Int("nice", 5, "how much lower than that of its neighbours the server's priority is")
)

// startMax is far above what a starved start takes: a start has no deadline, a test must
// end.
const startMax = 10 * time.Minute

func TestMain(m *testing.M) {
	neighbour()
	os.Exit(devproc.Main(m))
}

// Each start on a starved machine comes up, on a new folder and, after kill -9, on a used
// one: it says at once what it does, and never ends by itself.
//
// Capability: Build and run: A start on a machine without time for it.
func TestStartStarved(t *testing.T) {
	if testing.Short() {
		t.Skip("end-to-end tests need more time than -short has")
	}
	dir := t.TempDir()
	starving, err := moveIn(dir)
	t.Cleanup(func() { require.NoError(t, starving.moveOut()) })
	require.NoError(t, err)
	t.Setenv("GOMAXPROCS", "1")
	for round := range *rounds {
		data := filepath.Join(dir, fmt.Sprintf("round-%d", round))
		for _, folder := range []string{"new", "used"} {
			took, waits := start(t, data, filepath.Join(dir, fmt.Sprintf("output-%d-%s", round, folder)))
			t.Logf("round %d of %d, %s folder: runs after %v, said %d times what it waits for",
				round+1, *rounds, folder, took.Round(100*time.Millisecond), waits)
		}
		require.NoError(t, os.RemoveAll(data))
	}
}

// start runs the server on the folder data until it prints that it runs, kills it, and
// returns how long that took and how often it said what it waits for.
func start(t *testing.T, data, output string) (took time.Duration, waits int) {
	t.Helper()
	var ports devproc.Held
	defer ports.Release()
	base, err := devproc.FreePortBase(&ports)
	require.NoError(t, err)
	began := time.Now()
	server, err := devproc.Run("antipode dev", output, "nice", "-n", strconv.Itoa(*niceness),
		devproc.Binary(), "dev", "--data", data, "--port-base", strconv.Itoa(base))
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Kill9()) }()
	ctx, cancel := context.WithTimeout(t.Context(), startMax)
	defer cancel()
	for {
		text := server.Output()
		if strings.Contains(text, "Antipode runs: ") {
			require.Contains(t, text, "Starting ")
			return time.Since(began), strings.Count(text, "waiting: ")
		}
		select {
		case <-server.Exited():
			t.Fatalf("the start ended after %v:\n%s", time.Since(began), server.Output())
		case <-ctx.Done():
			t.Fatalf("the start did not come up within %v:\n%s", startMax, server.Output())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
