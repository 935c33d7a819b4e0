package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/client/admin"
	"antipode/client/command"
	"antipode/geo"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files; then read the diff")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// statusDocument is the golden of api/admin: what a real port answers.
const statusDocument = "../../server/operator/testdata/status.golden.json"

// port is an admin port with canned answers.
func port(t *testing.T) *httptest.Server {
	t.Helper()
	status, err := os.ReadFile(statusDocument)
	require.NoError(t, err)
	mux := http.NewServeMux()
	answer := func(pattern string, status int, doc any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(doc)
		})
	}
	account := admin.AccountInfo{
		Account: admin.Account{
			Name: "pictures", Redundancy: "RA-GRS", Primary: "southcentralus", Secondary: "northcentralus",
			Epoch: admin.Epoch{Number: 1, Location: "southcentralus"},
		},
		Endpoints: []admin.Endpoint{
			{Service: "blob", Primary: "http://127.0.0.1:10000/pictures", Secondary: "http://127.0.0.1:10000/pictures-secondary"},
			{Service: "table", Primary: "http://127.0.0.1:10002/pictures", Secondary: "http://127.0.0.1:10002/pictures-secondary"},
		},
	}
	local := admin.AccountInfo{Account: admin.Account{
		Name: "abc", Redundancy: "LRS", Primary: "northcentralus", Epoch: admin.Epoch{Number: 12, Location: "northcentralus"},
	}}
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(status) })
	moving := local
	moving.Name, moving.Operation, moving.FailoverPhase = "ledger", "a planned failover to southcentralus", admin.FailoverClosing
	answer("GET /v1/accounts", 200, admin.AccountList{Accounts: []admin.AccountInfo{local, moving, account}})
	answer("GET /v1/accounts/pictures", 200, account)
	answer("GET /v1/accounts/"+string(local.Name), 200, local)
	answer("POST /v1/accounts/pictures/update", 200, admin.AccountUpdated{AccountInfo: account})
	waits := local
	waits.Operation = "the change to LRS: the other location has not deleted its copy yet"
	answer("POST /v1/accounts/"+string(local.Name)+"/update", 200, admin.AccountUpdated{AccountInfo: waits, Behind: "the link is cut"})
	answer("POST /v1/locations/northcentralus/copies/alone", 200, admin.CopyAlone{
		Account: "pictures", Location: "northcentralus", Rows: 12, Bytes: 3400, PayloadBytes: 1 << 20, Streams: 3,
		Newest: admin.Time{Time: time.Date(2026, 11, 21, 15, 4, 5, 0, time.UTC)},
	})
	ahead := account
	ahead.Name = "ahead"
	answer("GET /v1/accounts/ahead", 200, ahead)
	answer("POST /v1/accounts/ahead/update", 409, admin.ErrorDocument{Error: admin.Error{
		Code: admin.CodeSecondaryAhead, Message: "could not rebuild account ahead: its copy is ahead: antipodectl fork resolve ahead --keep northcentralus",
	}})
	percent, speed, left := 62.6, 1.5e6, 2148.4
	copying := local
	copying.Name, copying.Operation = "filling", "the first copy of its data at the other location (bootstrap)"
	copying.Copied = &admin.Copied{
		CopySize: admin.CopySize{Rows: 1200, Bytes: 340_000, PayloadBytes: 5 << 30},
		Total:    &admin.CopySize{Rows: 2000, Bytes: 700_000, PayloadBytes: 8 << 30}, Percent: &percent,
		BytesPerSecond: &speed, SecondsLeft: &left, WaitingBytes: 3 << 20,
	}
	answer("GET /v1/accounts/filling", 200, copying)
	begins := copying
	begins.OperationWaits = "the count of its rows: row 02031234: blobs: malformed block"
	begins.Name, begins.Copied = "begins", &admin.Copied{CopySize: admin.CopySize{Rows: 3, Bytes: 700}}
	answer("GET /v1/accounts/begins", 200, begins)
	answer("GET /v1/accounts/begins/keys", 200, admin.Keys{Name: "begins", Key1: "a2V5MQ==", Key2: "a2V5Mg=="})
	answer("GET /v1/accounts/filling/keys", 200, admin.Keys{Name: "filling", Key1: "a2V5MQ==", Key2: "a2V5Mg=="})
	copying.Copied.BytesPerSecondMax = 2 << 20
	answer("POST /v1/accounts/filling/update", 200, admin.AccountUpdated{AccountInfo: copying, Behind: "under way: " + copying.Operation})
	answer("GET /v1/accounts/pictures/keys", 200, admin.Keys{Name: "pictures", Key1: "a2V5MQ==", Key2: "a2V5Mg=="})
	mux.HandleFunc("POST /v1/accounts", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if want := `{"name":"pictures","location":"southcentralus","key1":"a2V5MQ=="}`; string(b) != want {
			http.Error(w, "got "+string(b), http.StatusTeapot)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(account)
	})
	reservation := admin.Reservation{
		Name: "music", Location: "southcentralus", Kind: admin.KindReservation, Primary: "northcentralus",
		Epoch: admin.Epoch{Number: 2, Location: "northcentralus"}, AgeSeconds: 83.5, Waits: "location northcentralus does not answer",
	}
	silent := admin.Reservations{Reservations: []admin.Reservation{reservation}, SilentLocations: []geo.Location{"northcentralus"}}
	fork := admin.Fork{
		Stream: "pictures/1@northcentralus/r4/l17", Account: "pictures", Epoch: admin.Epoch{Number: 1, Location: "northcentralus"}, Range: 4, Lane: 17,
		Service: "table", Location: "northcentralus", Side: admin.SideSource, Reason: "forked",
		Here: admin.RecordHead{Number: 41, Hash: "00c0ffee00c0ffee"}, Since: admin.Time{Time: time.Date(2026, 11, 21, 15, 4, 5, 0, time.UTC)},
	}
	there := fork
	there.Location, there.Side, there.There = "southcentralus", admin.SideReceiver, fork.Here
	there.Here = admin.RecordHead{Number: 42, Hash: "0123456789abcdef"}
	other := there
	other.Stream, other.Account, other.Lane, other.Reason = "music/1@northcentralus/r4/l2", "music", 2, "lost"
	answer("GET /v1/accounts/pictures/lag", 200, lagDocument(fork.Since))
	answer("GET /v1/accounts/pictures/why", 200, whyDocument(fork.Since))
	answer("GET /v1/accounts/pictures/geo", 200, admin.GeoReplication{
		Account: "pictures", Primary: account.Primary, StatusOfPrimary: admin.LocationAvailable, Secondary: account.Secondary,
		StatusOfSecondary: admin.LocationAvailable, LastGeoFailoverTime: fork.Since, Stats: &admin.GeoReplicationStats{
			Status: admin.Live, LastSyncTime: fork.Since, CanFailover: true, PostFailoverRedundancy: "Standard_RAGRS", PostPlannedFailoverRedundancy: "Standard_RAGRS",
		},
	})
	answer("GET /v1/accounts/scratch/lag", 200, admin.Lag{Account: "scratch", Primary: "northcentralus"})
	answer("GET /v1/accounts/music/lag", 200, admin.Lag{
		Account: "music", Primary: "northcentralus", Secondary: "southcentralus",
		Services: []admin.ServiceLag{{ServiceStatus: admin.ServiceStatus{Service: "queue", Status: admin.Live}}},
	})
	answer("POST /v1/accounts/pictures/verify", 200, verifyDocument())
	answer("POST /v1/accounts/music/verify", 409, admin.ErrorDocument{Error: admin.Error{
		Code: admin.CodeNoSecondary, Message: `account music is LRS: it has one copy, and nothing to compare it with`,
	}})
	answer("GET /v1/events", 200, admin.EventList{Events: []admin.Event{
		{Number: 3, Time: fork.Since, Location: "southcentralus", Kind: "live", Account: "pictures", Service: "table"},
		{Number: 2, Time: fork.Since, Location: "southcentralus", Kind: "unavailable", Account: "pictures", Service: "table", Reason: "clock"},
		{Number: 1, Time: fork.Since, Location: "southcentralus", Kind: "left-in-sync", Node: "southcentralus-2", Range: 4, Replica: 7, Reason: "slow"},
	}})
	answer("GET /v1/forks", 200, admin.Forks{Forks: []admin.Fork{other, fork, there}, Silent: []string{"the blob range of northcentralus"}})
	for _, l := range []geo.Location{"northcentralus", "southcentralus"} {
		answer("POST /v1/locations/"+string(l)+"/forks/resume", 200, admin.Resumed{Stream: fork.Stream, Location: l, Reason: "version"})
	}
	answer("POST /v1/locations/northcentralus/forks/resolve", 200, admin.ForkResolved{Stream: fork.Stream, Service: "table", Keep: "northcentralus", State: "settling"})
	answer("POST /v1/locations/southcentralus/found/list", 200, admin.Found{Location: "southcentralus", Rows: []admin.FoundRow{{
		Key: "0204", Account: "pictures", Settlement: fork.Stream + "#44", Service: "table", Container: "people", Object: "Smith", Row: "Ann",
		Kept: fork.Since, Bytes: 87,
	}}})
	answer("POST /v1/locations/southcentralus/found/drop", 200, admin.FoundDropped{Dropped: 1})
	answer("GET /v1/reservations", 200, silent)
	mux.HandleFunc("POST /v1/cluster/finalize", func(w http.ResponseWriter, r *http.Request) {
		var in admin.Finalize
		_ = json.NewDecoder(r.Body).Decode(&in)
		if in.Level != nil && *in.Level == 0 {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(admin.ErrorDocument{Error: admin.Error{Code: "InvalidInput", Message: "cannot finalize the upgrade: there is no feature level 0: there are 1 to 2"}})
			return
		}
		out := admin.Finalized{Level: 2, Raised: in.Level == nil, Locations: []geo.Location{"northcentralus", "southcentralus"}}
		if !out.Raised { // The nodes may know more than the level that was asked for.
			out.Level, out.Locations = *in.Level, out.Locations[:*in.Level]
		}
		_ = json.NewEncoder(w).Encode(out)
	})
	answer("POST /v1/reservations/music/free", 200, silent)
	answer("POST /v1/reservations/pictures/free", 409, admin.ErrorDocument{Error: admin.Error{
		Code: "AccountAlreadyExists", Message: `could not free account "pictures": account pictures is complete`,
	}})
	answer("POST /v1/nodes/northcentralus-2/stop", 200, admin.Changed{Name: "northcentralus-2", State: admin.Stopped})
	answer("POST /v1/nodes/northcentralus-2/start", 409, admin.ErrorDocument{Error: admin.Error{
		Code: "NodeRunning", Message: "could not start node northcentralus-2: it runs already, nothing is to do",
	}})
	answer("POST /v1/locations/northcentralus/stop", 200, admin.Changed{Name: "northcentralus", State: admin.Stopped})
	answer("POST /v1/locations/northcentralus/start", 200, admin.Changed{Name: "northcentralus", State: admin.Running})
	answer("POST /v1/locations/northcentralus/ranges/4/recover", 200, admin.RangeRecovered{
		Location: "northcentralus", Range: 4, Recovery: "recovery 1, from node 2", Survivor: "northcentralus-2", Replica: 4402341478401,
		KeptIndex: 1042, KeptTerm: 7, KnownCommitted: 1040, LostIndex: 1050, SilentNodes: []string{"northcentralus-1", "northcentralus-3"},
	})
	mux.HandleFunc("POST /v1/locations/northcentralus/ranges/3/recover", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if want := `{"accept_loss":true,"without_pair":true}`; string(b) != want {
			http.Error(w, "got "+string(b), http.StatusTeapot)
			return
		}
		_ = json.NewEncoder(w).Encode(admin.RangeRecovered{
			Location: "northcentralus", Range: 3, Survivor: "northcentralus-2", Trusted: true, KeptIndex: 7, KeptTerm: 2, TimesUnchecked: true,
		})
	})
	mux.HandleFunc("POST /v1/locations/northcentralus/ranges/1/recover", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if want := `{"accept_loss":false,"dry_run":true}`; string(b) != want {
			http.Error(w, "got "+string(b), http.StatusTeapot)
			return
		}
		_ = json.NewEncoder(w).Encode(admin.RangeRecovered{
			Location: "northcentralus", Range: 1, Survivor: "northcentralus-3", Trusted: true, KeptIndex: 42, KeptTerm: 2, KnownCommitted: 42, DryRun: true,
			GivenUp: []admin.GivenUp{
				{Node: "northcentralus-1", Index: 23, Term: 3, Reason: "replica lost fsynced entries; it takes no further part: its disk was set back"},
				{Node: "northcentralus-2", Index: 42, Term: 2},
			},
		})
	})
	answer("POST /v1/locations/northcentralus/ranges/2/recover", 409, admin.ErrorDocument{Error: admin.Error{
		Code: "QuorumPresent", Message: "could not recover range 2 of northcentralus: nothing to recover: nodes [1 2] hold trusted replicas",
	}})
	answer("POST /v1/locations/northcentralus/epochs/override", 200, admin.Epochs{
		Confirmed: true, By: "override", Refused: []admin.RefusedEpoch{{Account: "music"}},
	})
	whole := admin.LocationFailover{
		From: "northcentralus", To: "southcentralus", Type: admin.FailoverPlanned, Phase: admin.LocationOver, Round: 3, Begun: fork.Since, Over: fork.Since,
		Waiting: 1, Moving: map[string]int{}, Moved: 9999, Alone: 2, Refused: 22,
		RefusedAccounts: []admin.RefusedFailover{{Account: "music", Why: "OperationInProgress: an operation is under way"}},
		Reason:          "account music: OperationInProgress: an operation is under way: antipodectl account show music",
	}
	answer("POST /v1/locations/northcentralus/failover", 200, whole)
	answer("GET /v1/locations/northcentralus/failover", 200, whole)
	answer("GET /v1/locations/southcentralus/failover", 200, admin.LocationFailover{Moving: map[string]int{}})
	answer("POST /v1/locations/southcentralus/failover", 200, admin.LocationFailover{ // To a dry run.
		From: "northcentralus", To: "southcentralus", Type: admin.FailoverUnplanned, Waiting: 1, Moving: map[string]int{}, Refused: 1,
		RefusedAccounts: []admin.RefusedFailover{{Account: "music", Why: "InvalidInput: a range was recovered with a loss"}},
	})
	answer("POST /v1/link/cut", 200, admin.Link{State: admin.LinkCut})
	answer("POST /v1/link/heal", 200, admin.Link{State: admin.LinkUp})
	answer("POST /v1/link/delay", 200, admin.Link{State: admin.LinkDelayed, DelaySeconds: 5})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv
}

