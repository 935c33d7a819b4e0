package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
)

// deadWitness has both locations of a status without an answer of the witness. The nodes warn of it, as those of an earlier
// version do.
func deadWitness(s *admin.Status) {
	for i := range s.Locations {
		l := &s.Locations[i]
		l.Epochs = &admin.Epochs{Witness: true, WitnessAddress: "third:10300", Waiting: "witness: refused"}
		for _, n := range l.Nodes {
			l.Epochs.UnconfirmedNodes, l.Epochs.WaitingNodes = append(l.Epochs.UnconfirmedNodes, n.Name), append(l.Epochs.WaitingNodes, n.Name)
			l.Warnings = append(l.Warnings, admin.WarnsOfEpochs+" at node "+n.Name+": writes are refused")
		}
	}
}

// doomed is an admin port with one account, an unplanned failover of which has a stated loss.
type doomed struct {
	status  admin.Status
	account admin.AccountInfo
	lag     admin.Lag
	loss    []admin.ServiceLoss
	refused string
}

func newDoomed() *doomed {
	d := &doomed{status: manyAccounts(0)}
	d.status.Version = admin.StatusVersion
	d.account.Account = admin.Account{
		Name: "pictures", Redundancy: "RA-GRS", Primary: "northcentralus", Secondary: "southcentralus", Epoch: admin.Epoch{Number: 1, Location: "northcentralus"},
	}
	at := admin.Time{Time: time.Date(2026, 11, 24, 3, 4, 5, 0, time.UTC)}
	for _, service := range []string{"catalog", "blob", "queue", "table"} {
		d.loss = append(d.loss, admin.ServiceLoss{Service: service, LastSyncTime: at, UnboundedSince: at})
	}
	d.loss[1].KnownRecords, d.loss[3].KnownRecords = 9, 2
	return d
}

// lags has the streams of the services, and whether the primary counted them.
func (d *doomed) lags(counted bool, table ...uint64) {
	n, heads := uint64(0), map[bool]string{true: admin.HeadsPrimary, false: admin.HeadsClosed}[counted]
	d.lag = admin.Lag{Primary: d.account.Primary, Secondary: d.account.Secondary}
	for _, of := range table {
		d.lag.Streams = append(d.lag.Streams, admin.StreamLag{Service: "table", LagRecords: &of, Heads: heads})
		n += of
	}
	for _, service := range []string{"blob", "queue", "table"} {
		s := admin.ServiceLag{ServiceStatus: admin.ServiceStatus{Service: service, Status: admin.Live}, LagRecords: new(uint64), AtLeast: !counted}
		if service == "table" {
			s.LagRecords = &n
		}
		d.lag.Services = append(d.lag.Services, s)
	}
	if !counted {
		d.lag.Silent = []admin.SilentLocation{{Location: d.account.Primary, Reason: "refused"}}
	}
}

func (d *doomed) port(t *testing.T) string {
	mux := http.NewServeMux()
	answer := func(pattern string, doc func() any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(doc()) })
	}
	answer("GET /v1/status", func() any { return d.status })
	answer("GET /v1/accounts", func() any { return admin.AccountList{Accounts: []admin.AccountInfo{d.account}} })
	answer("GET /v1/accounts/pictures", func() any { return d.account })
	answer("GET /v1/accounts/pictures/keys", func() any { return admin.Keys{} })
	answer("GET /v1/accounts/pictures/why", func() any { return admin.Why{Account: "pictures"} })
	answer("GET /v1/accounts/pictures/geo", func() any { return admin.GeoReplicationOf(d.account.Account, d.lag) })
	answer("GET /v1/accounts/pictures/lag", func() any { return d.lag })
	answer("POST /v1/accounts/pictures/update", func() any { return admin.AccountUpdated{AccountInfo: d.account, Loss: d.loss, Refused: d.refused} })
	answer("POST /v1/locations/southcentralus/failover", func() any {
		return admin.LocationFailover{From: "northcentralus", To: "southcentralus", Phase: admin.LocationOver}
	})
	answer("GET /v1/locations/southcentralus/failover", func() any {
		return admin.LocationFailover{
			From: "northcentralus", To: "southcentralus", Type: admin.FailoverUnplanned, Phase: admin.LocationMoving, Round: 1,
			Moving: map[string]int{admin.FailoverClaiming: 3, admin.FailoverWithdrawing: 1},
		}
	})
	answer("GET /v1/locations/northcentralus/failover", func() any { return admin.LocationFailover{} })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

