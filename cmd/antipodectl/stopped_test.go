package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
)

// What an operator stopped is named with the command that starts it: in a check, in a status, and where it blocks a failover.
func TestWhatIsStoppedHasItsCommand(t *testing.T) {
	d := newDoomed()
	d.status.Accounts = []admin.AccountStatus{{Account: d.account.Account}}
	south := &d.status.Locations[1]
	south.Nodes[1].State = admin.Stopped
	url := d.port(t)
	for _, line := range []string{"check", "status"} {
		_, out, errOut := ctl(url, line)
		require.Contains(t, strings.Join(strings.Fields(out), " "), "WARNING southcentralus: 1 of 3 nodes is stopped: southcentralus-2", errOut)
		require.Contains(t, out, "next: antipodectl node start southcentralus-2\n", line)
	}
	south.State = admin.Stopped
	for i := range south.Nodes {
		south.Nodes[i].State = admin.Stopped
	}
	for _, line := range []string{"check", "status"} {
		_, out, errOut := ctl(url, line)
		require.Contains(t, out, "southcentralus is stopped: none of its ", errOut)
		require.Contains(t, out, "next: antipodectl location start southcentralus\n", line)
		require.NotContains(t, out, "node start", line)
	}
	const blocks = "blocked    location southcentralus is stopped: antipodectl location start southcentralus\n"
	d.lags(true)
	d.lag.Silent = []admin.SilentLocation{{Location: "southcentralus", Reason: "The location is stopped. Please retry your request"}}
	for _, line := range []string{"failover check pictures", "failover check --location northcentralus"} {
		_, out, errOut := ctl(url, strings.Fields(line)...)
		require.Contains(t, out, blocks, "%s: %s", line, errOut)
		require.NotContains(t, out, "Please retry", line)
	}
}