// ctl runs a command line with url and a token in the environment.
func ctl(url string, args ...string) (code command.Code, out, errOut string) {
	var o, e bytes.Buffer
	env := func(name string) string {
		return map[string]string{adminEnv: url, tokenEnv: "antipode-admin-" + strings.Repeat("0", 64)}[name]
	}
	c := newTool(env, &o, &e)
	c.now = func() time.Time { return time.Date(2026, 11, 21, 15, 4, 6, 0, time.UTC) }
	code = c.run(context.Background(), append([]string{}, args...)) // Cobra takes the arguments of the test for nil.
	return code, o.String(), e.String()
}

// TestGolden freezes what every command prints and its exit code: scripts and the
// the quick start's tour stand on it.
//
// Capability: Operation: A node that failed or could not be opened is an alarm.
func TestGolden(t *testing.T) {
	srv := port(t)
	for name, line := range map[string]string{
		"status":                    "status",
		"status-all":                "status --all",
		"status-account":            "status --account devstoreaccount1",
		"status-account-missing":    "status --account nobody",
		"check":                     "check",
		"check-json":                "check --output json",
		"help-check":                "check --help",
		"nodes":                     "nodes",
		"nodes-json":                "nodes --output json",
		"help-nodes":                "nodes --help",
		"events":                    "events",
		"events-json":               "events --output json",
		"lag":                       "lag pictures",
		"lag-json":                  "lag pictures --service table --partition people/smith -o json",
		"lag-lrs":                   "lag scratch",
		"lag-none":                  "lag music --service queue",
		"why":                       "why pictures",
		"why-json":                  "why pictures --threshold 5s -o json",
		"help-why":                  "why --help",
		"help-lag":                  "lag --help",
		"verify":                    "verify pictures",
		"verify-json":               "verify pictures -o json",
		"verify-refused":            "verify music --service blob",
		"verify-usage":              "verify pictures --service file",
		"help-verify":               "verify --help",
		"account-create":            "account create pictures --location southcentralus --key1 a2V5MQ==",
		"account-update":            "account update pictures --redundancy RA-GRS",
		"account-update-lrs":        "account update pictures --redundancy LRS",
		"account-update-lrs-yes":    "account update pictures --redundancy standard_lrs --yes",
		"account-update-behind":     "account update abc --redundancy LRS",
		"account-update-json":       "account update pictures --redundancy RA-GRS -o json",
		"help-account-update":       "account update --help",
		"account-create-json":       "account create pictures --location southcentralus --key1 a2V5MQ== -o json",
		"account-list":              "account list",
		"account-list-json":         "account list --output json",
		"account-show":              "account show pictures",
		"account-show-filling":      "account show filling",
		"account-show-begins":       "account show begins",
		"account-rebuild":           "account rebuild pictures",
		"account-rebuild-yes":       "account rebuild pictures --yes",
		"account-rebuild-json":      "account rebuild pictures --force pictures --output json",
		"account-rebuild-other":     "account rebuild pictures --force filling",
		"account-rebuild-refused":   "account rebuild ahead",
		"account-rate":              "account rate filling 20MiB",
		"account-rate-none":         "account rate filling fast",
		"help-account-rebuild":      "account rebuild --help",
		"account-show-json":         "account show pictures --output json",
		"account-keys":              "account keys pictures",
		"account-missing":           "account show nobody",
		"account-reservations":      "account reservations",
		"account-reservations-json": "account reservations --output json",
		"account-free":              "account free music --yes",
		"account-free-refused":      "account free pictures --yes",
		"help-account-free":         "account free --help",
		"fork-list":                 "fork list",
		"fork-list-json":            "fork list --output json",
		"fork-show":                 "fork show pictures",
		"fork-show-stream":          "fork show music/1@northcentralus/r4/l2",
		"fork-show-none":            "fork show nobody",
		"fork-resume":               "fork resume pictures/1@northcentralus/r4/l17",
		"fork-resume-none":          "fork resume nobody/1@northcentralus/r4/l17",
		"fork-resolve":              "fork resolve pictures --keep northcentralus",
		"fork-resolve-none":         "fork resolve nobody --keep northcentralus",
		"fork-resolve-keep":         "fork resolve pictures",
		"fork-found-list":           "fork found list southcentralus",
		"fork-found-list-json":      "fork found list southcentralus --account pictures --output json",
		"fork-found-drop":           "fork found drop southcentralus pictures --yes",
		"fork-found-drop-dry":       "fork found drop southcentralus pictures",
		"fork-found-drop-json":      "fork found drop southcentralus pictures --yes -o json",
		"help-fork-found-drop":      "fork found drop --help",
		"help-lost-drop":            "lost drop --help",
		"help-fork-resolve":         "fork resolve --help",
		"help-fork-found":           "fork found --help",
		"help-fork-resume":          "fork resume --help",
		"help-fork-list":            "fork list --help",
		"node-stop":                 "node stop northcentralus-2",
		"node-stop-json":            "node stop northcentralus-2 --output json",
		"node-start-refused":        "node start northcentralus-2",
		"failover-plan-location":    "failover check --location northcentralus",
		"failover-plan-json":        "failover check --location northcentralus -o json",
		"failover-planned-dry":      "failover start --location northcentralus",
		"failover-planned-location": "failover start --location northcentralus --yes",
		"failover-show-location":    "failover show --location northcentralus",
		"failover-show-none":        "failover show --location southcentralus",
		"failover-end-over":         "failover end --location northcentralus",
		"failover-end-dry":          "failover end pictures --dry-run",
		"help-failover-start":       "failover start --help",
		"location-confirm":          "location confirm northcentralus --not-promoted",
		"location-confirm-refused":  "location confirm northcentralus",
		"help-location-confirm":     "location confirm --help",
		"location-stop":             "location stop northcentralus",
		"location-start":            "location start northcentralus",
		"range-recover":             "range recover northcentralus 4 --accept-loss",
		"range-recover-dry":         "range recover northcentralus 1 --dry-run --accept-loss",
		"range-recover-unasked":     "range recover northcentralus 1",
		"range-recover-named":       "range recover northcentralus table --accept-loss",
		"range-recover-none":        "range recover northcentralus queue",
		"account-missing-json":      "account show nobody --output json",
		"usage-json":                "account create --output json",
		"range-recover-json":        "range recover northcentralus 4 --accept-loss --output json",
		"range-recover-quorum":      "range recover northcentralus 2 --accept-loss --untrusted",
		"range-recover-alone":       "range recover northcentralus 3 --accept-loss --without-pair",
		"help-range-recover":        "range recover --help",
		"link-cut":                  "link cut",
		"link-heal":                 "link heal",
		"link-delay":                "link delay 5s",
		"cluster-finalize":          "cluster finalize --without northcentralus-3",
		"cluster-finalize-again":    "cluster finalize --level 2",
		"cluster-finalize-alone":    "cluster finalize --level 1",
		"cluster-finalize-none":     "cluster finalize --level 0",
		"help-cluster-finalize":     "cluster finalize --help",
		"help":                      "",
		"help-status":               "status --help",
		"help-account-create":       "help account create",
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := ctl(srv.URL, strings.Fields(line)...)
			got := fmt.Sprintf("$ antipodectl %s\n%s", line, out)
			if errOut != "" {
				got += "--- stderr\n" + strings.ReplaceAll(errOut, srv.URL, "http://ADMIN")
			}
			got += fmt.Sprintf("--- exit %d\n", code)
			file := filepath.Join("testdata", name+".golden")
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

// TestNodeAlarms: the status has a line for each node that does not serve though nobody stopped it, and counts them
// beside the alarms of streams; so an operator who reads "none" has none.
//
// Capability: Operation: A node that failed or could not be opened is an alarm.
func TestNodeAlarms(t *testing.T) {
	write := func(streams map[string]uint64, nodes ...admin.Node) string {
		var b strings.Builder
		writeStatus(&b, admin.Status{Alarms: streams, Locations: []admin.Location{{Name: "north", Nodes: nodes}, {Name: "south", Nodes: []admin.Node{{State: admin.Running}}}}}, statusView{})
		return b.String()
	}
	require.Contains(t, write(nil, admin.Node{Name: "north-1", State: admin.Running}, admin.Node{Name: "north-2", State: admin.Stopped}), "alarms   none\nWARNING  north: 1 of 2 nodes is stopped: north-2; next: antipodectl node start north-2\n\n")
	require.Contains(t, write(map[string]uint64{"gap": 2}, admin.Node{Name: "north-1", State: admin.Failed, OutOfService: "its disk: replace it"},
		admin.Node{Name: "north-2", State: admin.Unreachable}, admin.Node{Name: "north-3", State: admin.Failed}, admin.Node{Name: "north-4", State: admin.Running}), `alarms   nodes that do not serve 3, gap 2
WARNING  north-1 is out of service: its disk: replace it
WARNING  north-2 does not answer: see its process, and its log
WARNING  north-3 is out of service: its log says why
`)
	require.NotContains(t, write(nil, admin.Node{Name: "north-1", State: admin.Unreachable}), "north-1", "the location is unreachable, as its row says")
}

// TestStatusJSON: the JSON of status is the server's document, byte for byte.
func TestStatusJSON(t *testing.T) {
	want, err := os.ReadFile(statusDocument)
	require.NoError(t, err)
	code, out, errOut := ctl(port(t).URL, "status", "--output", "json")
	require.Equal(t, command.Done, code)
	require.Equal(t, string(want), out)
	require.Empty(t, errOut)
}

// TestUsage: a wrong command line prints one line, exits 2, and sends
// nothing: the server fails the test when it is called.
func TestUsage(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("called: %s %s", r.Method, r.URL)
	}))
	defer srv.Close()
	for line, says := range map[string]string{
		"nonsense":                              `antipodectl has no command "nonsense"`,
		"status now":                            `antipodectl status does not take "now"`,
		"status --wat":                          "unknown flag: --wat",
		"status --output yaml":                  `--output is text or json, not "yaml"`,
		"status --watch --interval 1ms":         "--interval is at least 100ms",
		"status --watch --interval soon":        "invalid argument",
		"why pictures --threshold 0s":           "--threshold is a time above zero",
		"lag":                                   "needs ACCOUNT",
		"lag pictures --service file":           `--service is blob, queue or table, not "file"`,
		"lag pictures --partition people/smith": "--partition needs --service",
		"status --interval 1s":                  "--interval goes with --watch",
		"status --admin 127.0.0.1:10080":        `"127.0.0.1:10080" is no admin URL`,
		"account nonsense":                      `antipodectl account has no command "nonsense"`,
		"account create":                        "needs NAME",
		"account create pictures":               "needs --location LOCATION",
		"account update pictures":               "needs one of --redundancy REDUNDANCY and --when-late POLICY",
		"account update pictures --redundancy GRS --when-late slow": "needs one of",
		"account update --redundancy GRS":                           "needs NAME",
		"account create a b --location x":                           `does not take "b"`,
		"account show":                                              "needs NAME",
		"account keys":                                              "needs NAME",
		"failover start --yes":                                      "needs ACCOUNT",
		"failover start a --yes --within 61m":                       "--within is a time above 0, an hour at most",
		"failover start a --location b":                             `does not take "a"`,
		"failover check a --to b":                                   "--to goes with --location",
		"failover end --location a --to a":                          "are two locations",
		"failover show":                                             "needs --location",
		"node stop":                                                 "needs NODE",
		"node restart x":                                            `has no command "restart"`,
		"location stop":                                             "needs LOCATION",
		"link delay":                                                "needs DURATION",
		"link delay 5":                                              `"5" is no delay`,
		"link delay 0s":                                             `"0s" is no delay`,
		"link cut now":                                              `does not take "now"`,
		"range recover northcentralus":                              "needs LOCATION RANGE",
		"account free music":                                        "--yes",
		"range recover northcentralus file --accept-loss":           `"file" is no range`,
		"account rate pictures 20MB":                                `"20MB" is no size`,
		"verify pictures --rate much":                               `"much" is no size`,
		"link nonsense":                                             `has no command "nonsense"`,
		"account create pictures --location=":                       "needs --location LOCATION",
		"account create pictures --location a --key3 x":             "unknown flag: --key3",
	} {
		code, out, errOut := ctl(srv.URL, strings.Fields(line)...)
		require.Equal(t, command.Usage, code, line)
		require.Empty(t, out, line)
		require.Contains(t, errOut, says, line)
		require.Contains(t, errOut, "--help shows how", line)
		require.Equal(t, 1, strings.Count(errOut, "\n"), errOut)
	}
}