// statedOf is what a plan prints as KNOWN LOST, by service.
func statedOf(out string) map[string]string {
	stated := map[string]string{}
	for _, line := range strings.Split(out, "\n") {
		if f := strings.Fields(line); len(f) > 3 && f[len(f)-1] == "2026-11-24T03:04:05.000Z" {
			stated[f[0]] = strings.Join(f[2:len(f)-1], " ")
		}
	}
	return stated
}

// R20: the plan of an unplanned failover claims no smaller loss than what either location knows: what the secondary was sent,
// or what the primary counts where it answers. Where it does not, no number is shown as all that is lost, nor 0.
func TestR20PlanStatesWhatIsKnownAnywhere(t *testing.T) {
	d := newDoomed()
	url := d.port(t)
	d.lags(true, 26, 5)
	_, out, _ := ctl(url, "failover", "unplanned", "pictures")
	require.Equal(t, map[string]string{"catalog": "0", "blob": "9", "queue": "0", "table": "31"}, statedOf(out))
	require.NotContains(t, out, "unknown beyond")

	d.lags(false, 4)
	_, out, _ = ctl(url, "failover", "unplanned", "pictures")
	require.Equal(t, map[string]string{"catalog": "unknown", "blob": "at least 9", "queue": "unknown", "table": "at least 4"}, statedOf(out))
	require.Contains(t, out, "KNOWN LOST is unknown beyond this: northcentralus has not said how much it has committed\n")

	d.lags(true, 1)
	d.lag.Services[2].AtLeast = true // One range of the primary did not answer.
	_, out, _ = ctl(url, "failover", "unplanned", "pictures", "-o", "json")
	var plan unplannedPlan
	require.NoError(t, json.Unmarshal([]byte(out), &plan))
	require.Equal(t, uint64(2), plan.Loss[3].KnownRecords, "the secondary knows more")
	require.Equal(t, []string{"catalog", "blob", "queue"}, plan.CountedAtPrimary)
	_, out, _ = ctl(url, "failover", "unplanned", "pictures")
	require.Contains(t, out, "KNOWN LOST is unknown beyond this: not all that northcentralus has committed could be counted: antipodectl lag pictures\n")
	require.NotContains(t, out, "has not said")
}

// R20: what a location that does not take itself for the secondary answers has no table of losses, and does not pass.
func TestR20PlanOfARefusedFailoverStatesNoLoss(t *testing.T) {
	d := newDoomed()
	d.lags(true)
	d.loss, d.refused = nil, "southcentralus has not learned yet of the failover"
	code, out, errOut := ctl(d.port(t), "failover", "unplanned", "pictures")
	require.Equal(t, command.Failed, code)
	require.Contains(t, out, "account pictures is at northcentralus, epoch 1@northcentralus, secondary southcentralus\n")
	require.NotContains(t, out, "KNOWN LOST")
	require.NotContains(t, out, nothingChanged)
	require.Contains(t, errOut, "southcentralus would refuse it, nothing was changed: southcentralus has not learned yet")
}

// R21: every plan names a witness that does not answer, what an unplanned failover does then, and what to do; not where it
// answers, and with --without-witness only what stays to be done.
func TestR21PlansNameADeadWitness(t *testing.T) {
	d := newDoomed()
	d.lags(true)
	url := d.port(t)
	const why = "witness    the witness third:10300 does not answer southcentralus (witness: refused)\n"
	const waits = "witness    until it does an unplanned failover waits in phase claiming; after 2 minutes it gives up, " +
		"and northcentralus refuses writes until the witness is back\n" +
		"witness    if northcentralus is off and stays off: failover unplanned with --without-witness does not wait, also where one waits or has given up\n"
	const then = "witness    until it is back southcentralus takes writes of accounts with a copy only after antipodectl location confirm southcentralus --not-promoted\n"
	lines := []string{
		"failover check pictures", "failover start pictures --dry-run", "failover unplanned pictures --dry-run",
		"failover check --location northcentralus", "failover start --location northcentralus --dry-run",
		"failover unplanned --location northcentralus --dry-run",
	}
	for _, line := range lines {
		_, out, errOut := ctl(url, strings.Fields(line)...)
		require.NotEmpty(t, out, "%s: %s", line, errOut)
		require.NotContains(t, out, "witness", line)
	}
	deadWitness(&d.status)
	for _, line := range lines {
		_, out, errOut := ctl(url, strings.Fields(line)...)
		require.Equal(t, !strings.Contains(line, " start "), strings.Contains(out, waits), "%s: %s", line, out)
		require.Contains(t, strings.Replace(out, waits, "", 1), why+then, "%s: %s", line, errOut)
		_, out, _ = ctl(url, strings.Fields(line+" -o json")...)
		require.Contains(t, out, `"witness": "the witness third:10300 does not answer southcentralus (witness: refused)"`, line)
		for _, by := range []string{"override", "policy"} { // The location takes writes already.
			d.status.Locations[1].Epochs.Confirmed, d.status.Locations[1].Epochs.By = true, by
			_, out, _ = ctl(url, strings.Fields(line)...)
			require.Contains(t, out, why, line)
			require.NotContains(t, out, "location confirm", "%s: %s", line, by)
		}
		d.status.Locations[1].Epochs.Confirmed = false
		if strings.Contains(line, "unplanned") {
			_, out, _ = ctl(url, strings.Fields(line+" --without-witness")...)
			require.Contains(t, out, why+then, line)
		}
	}
}

