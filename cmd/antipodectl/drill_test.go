package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
	"antipode/client/drill"
	"antipode/geo"
)

// drilled is a deployment in memory with the account pictures, whose table it serves itself. A promotion loses what was
// written since the last look at its lag.
type drilled struct {
	t   *testing.T
	url string

	mu   sync.Mutex
	a    admin.Account
	down bool
	// did are the operations in their order.
	did []string
	// rows are the entities; late are those that a promotion loses; lost are those that one has lost.
	rows map[string]bool
	late []string
	lost []admin.LostChange
	// blocked has an operation under way; hides has the lost-change report be empty; forks has the former primary diverge.
	blocked, hides, forks bool
	// log is written by commands that kill and start the north; immortal has the north live on.
	log         string
	immortal    bool
	development bool
	// deleting is how often the table cannot be made, since one before is being deleted.
	deleting int
	// follows is what a promotion leaves under way.
	follows string
	// refuses is called with a promotion that is refused; nil refuses none.
	refuses func()
}

const (
	drillNorth = geo.Location("northcentralus")
	drillSouth = geo.Location("southcentralus")
)

func newDrilled(t *testing.T) *drilled {
	d := &drilled{t: t, rows: map[string]bool{}, a: admin.Account{
		Name: "pictures", Redundancy: "RA-GRS", Primary: drillNorth, Secondary: drillSouth, Epoch: admin.Epoch{Number: 1, Location: drillNorth},
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("/", d.table)
	answer := func(pattern string, doc func(r *http.Request) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			d.mu.Lock()
			defer d.mu.Unlock()
			out := doc(r)
			if _, refused := out.(error); refused {
				w.WriteHeader(http.StatusConflict)
			}
			_ = json.NewEncoder(w).Encode(out)
		})
	}
	answer("GET /v1/accounts/pictures", func(*http.Request) any { return d.info() })
	answer("GET /v1/accounts/pictures/keys", func(*http.Request) any { return admin.Keys{Name: "pictures", Key1: "a2V5MQ=="} })
	answer("GET /v1/accounts/pictures/lag", func(*http.Request) any {
		d.late = nil
		return admin.Lag{Account: "pictures", Services: []admin.ServiceLag{{ServiceStatus: admin.ServiceStatus{Service: "table", Status: admin.Live}}}}
	})
	answer("GET /v1/status", func(*http.Request) any {
		return admin.Status{
			Version: admin.StatusVersion, Process: admin.Process{Development: d.development},
			Locations: []admin.Location{d.north(), {Name: drillSouth, State: admin.Running}},
		}
	})
	answer("POST /v1/accounts/pictures/update", d.update)
	answer("POST /v1/accounts/pictures/verify", func(*http.Request) any {
		return admin.Verify{Account: "pictures", State: admin.VerifyDone, Outcome: admin.VerifyEqual}
	})
	answer("POST /v1/locations/northcentralus/stop", func(*http.Request) any {
		d.down, d.did = true, append(d.did, "stop")
		return admin.Changed{Name: string(drillNorth), State: admin.Stopped}
	})
	answer("POST /v1/locations/northcentralus/start", func(*http.Request) any {
		d.down, d.did = false, append(d.did, "start")
		return admin.Changed{Name: string(drillNorth), State: admin.Running}
	})
	answer("GET /readyz", func(*http.Request) any {
		return admin.Readiness{Locations: []admin.LocationReadiness{{Name: drillNorth, Serving: true}}}
	})
	answer("POST /v1/locations/northcentralus/lost/list", func(*http.Request) any {
		out := admin.Lost{Location: drillNorth, Claims: []admin.LostClaim{
			{Service: "table", Epoch: admin.Epoch{Number: 1, Location: drillSouth}, Reason: "it is of a failover before"},
			{Service: "table", Epoch: admin.Epoch{Number: 2, Location: drillSouth}, Changes: uint64(len(d.lost)), Complete: true},
		}}
		if !d.hides {
			out.Changes = d.lost
		}
		return out
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	d.url = srv.URL
	return d
}

// north is the location of the primary as the status shows it: the process of its node answers unless a command has killed
// it.
func (d *drilled) north() admin.Location {
	if b, err := os.ReadFile(d.log); err == nil && strings.HasSuffix(string(b), "killed\n") && !d.immortal {
		return admin.Location{Name: drillNorth, State: admin.Unreachable, Nodes: []admin.Node{{Name: "northcentralus-1", State: admin.Unreachable}}}
	}
	return admin.Location{Name: drillNorth, State: admin.Running, Nodes: []admin.Node{{Name: "northcentralus-1", State: admin.Running}}}
}

func (d *drilled) info() admin.AccountInfo {
	a := d.a
	if d.blocked {
		a.Operation = "a bootstrap"
	}
	return admin.AccountInfo{Account: a, Endpoints: []admin.Endpoint{{
		Service: "table", Primary: d.url + "/pictures", Secondary: d.url + "/pictures-secondary",
	}}}
}

// update moves the account at once.
func (d *drilled) update(r *http.Request) any {
	var u admin.UpdateAccount
	_ = json.NewDecoder(r.Body).Decode(&u)
	f := u.Failover
	switch {
	case u.Rebuild:
		d.did, d.a.Diverged, d.a.Operation = append(d.did, "rebuild"), false, ""
	case f.DryRun:
	case f.Type == admin.FailoverUnplanned && d.refuses != nil:
		d.refuses()
		return &admin.Error{Status: http.StatusConflict, Code: "Refused", Message: "the promotion is refused"}
	case f.Type == admin.FailoverUnplanned:
		d.did = append(d.did, "promote")
		d.a.Operation = d.follows
		if d.a.Diverged = d.forks; d.forks {
			d.a.Operation = "the failover to this location: account rebuild makes its copy again"
		}
		for _, key := range d.late {
			delete(d.rows, key)
			at := entityKey.FindStringSubmatch(key)
			d.lost = append(d.lost, admin.LostChange{Service: "table", Container: drillTable, Object: at[1], Row: at[2], Answered: admin.AnsweredSurely})
		}
	default:
		d.did = append(d.did, "planned")
	}
	if f != nil && !f.DryRun {
		d.a.Epoch = admin.Epoch{Number: d.a.Epoch.Number + 1, Location: d.a.Secondary}
		d.a.Primary, d.a.Secondary = d.a.Secondary, d.a.Primary
	}
	return admin.AccountUpdated{AccountInfo: d.info(), Loss: []admin.ServiceLoss{{Service: "table", UnboundedSince: admin.Time{Time: time.Unix(1e9, 0)}}}}
}

// entityKey is the key of an entity in a path, or in a filter.
var entityKey = regexp.MustCompile(`PartitionKey='([^']*)',RowKey='([^']*)'`)

// table serves the table, of the account and of -secondary alike.
func (d *drilled) table(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	path, _ := url.PathUnescape(r.URL.Path)
	key := ""
	if m := entityKey.FindStringSubmatch(path); m != nil {
		key = m[0]
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case d.down && d.a.Primary == drillNorth:
		w.WriteHeader(http.StatusServiceUnavailable)
	case key == "" && r.Method == http.MethodPost && d.deleting > 0:
		d.deleting--
		w.Header().Set("x-ms-error-code", "TableBeingDeleted")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"odata.error":{"code":"TableBeingDeleted"}}`)
	case key == "" && r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"TableName":"antipodedrill"}`)
	case r.Method == http.MethodDelete:
		d.did = append(d.did, "drop")
		w.WriteHeader(http.StatusNoContent)
	case key == "":
		var values []string
		partition := strings.TrimSuffix(strings.TrimPrefix(r.URL.Query().Get("$filter"), "PartitionKey eq '"), "'")
		for have := range d.rows {
			if at := entityKey.FindStringSubmatch(have); at[1] == partition {
				values = append(values, fmt.Sprintf(`{"PartitionKey":%q,"RowKey":%q}`, at[1], at[2]))
			}
		}
		_, _ = fmt.Fprintf(w, `{"value":[%s]}`, strings.Join(values, ","))
	case r.Method == http.MethodGet:
		at := entityKey.FindStringSubmatch(key)
		_, _ = fmt.Fprintf(w, `{"PartitionKey":%q,"RowKey":%q}`, at[1], at[2])
	default:
		d.rows[key] = true
		d.late = append(d.late, key)
		w.WriteHeader(http.StatusNoContent)
	}
}

