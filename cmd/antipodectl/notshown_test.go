package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
)

// oneSided is the port of a node at the secondary of an account, whose primary serves.
func oneSided() *doomed {
	d := newDoomed()
	d.lags(false, 4)
	d.lag.Silent[0].Reason = "this port does not reach it"
	d.status.Locations = d.status.Locations[1:]
	d.status.Locations[0].Peer = "northcentralus"
	d.status.Accounts = []admin.AccountStatus{{Account: d.account.Account}}
	return d
}

// R19, R20: a port that shows one location calls the other one neither dead nor silent, and steers to no failover that would
// lose what that acknowledges: it names a gateway.
func TestR20PortOfOneLocationDoesNotCallTheOtherDead(t *testing.T) {
	const hidden = "this port does not show northcentralus, which need not be dead: ask a gateway"
	d := oneSided()
	url := d.port(t)
	for line, want := range map[string]string{
		"account show pictures":       "status of the primary: not known: " + hidden + "\n",
		"failover check pictures":     "blocked    " + hidden + "\n",
		"failover start pictures":     "blocked    " + hidden + "\n" + "nothing was changed, and with --yes it is refused\n",
		"failover unplanned pictures": "KNOWN LOST is unknown beyond this: " + hidden + "\n",

		"failover check --location northcentralus":     "blocked    " + hidden + "\n",
		"failover start --location northcentralus":     "blocked    " + hidden + "\n" + "nothing was changed, and with --yes it is refused\n",
		"failover unplanned --location northcentralus": "whether northcentralus serves, and which accounts are there that southcentralus does not know of, is not known: " + hidden + "\n",
	} {
		code, out, errOut := ctl(url, strings.Fields(line)...)
		require.Contains(t, out, want, "%s: %s", line, errOut)
		require.Equal(t, strings.Contains(line, " start "), code == command.Failed, line)
		require.NotContains(t, out, "does not answer", line)
		require.NotContains(t, out, "unavailable", line)
		require.NotContains(t, out, "has not said", line)
		require.NotContains(t, out, "antipodectl failover unplanned", line)
		require.NotContains(t, out, "unplanned possible", line)
	}
	for _, what := range []string{"pictures", "--location northcentralus"} {
		_, _, errOut := ctl(url, strings.Fields("failover start --yes "+what)...)
		require.Contains(t, errOut, "is blocked, nothing was changed: "+hidden, what)
	}
	_, out, _ := ctl(url, "account", "show", "pictures", "-o", "json")
	require.Contains(t, out, `"status_of_primary": "unknown"`)
	require.NotContains(t, out, "unavailable", "one of them")
	require.NotContains(t, out, "not_shown")
	d.status.Accounts = nil // The location that is asked has just started, and knows of no account that it is to take over.
	_, out, _ = ctl(url, "failover", "unplanned", "--location", "northcentralus")
	require.Contains(t, out, "which accounts are there that southcentralus does not know of, is not known: "+hidden)
	_, out, _ = ctl(url, "failover", "unplanned", "--location", "northcentralus", "--yes")
	require.Contains(t, out, "not known  whether northcentralus has more accounts, which southcentralus does not know to be there: "+hidden)

	d.status = newDoomed().status // A gateway, which shows both, and to which the primary does not answer.
	_, out, _ = ctl(url, "failover", "check", "pictures")
	require.Contains(t, out, "blocked    northcentralus does not answer: ")
	require.Contains(t, out, "otherwise  antipodectl failover unplanned pictures shows what would be lost, if northcentralus is gone\n")
	_, out, _ = ctl(url, "failover", "unplanned", "pictures")
	require.Contains(t, out, "northcentralus has not said how much it has committed\n")
}

// R20: the port of the primary does not begin an unplanned failover, which the other location carries out.
func TestR20PortOfThePrimaryNamesAGateway(t *testing.T) {
	d := newDoomed()
	d.status.Locations = d.status.Locations[:1]
	d.status.Locations[0].Peer = "southcentralus"
	code, _, errOut := ctl(d.port(t), "failover", "unplanned", "--location", "northcentralus", "--to", "southcentralus", "--dry-run")
	require.Equal(t, command.Failed, code)
	require.Contains(t, errOut, "nothing was changed: this port does not show southcentralus, which need not be dead: ask a gateway")
}
