package tools

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/devproc"
)

// Times are bounds for a slow machine, no promise.
const (
	startWait = 2 * time.Minute
	toolWait  = 20 * time.Minute
)

// How much: `make tools` sets it.
var (
	asked  = flag.Bool("tools", false, "run the programs; without it only the tests of these tests run")
	size   = flag.Int64("bytes", 64<<20, "how much data each program moves")
	cycles = flag.Int("cycles", 100, "contended cycles of a lock")
	cache  = flag.String("cache", "", "folder of install.sh, with the programs that it built")
)

// gaps are the lines printed at the end: what is not built, here or as a program.
var gaps struct {
	sync.Mutex
	lines []string
}

func TestMain(m *testing.M) {
	flag.Parse()
	if !*asked {
		os.Exit(m.Run())
	}
	code := devproc.Main(m)
	slices.Sort(gaps.lines)
	for _, line := range slices.Compact(gaps.lines) {
		fmt.Println("NOT BUILT:", line)
	}
	os.Exit(code)
}

// gap adds a line to those at the end.
func gap(format string, args ...any) {
	gaps.Lock()
	defer gaps.Unlock()
	gaps.lines = append(gaps.lines, fmt.Sprintf(format, args...))
}

// needTools skips the test unless it was asked for.
func needTools(t *testing.T) {
	t.Helper()
	if !*asked {
		t.Skip("make tools runs this")
	}
}

// built returns a program that install.sh built, or names it as missing with the error of its build and skips the test.
func built(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(*cache, name)
	if _, err := os.Stat(path); err != nil {
		why, _ := os.ReadFile(path + ".missing") // Without it the cause is that nothing was installed.
		gap("%s: the program could not be installed: %s", name, why)
		t.Skipf("%s is missing: %s", name, why)
	}
	return path
}

// startDev runs antipode dev until the test ends, and returns when it is ready.
func startDev(t *testing.T) *devproc.Process {
	t.Helper()
	needTools(t)
	base, err := devproc.FreePortBase(t)
	require.NoError(t, err)
	hc := devproc.NewHTTPClient()
	t.Cleanup(hc.CloseIdleConnections)
	// Programs name what they copy from by the names that they know.
	zones := []string{"--zone", publicZone + "," + string(geo.LocalZone)}
	p, err := devproc.Start(devproc.Config{Binary: devproc.Binary(), Dir: t.TempDir(), PortBase: base, HTTP: hc, Args: zones})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of antipode dev:\n%s", p.Output())
		}
		require.NoError(t, p.Kill9())
	})
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	require.NoError(t, p.Ready(ctx))
	return p
}