// TestServerDown: one line names the URL and how to start a server; exit 1.
func TestServerDown(t *testing.T) {
	const url = "http://127.0.0.1:1"
	for _, line := range []string{"status", "status --watch", "account list", "link cut", "node stop northcentralus-1"} {
		code, out, errOut := ctl(url, strings.Fields(line)...)
		require.Equal(t, command.Failed, code, line)
		require.Empty(t, out, line)
		require.Equal(t, "antipodectl: no server answers at "+url+
			": see that it runs, or name another with --admin URL or ANTIPODE_ADMIN\n", errOut)
	}
}

// An error in JSON has the code of the server, or one that says whether anything happened.
func TestErrorsHaveCodes(t *testing.T) {
	code, out, errOut := ctl("http://127.0.0.1:1", "status", "--output", "json")
	require.Equal(t, command.Failed, code)
	require.Empty(t, out)
	require.Equal(t, "Unreachable", errorCode(t, errOut))
	code, _, errOut = ctl(port(t).URL, "node", "start", "northcentralus-2", "--output", "json")
	require.Equal(t, command.Failed, code)
	require.Equal(t, "NodeRunning", errorCode(t, errOut))
	require.Equal(t, "Interrupted", codeOf(command.Tried(context.Canceled)))
	require.Equal(t, "Partial", codeOf(&command.Error{Code: command.Partial, Err: io.EOF}))
}

