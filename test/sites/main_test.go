package sites

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/server/config"
	"antipode/test/devproc"
	"antipode/test/faults/rig"
)

const (
	// calmWait bounds each wait: a slow machine is not a broken promise.
	calmWait = 4 * time.Minute
	poll     = 50 * time.Millisecond
	// samplePause lies between two samples of Last Sync Time.
	samplePause = 10 * time.Millisecond
)

// whole has all tests played: `make sites` sets it.
var whole = flag.Bool("whole", false, "play what is too long for each change, too")

// The tag lets a file set a node's clock.
func TestMain(m *testing.M) { os.Exit(devproc.Main(m, "steppedclock")) }

// startWhole is rig.StartTest for what is too long for each change.
func startWhole(t *testing.T, configure func(c *config.Node)) *site {
	t.Helper()
	onlyWhole(t)
	s := &site{t: t, r: rig.StartTest(t, configure)}
	s.setup(t.Context())
	return s
}

// onlyWhole skips what is too long for each change.
func onlyWhole(t *testing.T) {
	t.Helper()
	if !*whole {
		t.Skip("make sites plays it: -whole is not set")
	}
}

// requireRefused requires that a call was refused by its code.
func requireRefused(t *testing.T, err error, code string) {
	t.Helper()
	var refused *wire.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, code, refused.Code, "%v", refused)
}

// contain reports whether one of some lines has a part.
func contain(lines []string, part string) bool {
	return slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, part) })
}