// R20, R21: the plan of an unplanned failover names a primary that answers and takes writes without a lease: no failover stops it.
func TestR20PlanNamesAPrimaryThatGoesOn(t *testing.T) {
	d := newDoomed()
	d.lags(true)
	url := d.port(t)
	const goesOn = "northcentralus takes writes by an operator's word, and goes on: after this failover both locations take writes, until northcentralus " +
		"is stopped, or reaches southcentralus; what it takes meanwhile is not in the copy\n"
	for by, want := range map[string]bool{"override": true, "policy": true, "witness": false, "exchange": false} {
		for i := range d.status.Locations {
			d.status.Locations[i].Epochs = &admin.Epochs{Confirmed: true, By: by}
		}
		_, out, errOut := ctl(url, "failover", "unplanned", "pictures")
		require.Contains(t, out, "account pictures is at northcentralus", errOut)
		require.Equal(t, want, strings.Contains(out, goesOn), "%s: %s", by, out)
	}
}

// R21: an account whose failover waits for the witness is shown with the command that helps, wherever it is shown.
func TestR21AClaimThatWaitsHasAWayOut(t *testing.T) {
	d := newDoomed()
	d.lags(true)
	a := &d.account.Account
	a.FailoverPhase, a.Operation = admin.FailoverClaiming, "an unplanned failover to this location"
	d.status.Accounts = []admin.AccountStatus{{Account: *a}}
	url := d.port(t)
	const out = "if northcentralus is off and stays off: antipodectl failover unplanned pictures --yes --without-witness; else: antipodectl failover end pictures\n"
	lines := []string{"status", "check", "account list", "account show pictures", "why pictures", "failover unplanned pictures --dry-run"}
	for _, line := range lines {
		_, got, errOut := ctl(url, strings.Fields(line)...)
		require.NotEmpty(t, got, "%s: %s", line, errOut)
		require.NotContains(t, got, "--without-witness", "%s: it waits for the lease to end, and goes on by itself", line)
	}
	for line, want := range map[string]string{
		"check":        "an unplanned failover of 1 account from northcentralus to southcentralus is under way, claiming: pictures\n",
		"why pictures": "under way: an unplanned failover to southcentralus\n",
	} {
		_, got, _ := ctl(url, strings.Fields(line)...)
		require.Contains(t, got, want, line)
	}
	a.OperationWaits = "witness: refused"
	d.status.Accounts = []admin.AccountStatus{{Account: *a}}
	for _, line := range lines {
		_, got, _ := ctl(url, strings.Fields(line)...)
		require.Contains(t, got, out, line)
		require.Contains(t, got, "witness: refused", line)
	}
	d.account.OperationWaits = "" // The process that answers about one account need not be the one that carries it out.
	for _, line := range []string{"account list", "account show pictures"} {
		_, got, _ := ctl(url, strings.Fields(line)...)
		require.Contains(t, got, out, line)
	}
	_, got, _ := ctl(url, "failover", "show", "--location", "northcentralus")
	require.Contains(t, got, "3 claiming, 1 withdrawing")
	require.Contains(t, got, "claiming   3 wait for the witness; antipodectl check says whether it answers, and what to do for each; "+
		"failover end --location northcentralus ends all\n")
}