// errorCode is the code of the only line of an error in JSON.
func errorCode(t *testing.T, line string) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(line, "\n"), line)
	var doc admin.ErrorDocument
	require.NoError(t, json.Unmarshal([]byte(line), &doc))
	require.NotEmpty(t, doc.Error.Message)
	return doc.Error.Code
}

// TestWhichServer: --admin wins over the environment, which wins over the default.
func TestWhichServer(t *testing.T) {
	srv := port(t)
	code, _, _ := ctl("http://127.0.0.1:1", "status", "--admin", srv.URL)
	require.Equal(t, command.Done, code)
	tl := newTool(func(string) string { return "" }, io.Discard, io.Discard)
	tl.output = "text"
	require.NoError(t, tl.prepare())
	require.Equal(t, "http://127.0.0.1:10080", tl.client.URL())
}

// TestWatch: a watch goes on while the server is away, and ends well when the user
// interrupts it.
func TestWatch(t *testing.T) {
	status, err := os.ReadFile(statusDocument)
	require.NoError(t, err)
	looks := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if looks++; looks == 2 {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		_, _ = w.Write(status)
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var out, errOut bytes.Buffer
	tl := newTool(func(string) string { return srv.URL }, &out, &errOut)
	var waits []time.Duration
	tl.after = func(d time.Duration) <-chan time.Time {
		if waits = append(waits, d); len(waits) == 3 {
			cancel()
			return nil
		}
		c := make(chan time.Time, 1)
		c <- time.Time{}
		return c
	}
	require.Equal(t, command.Done, tl.run(ctx, []string{"status", "--watch", "--interval", "2s", "-o", "json"}))
	require.Equal(t, string(status)+string(status), out.String())
	require.Equal(t, 1, strings.Count(errOut.String(), "\n"))
	require.Contains(t, errOut.String(), "502 Bad Gateway")
	require.Equal(t, []time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second}, waits)
}