// run runs a drill against it.
func (d *drilled) run(line string) (code command.Code, out, errOut string) {
	d.t.Helper()
	return ctl(d.url, strings.Fields("drill pictures --duration 150ms "+line)...)
}

// report runs a drill and reads its report.
func (d *drilled) report(line string) (code command.Code, r drill.Report, errOut string) {
	d.t.Helper()
	code, out, errOut := d.run(line + " --yes -o json")
	require.NoError(d.t, json.Unmarshal([]byte(out), &r), "%s%s", out, errOut)
	return code, r, errOut
}

// A planned drill goes there and back and loses nothing. One whose plan is blocked, or without --yes, changes nothing.
//
// Capability: Failover: Drills of failovers.
func TestDrillPlanned(t *testing.T) {
	d := newDrilled(t)
	code, out, errOut := d.run("--html " + filepath.Join(t.TempDir(), "no.html"))
	require.Equal(t, command.Done, code, errOut)
	require.Contains(t, out, "nothing was changed")
	require.Empty(t, d.did)
	d.deleting = 1
	code, r, errOut := d.report("")
	require.Contains(t, errOut, "waiting: the table of a drill before is being deleted")
	require.Equal(t, command.Done, code, errOut)
	require.Equal(t, []string{"planned", "planned", "drop"}, d.did)
	require.Zero(t, r.Lost)
	require.Nil(t, r.Unplanned)
	d.did, d.blocked = nil, true
	for _, line := range []string{"--yes", "--unplanned --yes", "--dry-run"} {
		code, _, errOut = d.run(line)
		require.Equal(t, command.Failed, code)
		require.Contains(t, errOut, "a drill of pictures is blocked, nothing was changed: an operation is under way: a bootstrap")
	}
	require.Empty(t, d.did)
}

