package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
	"antipode/geo"
)

// R19: the end of a failover is waited for, and the command says what came of it: it ended without effect, it came too late, or it
// still ends, with the command that shows it. A look that finds no failover counts only if the next ones find none either.
func TestR19EndSaysWhatCameOfIt(t *testing.T) {
	at := func(primary, phase, waits string) admin.AccountInfo {
		a := admin.Account{Name: "pictures", Primary: "north", Secondary: "south", FailoverPhase: phase, OperationWaits: waits}
		if primary == "south" {
			a.Primary, a.Secondary = "south", "north"
		}
		return admin.AccountInfo{Account: a}
	}
	for name, c := range map[string]struct {
		looks     []admin.AccountInfo
		code      command.Code
		out, want string
	}{
		"ended": {
			[]admin.AccountInfo{at("north", admin.FailoverDraining, ""), at("north", "", ""), at("north", admin.FailoverEnding, ""), at("north", "", "")},
			command.Done, "account pictures: its failover ended without effect: it is at north as before\n", "",
		},
		"an unplanned one": {
			[]admin.AccountInfo{at("north", admin.FailoverThawing, ""), at("north", admin.FailoverWithdrawing, ""), at("north", "", "")},
			command.Done, "account pictures: its failover ended without effect: it is at north as before\n", "",
		},
		"the witness does not answer": {
			[]admin.AccountInfo{at("north", admin.FailoverThawing, ""), at("north", admin.FailoverWithdrawing, "witness: refused")},
			command.Done, "account pictures: its failover ended without effect: it is at north as before\n" +
				"until the witness has forgotten its claim north refuses writes of it, and another failover begins only with --without-witness\n" +
				"it cannot go on now: witness: refused\nnext: start the witness again (docs/runbooks/witness.md); " +
				"if north is off and stays off: antipodectl failover unplanned pictures --yes --without-witness\n", "",
		},
		"too late": {
			[]admin.AccountInfo{at("north", admin.FailoverOffered, ""), at("south", "", "")},
			command.Failed, "", "too late: south had taken account pictures, which has moved there",
		},
		"it goes on": {
			[]admin.AccountInfo{at("north", admin.FailoverOffered, ""), at("north", "", ""), at("south", admin.FailoverTaken, "")},
			command.Failed, "", "too late: south has taken account pictures, and the move goes on: antipodectl account show pictures",
		},
		"offered for long": {
			[]admin.AccountInfo{at("north", admin.FailoverOffered, "")},
			command.Failed, "", "the failover of pictures has not ended yet, and goes on ending: whether south has taken it is not known: antipodectl account show pictures",
		},
		"ending for long": {
			[]admin.AccountInfo{at("north", admin.FailoverEnding, "rpc error: code = Internal desc = no leader")},
			command.Failed, "", "the failover of pictures has not ended yet, and goes on ending, in the phase ending: no leader: antipodectl account show pictures",
		},
	} {
		t.Run(name, func(t *testing.T) {
			looked := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_ = json.NewEncoder(w).Encode(c.looks[min(looked, len(c.looks)-1)])
				looked++
			}))
			t.Cleanup(srv.Close)
			code, out, errOut := ctlWithoutWaits(t, srv.URL, "failover end pictures")
			require.Equal(t, c.code, code, errOut)
			require.Equal(t, c.out, out)
			require.Contains(t, errOut, c.want)
		})
	}
}

// The end of a location's failover that ends already is waited for, and not asked for again, which its location would refuse.
func TestR19EndOfALocationThatEnds(t *testing.T) {
	phase := admin.LocationEnding
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/status":
			_ = json.NewEncoder(w).Encode(admin.Status{Locations: []admin.Location{{Name: "north"}}})
		case r.Method != http.MethodGet:
			t.Errorf("asked again: %s", r.URL)
		default:
			_ = json.NewEncoder(w).Encode(admin.LocationFailover{From: "north", To: "south", Phase: phase, Reason: "an operator ended it"})
			phase = admin.LocationOver
		}
	}))
	defer srv.Close()
	code, out, errOut := ctlWithoutWaits(t, srv.URL, "failover end --location north")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "ended      an operator ended it\n")
}

// A planned failover of an account that ends without effect says why, as that of a location does: the record of the account has
// forgotten it, and the newest event of its primary has it, unless that is of an earlier one.
func TestR19PlannedFailoverSaysWhyItEnded(t *testing.T) {
	event := func(kind, why string) admin.Event {
		return admin.Event{Kind: kind, Account: "pictures", Location: "north", Reason: "north to south, epoch 3@north" + why}
	}
	begun, ended := event(kindBegun, ": without the witness"), event(kindEnded, ": its time was over while 900 bytes were on their way to south")
	other, earlier, there := ended, ended, ended
	other.Account, other.Reason = "music", "north to south, epoch 3@north: of another account"
	earlier.Reason = "north to south, epoch 1@north: of an earlier epoch"
	there.Location = "south"
	for want, events := range map[string][]admin.Event{
		"its time was over while 900 bytes were on their way to south: antipodectl why pictures\n":                     {other, ended, begun},
		"its time was over while the disk of south was full: antipodectl nodes\n":                                      {event(kindEnded, ": its time was over while the disk of south was full: antipodectl nodes"), begun},
		"why is not known here: antipodectl events\n":                                                                  {begun, ended},
		"it is at north as before: why is not known here: antipodectl events\n":                                        {earlier},
		"the failover of pictures ended without effect: it is at north as before: why is not known here: antipodectl ": {there},
	} {
		mux := http.NewServeMux()
		account := admin.AccountInfo{Account: admin.Account{
			Name: "pictures", Redundancy: "GRS", Primary: "north", Secondary: "south", Epoch: admin.Epoch{Number: 3, Location: "north"},
		}}
		mux.HandleFunc("/v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(account) })
		mux.HandleFunc("/v1/accounts/pictures/lag", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(admin.Lag{}) })
		mux.HandleFunc("/v1/accounts/pictures/update", func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(admin.AccountUpdated{AccountInfo: account})
		})
		mux.HandleFunc("/v1/events", func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(admin.EventList{Events: events})
		})
		srv := httptest.NewServer(mux)
		code, _, errOut := ctlWithoutWaits(t, srv.URL, "failover start pictures --yes")
		require.Equal(t, command.Failed, code)
		require.Contains(t, errOut, want)
		for i := range events { // An unplanned one is carried out by the secondary.
			events[i].Location = map[geo.Location]geo.Location{"north": "south", "south": "north"}[events[i].Location]
		}
		_, _, errOut = ctlWithoutWaits(t, srv.URL, "failover unplanned pictures --yes")
		require.Contains(t, errOut, want)
		srv.Close()
	}
}

// ctlWithoutWaits is ctl whose pauses take no time, but are on its clock.
func ctlWithoutWaits(t *testing.T, url, line string) (code command.Code, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	tl := newTool(func(name string) string {
		return map[string]string{adminEnv: url, tokenEnv: "antipode-admin-" + strings.Repeat("0", 64)}[name]
	}, &o, &e)
	now := time.Duration(0)
	tl.mono = func() time.Duration { return now }
	tl.after = func(d time.Duration) <-chan time.Time {
		now += d
		c := make(chan time.Time, 1)
		c <- time.Time{}
		return c
	}
	code = tl.run(t.Context(), strings.Fields(line))
	return code, o.String(), e.String()
}