// R21: an account whose primary answers and refuses writes is not shown as available and well alone.
func TestR21RefusedWritesAreShown(t *testing.T) {
	d := newDoomed()
	d.status.Accounts = []admin.AccountStatus{{Account: d.account.Account}}
	url := d.port(t)
	lines := []string{"account show pictures", "why pictures"}
	for _, line := range lines {
		_, out, errOut := ctl(url, strings.Fields(line)...)
		require.NotContains(t, out, "refused", "%s: %s", line, errOut)
	}
	deadWitness(&d.status)
	for _, line := range lines {
		_, out, errOut := ctl(url, strings.Fields(line)...)
		require.Contains(t, out, "writes: refused at northcentralus, without a lease of the witness: antipodectl check\n", "%s: %s", line, errOut)
	}
	d.status.Locations[0].Epochs = &admin.Epochs{Confirmed: true, Refused: []admin.RefusedEpoch{{Account: "pictures"}}}
	for _, line := range lines {
		_, out, _ := ctl(url, strings.Fields(line)...)
		require.Contains(t, out, "writes: refused at northcentralus, since the other location has a later epoch: antipodectl check\n", line)
	}
	d.status.Locations[0].Epochs = &admin.Epochs{UnconfirmedNodes: []string{"northcentralus-2"}}
	_, out, _ := ctl(url, "account", "show", "pictures")
	require.Contains(t, out, "writes: refused at northcentralus-2, without an answer of the other location: antipodectl check\n")
}

// R20: an account of which the former primary takes writes too is shown so where it is shown alone.
func TestR20TwoPrimariesAreShown(t *testing.T) {
	d := newDoomed()
	a := admin.AccountStatus{Account: d.account.Account, FormerEpoch: &admin.Epoch{Number: 1, Location: "southcentralus"}}
	d.status.Accounts = []admin.AccountStatus{a}
	d.status.Locations[1].Epochs = &admin.Epochs{Confirmed: true, By: "override"}
	url := d.port(t)
	const twice = "writes: two primaries: southcentralus, which does not know of the failover, takes writes too, that northcentralus will not have; next: "
	lines := []string{"account show pictures", "why pictures"}
	for link, next := range map[admin.LinkState]string{
		admin.LinkCut: "antipodectl link heal\n",
		admin.LinkUp:  "stop the processes of southcentralus until it reaches northcentralus: docs/runbooks/unplanned-failover.md\n",
	} {
		d.status.Link.State = link
		for _, line := range lines {
			_, out, errOut := ctl(url, strings.Fields(line)...)
			require.Contains(t, out, twice+next, "%s: %s", line, errOut)
		}
	}
	_, out, _ := ctl(url, "account", "show", "pictures", "-o", "json")
	require.Contains(t, out, `"two_primaries": "two primaries: southcentralus, `)
	d.status.Locations[1].Epochs.Refused = []admin.RefusedEpoch{{Account: "pictures"}}
	for _, line := range lines {
		_, out, _ := ctl(url, strings.Fields(line)...)
		require.NotContains(t, out, "two primaries", line)
	}
}

// A dead witness is one line of a status, whatever the nodes add, in the words of check.
//
// Capability: Operation: What operators read while something is broken.
func TestStatusHasOneLineForADeadWitness(t *testing.T) {
	s := manyAccounts(6)
	deadWitness(&s)
	var lines []string
	for _, line := range summary(s) {
		if strings.Contains(line, "witness") || strings.Contains(line, "epochs") {
			lines = append(lines, line)
		}
	}
	require.Equal(t, []string{
		"CRITICAL the witness third:10300 does not answer: writes of accounts that have a copy are refused at northcentralus, southcentralus; " +
			"reads, and accounts without a copy, go on (witness: refused); next: start the witness again (docs/runbooks/witness.md); if it will not be " +
			"back soon: antipodectl location confirm northcentralus --not-promoted, antipodectl location confirm southcentralus --not-promoted",
	}, lines)
	found := check.Status(s)
	require.Len(t, found, 1)
	require.Equal(t, "CRITICAL "+found[0].What+"; next: "+found[0].Next, lines[0])
	for i := range s.Locations {
		s.Locations[i].Epochs.Confirmed, s.Locations[i].Epochs.By = true, "witness"
	}
	require.Contains(t, strings.Join(summary(s), "\n"), "\nWARNING  the witness third:10300 does not answer; northcentralus, southcentralus: a lease still holds, ")
}

// How bad something is goes by all accounts, also where one of them is shown.
func TestStatusOfAnAccountKeepsTheHealth(t *testing.T) {
	s := manyAccounts(3)
	s.Locations[1].Peer, s.Locations[1].Nodes[0].DiskFull = "northcentralus", true
	s.Accounts[2].Secondary = ""
	var b strings.Builder
	writeStatus(&b, s, statusView{account: s.Accounts[2].Name})
	require.Contains(t, b.String(), "CRITICAL southcentralus: disk full on southcentralus-1: ")
	require.NotContains(t, b.String(), s.Accounts[1].Name)
	require.Len(t, s.Accounts, 3)
}