// An unplanned drill promotes the secondary, waits until the former primary has followed, and goes back. With --kill, and at
// antipode dev, the primary's location is stopped first and started again. Each acknowledged write that is gone is in the
// lost-change report, so the drill went well.
//
// Capability: Failover: Drills of failovers.
func TestDrillUnplanned(t *testing.T) {
	page := filepath.Join(t.TempDir(), "drill.html")
	for _, c := range []struct {
		line        string
		development bool
		did         []string
	}{
		{"", false, []string{"promote", "planned", "drop"}},
		{"--kill", false, []string{"stop", "promote", "start", "planned", "drop"}},
		{"", true, []string{"stop", "promote", "start", "planned", "drop"}},
		{"--kill=false", true, []string{"promote", "planned", "drop"}},
	} {
		d := newDrilled(t)
		d.development = c.development
		code, r, errOut := d.report("--unplanned --html " + page + " " + c.line)
		require.Equal(t, command.Done, code, errOut)
		require.Equal(t, c.did, d.did)
		require.Equal(t, slices.Contains(c.did, "stop"), r.Unplanned.Killed == killByPort)
		require.Positive(t, r.Lost)
		require.Equal(t, r.Lost, len(r.LostWrites))
		require.Zero(t, r.Unplanned.Unlisted)
		require.True(t, r.Unplanned.Followed)
		require.NotNil(t, r.Unplanned.RTO)
		require.Len(t, r.Unplanned.Stated, 1)
		require.Len(t, r.Unplanned.Claims, 1)
		require.True(t, r.Unplanned.Claims[0].Complete)
		require.Equal(t, admin.VerifyEqual, r.Verify)
		b, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Contains(t, string(b), "No fault was found")
	}
	d := newDrilled(t)
	code, out, errOut := d.run("--unplanned --yes")
	require.Equal(t, command.Done, code, errOut)
	for _, want := range []string{"primary    it lived, and has followed without a copy", "RTO ", "RPO ", "UNBOUNDED SINCE", "claim      table"} {
		require.Contains(t, out, want)
	}
	code, out, _ = d.run("--unplanned --kill")
	require.Equal(t, command.Done, code)
	require.Contains(t, out, "loses      acknowledged writes of all clients")
	require.Contains(t, out, "stops      location northcentralus")
}

