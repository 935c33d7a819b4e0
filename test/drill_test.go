package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/drill"
	"antipode/test/devproc"
	"antipode/test/rest"
)

// antipodectl builds the command and returns a function that runs it against a process.
func antipodectl(t *testing.T, p *devproc.Process) func(line string) (out, errOut string, err error) {
	t.Helper()
	binary, err := devproc.BuildTool(t.Context(), t.TempDir())
	require.NoError(t, err)
	return func(line string) (string, string, error) {
		c := exec.CommandContext(t.Context(), binary, strings.Fields(line)...)
		c.Env = append(os.Environ(), "ANTIPODE_ADMIN="+p.AdminURL(0))
		var out, errOut strings.Builder
		c.Stdout, c.Stderr = &out, &errOut
		err := c.Run()
		return out.String(), errOut.String(), err
	}
}

// R20, R22: a drill of an unplanned failover against antipode dev, with the primary's location stopped, which is the default
// there, and with it alive, on a link so slow that acknowledged writes are lost. Each of these is in the lost-change report
// and above the Last Sync Time that was stated, the former primary follows, the account goes back, and both copies agree: else the
// exit code is not 0.
//
// Capability: Failover: Drills of failovers.
func TestR20UnplannedDrill(t *testing.T) {
	p := startDev(t)
	ctl := antipodectl(t, p)
	_, errOut, err := ctl("link delay 300ms")
	require.NoError(t, err, errOut)
	for _, line := range []string{"", "--kill=false"} {
		page := filepath.Join(t.TempDir(), "drill.html")
		out, errOut, err := ctl("drill " + string(rest.DevAccount) + " --unplanned --yes --duration 6s --within 5m -o json --html " + page + " " + line)
		require.NoError(t, err, "%s%s", errOut, out)
		var r drill.Report
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		u := r.Unplanned
		require.Equal(t, line == "", u.Killed != "")
		require.True(t, u.Followed)
		require.True(t, u.Compared)
		require.NotNil(t, u.RTO)
		require.Len(t, u.Stated, 4)
		require.Equal(t, admin.VerifyEqual, r.Verify)
		require.GreaterOrEqual(t, u.Listed, r.Lost)
		b, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Contains(t, string(b), "No fault was found")
		t.Logf("RTO %s, RPO %s, %d acknowledged writes are gone", u.RTO.Round(time.Millisecond), u.RPO.Round(time.Millisecond), r.Lost)

		a, err := p.Admin().Account(t.Context(), rest.DevAccount)
		require.NoError(t, err)
		require.Equal(t, north, a.Primary)
		require.Empty(t, a.Operation)
	}
}