// TestOtherVersion: a document of another version is not shown as if understood;
// as JSON it passes.
func TestOtherVersion(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"version":2}`)
	}))
	defer srv.Close()
	code, out, errOut := ctl(srv.URL, "status")
	require.Equal(t, command.Failed, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "speaks status version 2")
	code, out, _ = ctl(srv.URL, "status", "-o", "json")
	require.Equal(t, command.Done, code)
	require.JSONEq(t, `{"version":2}`, out)
}

// TestEveryCommandHasHelp: each command has a short text and examples, and a topic, which does nothing, its text.
func TestEveryCommandHasHelp(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		require.NotEmpty(t, c.Short, c.CommandPath())
		if c.IsAdditionalHelpTopicCommand() {
			require.NotEmpty(t, c.Long, c.CommandPath())
			return
		}
		require.Contains(t, c.Example, "antipodectl", c.CommandPath())
		for _, s := range c.Commands() {
			walk(s)
		}
	}
	walk(newTool(os.Getenv, io.Discard, io.Discard).root())
}

// TestFigures: a lag is never shown smaller, nor a Last Sync Time later, than it is.
func TestFigures(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0.000s", 0.213: "0.213s", 0.2131: "0.214s", 5: "5.000s", 59.9999: "60.000s",
		60: "1m0s", 75.2: "1m16s", 7200: "2h0m0s", 1e12: "1e+12s",
	} {
		require.Equal(t, want, span(seconds))
	}
	for bytes, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3456: "3.4 KiB", 5 << 30: "5.0 GiB", 1<<64 - 1: "16.0 EiB",
	} {
		require.Equal(t, want, size(bytes))
	}
	require.Equal(t, "2026-11-21T15:04:05.999Z", instant(admin.Time{Time: time.Date(2026, 11, 21, 15, 4, 5, 999_999_900, time.UTC)}))
}

// TestFirstScreen: an operator woken by an alarm finds the three commands to begin with before anything else, and
// each of them exists. Every command is in a group, within the lines of a terminal; breaking things comes last.
func TestFirstScreen(t *testing.T) {
	_, out, _ := ctl("")
	code, long, _ := ctl("", "--help")
	require.Equal(t, command.Done, code)
	require.Equal(t, out, long)
	head, groups, _ := strings.Cut(out, "Usage:")
	at := -1
	for _, words := range [][]string{{"status"}, {"why", "ACCOUNT"}, {"failover", "check", "ACCOUNT"}} {
		next := strings.Index(head, "antipodectl "+strings.Join(words, " ")+" ")
		require.Greater(t, next, at, words)
		at = next
		c, args, err := newTool(nil, nil, nil).root().Find(words)
		require.NoError(t, err)
		require.Equal(t, strings.Join(words, " "), strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "antipodectl ")+" "+strings.Join(args, " ")))
		require.NoError(t, c.Args(c, args))
	}
	require.NotContains(t, head, "break")
	at = -1
	for _, title := range []string{"Accounts:", "Replication:", "Failover:", "Nodes and ranges:", "Development:"} {
		next := strings.Index(groups, "\n"+title+"\n")
		require.Greater(t, next, at, title)
		at = next
	}
	for _, c := range newTool(nil, nil, nil).root().Commands() {
		require.True(t, c.GroupID != "" || c.Hidden || c.IsAdditionalHelpTopicCommand(), c.Name())
	}
	commands, _, _ := strings.Cut(out, "\nFlags:")
	require.LessOrEqual(t, strings.Count(commands, "\n"), 50)
	_, out, _ = ctl("", "status", "--help")
	require.NotContains(t, out, "Exit codes", "only the first screen has what holds for all")
}