// An acknowledged write that is gone, and that the lost-change report does not have, is exit code 1.
func TestDrillFindsUnlistedLoss(t *testing.T) {
	d := newDrilled(t)
	d.hides = true
	code, r, errOut := d.report("--unplanned")
	require.Equal(t, command.Failed, code)
	require.Equal(t, r.Lost, r.Unplanned.Unlisted)
	require.Contains(t, errOut, "acknowledged writes are gone and not in the lost-change report")
}

// A former primary that can only follow with its copy made again ends the drill, with what is to do. It does not if
// --rebuild was given, which is the default at antipode dev alone.
func TestDrillRebuilds(t *testing.T) {
	d := newDrilled(t)
	d.forks = true
	code, r, errOut := d.report("--unplanned")
	require.Equal(t, command.Failed, code)
	require.Equal(t, []string{"promote", "drop"}, d.did)
	require.False(t, r.Unplanned.Followed)
	require.Contains(t, errOut, "its copy has to be made again: antipodectl account rebuild pictures")
	for _, line := range []string{"--rebuild", "--kill=false"} {
		d = newDrilled(t)
		d.forks, d.development = true, line != "--rebuild"
		code, r, errOut = d.report("--unplanned " + line)
		require.Equal(t, command.Done, code, errOut)
		require.Equal(t, []string{"promote", "rebuild", "planned", "drop"}, d.did)
		require.True(t, r.Unplanned.Rebuilt)
	}
}

// A command that returns and does not stop the primary is found out: the failover counts as one beside a live primary, from
// when it was asked for, and the report says so.
func TestDrillKillCommandThatDoesNotKill(t *testing.T) {
	for _, output := range []string{"json", "text"} {
		d := newDrilled(t)
		d.log, d.immortal = filepath.Join(t.TempDir(), "log"), true
		code, out, errOut := ctl(d.url, "drill", "pictures", "--duration", "150ms", "--unplanned", "--yes", "-o", output, "--follow", "300ms",
			"--kill-command", "echo killed >> "+d.log, "--start-command", "echo started >> "+d.log)
		require.Equal(t, command.Done, code, errOut+out)
		require.Contains(t, errOut, "northcentralus still answers")
		if output == "text" {
			require.Contains(t, out, "it was to be stopped by --kill-command, and lived on: the failover was beside a live primary")
			continue
		}
		var report drill.Report
		require.NoError(t, json.Unmarshal([]byte(out), &report))
		require.True(t, report.Unplanned.Lived)
		require.Nil(t, report.Unplanned.DeadAfter)
		require.Equal(t, report.Moves[1].From, report.Unplanned.From)
		require.GreaterOrEqual(t, report.Unplanned.From, 300*time.Millisecond)
	}
}

// The primary is stopped and started by commands of the operator. A command that fails ends the drill, and what may
// be stopped is named.
func TestDrillKillCommand(t *testing.T) {
	d := newDrilled(t)
	log := filepath.Join(t.TempDir(), "log")
	d.log = log
	code, out, errOut := ctl(d.url, "drill", "pictures", "--duration", "150ms", "--unplanned", "--yes", "-o", "json",
		"--kill-command", "echo killed >> "+log, "--start-command", "echo started >> "+log)
	require.Equal(t, command.Done, code, errOut+out)
	require.Equal(t, []string{"promote", "planned", "drop"}, d.did)
	var report drill.Report
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.NotNil(t, report.Unplanned.DeadAfter)
	require.False(t, report.Unplanned.Lived)
	require.Equal(t, report.Moves[0].From, report.Unplanned.From)
	b, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "killed\nstarted\n", string(b))

	d = newDrilled(t)
	code, _, errOut = ctl(d.url, "drill", "pictures", "--duration", "150ms", "--unplanned", "--yes", "--kill-command", "exit 3",
		"--start-command", "echo again >> "+log)
	require.Equal(t, command.Failed, code)
	require.Contains(t, errOut, "exit 3: exit status 3")
	require.NotContains(t, errOut, "may be stopped")
	b, err = os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "killed\nstarted\nagain\n", string(b))

	d = newDrilled(t)
	code, _, errOut = ctl(d.url, "drill", "pictures", "--duration", "150ms", "--unplanned", "--yes", "--kill-command", "exit 3", "--start-command", "exit 4")
	require.Equal(t, command.Failed, code)
	require.Contains(t, errOut, "exit 3: exit status 3")
	require.Contains(t, errOut, "exit 4: exit status 4")
	require.Contains(t, errOut, "northcentralus may be stopped: start it (--start-command)")
	require.Equal(t, []string{"drop"}, d.did)
}

// Flags that do not go together are refused before anything is asked.
func TestDrillUsage(t *testing.T) {
	for line, says := range map[string]string{
		"--kill --yes":                    "go with --unplanned",
		"--rebuild":                       "go with --unplanned",
		"--unplanned --kill-command true": "go together",
		"--unplanned --within 0s":         "times above 0",
		"--unplanned --kill=false --kill-command x --start-command y": "--kill=false does not go with --kill-command",
	} {
		code, _, errOut := ctl("http://127.0.0.1:1", strings.Fields("drill pictures "+line)...)
		require.Equal(t, command.Usage, code, line)
		require.Contains(t, errOut, says)
	}
}

// An interrupted drill says where the account is.
func TestDrillInterrupted(t *testing.T) {
	d := newDrilled(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errOut bytes.Buffer
	tl := newTool(func(name string) string {
		return map[string]string{adminEnv: d.url, tokenEnv: "antipode-admin-" + strings.Repeat("0", 64)}[name]
	}, &out, &errOut)
	tl.after = func(time.Duration) <-chan time.Time { // While the former primary does not follow.
		cancel()
		return nil
	}
	d.follows = "the other location does not know yet"
	code := tl.run(ctx, strings.Fields("drill pictures --duration 150ms --unplanned --yes"))
	require.Equal(t, command.Failed, code)
	require.Contains(t, errOut.String(), "the account is at southcentralus: antipodectl failover start pictures --yes moves it back")
	require.Contains(t, out.String(), "has not followed")
}

// A drill that ends after it has stopped the location, and before it has started it, starts it: it was interrupted, or the
// failover failed.
func TestDrillStartsWhatItStopped(t *testing.T) {
	for name, interrupts := range map[string]bool{"interrupted": true, "failed": false} {
		d := newDrilled(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		d.refuses = func() {
			if interrupts {
				cancel()
			}
		}
		var out, errOut bytes.Buffer
		tl := newTool(func(name string) string {
			return map[string]string{adminEnv: d.url, tokenEnv: "antipode-admin-" + strings.Repeat("0", 64)}[name]
		}, &out, &errOut)
		code := tl.run(ctx, strings.Fields("drill pictures --duration 150ms --unplanned --kill --yes"))
		require.Equal(t, command.Failed, code, name)
		d.mu.Lock()
		require.Equal(t, []string{"stop", "start"}, d.did[:2], "%s: %s", name, errOut.String())
		require.False(t, d.down, name)
		d.mu.Unlock()
		require.Contains(t, errOut.String(), "the account is at northcentralus, as before", name)
		require.NotContains(t, errOut.String(), "may be stopped", name)
	}
}
