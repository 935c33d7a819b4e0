package alerts

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/dashboards"
)

// series are the values of series as promtool writes them, over ten minutes, by the series.
type series map[string]string

// Values of ten minutes. Series end 5 minutes before the end where what exposes them dies.
const (
	dies   = "x20 stale"
	always = "x40"
)

// evalTime is when numbers are looked at: just before a scrape, whose age is not to count as lag: the secondary of a
// fleet is 20 s behind at each scrape, of the 30 s at which that is bad.
const evalTime = "10m14s"

// fleet is a node of each location, the secondary of an account at the south, and a gateway; clients read at both
// locations.
func fleet() series {
	all := series{
		`up{job="antipode-gateway",instance="g1"}`:                                              "1" + always,
		`antipode_gateway_forwards_total{to="northcentralus",outcome="answered",instance="g1"}`: "9" + always,
	}
	for location, other := range map[string]string{string(north): string(south), string(south): string(north)} {
		of := func(name, labels, value string) {
			all[fmt.Sprintf(`%s{location=%q,%sinstance=%q}`, name, location, labels, location)] = value + always
		}
		all[fmt.Sprintf(`up{job="antipode",instance=%q}`, location)] = "1" + always
		of("antipode_location_running", "", "1")
		of("antipode_bus_connected", fmt.Sprintf("bus=%q,", location), "1")
		of("antipode_bus_connected", fmt.Sprintf("bus=%q,", other), "1")
		of("antipode_range_leader_known", `service="table",range="4",`, "1")
		of("antipode_range_replicas", `service="table",range="4",`, "3")
		for node := 1; node <= 3; node++ {
			of("antipode_replica_in_sync", fmt.Sprintf(`range="4",node="%d",`, node), "1")
		}
		of("antipode_stream_backlog_age_seconds", `service="table",`, "0")
		all[requests(location, "200")] = "0+9" + always
		of("antipode_stream_alarms_total", `reason="silence",`, "0")
	}
	all[ofPictures("antipode_last_sync_timestamp_seconds", "")] = "-20+15" + always
	return all
}

// ofPictures is a series of the account's tables at its secondary.
func ofPictures(name, labels string) string {
	return fmt.Sprintf(`%s{account="pictures",location=%q,service="table",%sinstance=%q}`, name, south, labels, south)
}

// requests is a series of requests that a location answered with a status.
func requests(at, status string) string {
	const labels = `location=%q,service="table",operation="QueryEntity",status=%q,instance=%q`
	return fmt.Sprintf("antipode_requests_total{"+labels+"}", at, status, at)
}

// set changes the values of all series whose text has each of parts.
func (s series) set(values string, parts ...string) series {
	for name := range s {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(name, p) }) {
			s[name] = values
		}
	}
	return s
}

// with adds series.
func (s series) with(more series) series {
	maps.Copy(s, more)
	return s
}

// without drops all series whose text has part.
func (s series) without(part string) series {
	maps.DeleteFunc(s, func(name, _ string) bool { return strings.Contains(name, part) })
	return s
}

// withoutSouth is a fleet whose south dies: its target answers no scrape, so that its series end.
func withoutSouth() series {
	s := fleet()
	for name, values := range s {
		if strings.Contains(name, `instance="southcentralus"`) {
			s[name] = strings.TrimSuffix(values, always) + dies
		}
	}
	s.set("1x20 0x20", "up{", `instance="southcentralus"`)
	return s.set("1x20 0x20", "antipode_bus_connected", `bus="southcentralus",instance="northcentralus"`)
}

// Numbers of the dashboards are good while all is well, also without load, and bad where something is wrong or not
// known: without anything that is scraped, with a dead location, whose last good values nobody is to read, and where it
// is the gateway that answers 503. promtool evaluates their expressions over series of each case.
func TestNumbersAreBadWhereNothingIsKnown(t *testing.T) {
	tool := program(t, "promtool")
	const (
		alerts, failed, down = "Alerts that fire", "Requests that failed", "Processes that do not answer"
		sync, behind, none   = "Replicas in sync, least", "Furthest behind", "Services unavailable"
		waits, alarms        = "Oldest change that waits", "Alarms of streams"
	)
	everything := []string{alerts, failed, down, sync, behind, none, waits, alarms}
	for name, c := range map[string]struct {
		series  series
		noRules bool
		bad     []string
	}{
		"nothing is scraped, and no rule evaluated": {series: series{}, noRules: true, bad: everything},
		"all is well":                {series: fleet()},
		"no account has a secondary": {series: fleet().without("last_sync_time")},
		"there is no load":           {series: fleet().set("9"+always, "antipode_requests_total")},
		"no rule is evaluated":       {series: fleet(), noRules: true, bad: []string{alerts}},
		"the south is dead":          {series: withoutSouth(), bad: everything},
		"a gateway is dead": {
			series: fleet().set("1x20 0x20", "up{", "g1").set("9"+dies, "forwards"),
			bad:    []string{down, alerts},
		},
		"a range has no leader": {
			series: fleet().set("1"+dies, "antipode_replica_in_sync", "north").set("1x20 0x20", "leader_known", "north"),
			bad:    []string{sync, alerts},
		},
		"a replica is not there": {
			series: fleet().set("1x20 0x20", "antipode_replica_in_sync", "north", `node="3"`),
			bad:    []string{sync, alerts},
		},
		"locations of one node": {
			series: fleet().without(`node="2"`).without(`node="3"`).set("1"+always, "antipode_range_replicas"),
		},
		"the secondary is behind": {
			series: fleet().set("-90+15"+always, "last_sync_time"),
			bad:    []string{behind, alerts},
		},
		"a service has no Last Sync Time": {series: fleet().set("-20+15"+dies, "last_sync_time").with(series{
			ofPictures("antipode_replication_unavailable", `reason="forked",`): "_x20 1x20",
		}), bad: []string{behind, none, alerts}},
		"a gateway answers its own 503": {series: fleet().with(series{
			`antipode_gateway_requests_total{service="table",status="503",instance="g1"}`: "0+1" + always,
			`antipode_gateway_requests_total{service="table",status="200",instance="g1"}`: "0+50" + always,
		}), bad: []string{failed}},
		"a location answers 500": {series: fleet().with(series{
			requests(string(north), "500"): "0+1" + always,
		}), bad: []string{failed}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "numbers.yaml")
			writeYAML(t, file, numberTests(t, c.series, c.noRules, c.bad))
			out, err := exec.CommandContext(t.Context(), tool, "test", "rules", file).CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// numberTests is a file of rule tests in which the numbers with the titles bad have a bad value after ten minutes, and
// the others have none and are there.
func numberTests(t *testing.T, in series, noRules bool, bad []string) map[string]any {
	t.Helper()
	var input, exprs []any
	for name, values := range in {
		input = append(input, map[string]any{"series": name, "values": values})
	}
	titles := map[string]bool{}
	expect := func(expr string, want int) {
		samples := []any{map[string]any{"labels": "{}", "value": want}}
		exprs = append(exprs, map[string]any{"expr": expr, "eval_time": evalTime, "exp_samples": samples})
	}
	for _, d := range dashboards.Dashboards() {
		for _, r := range d.Rows {
			for _, p := range r.Panels {
				if p.Kind != dashboards.Number {
					continue
				}
				titles[p.Title] = true
				than := ">="
				if p.BadBelow {
					than = "<"
				}
				for _, q := range p.Queries {
					e := "(" + q.With(".+", "5m") + ")"
					want := 0
					if slices.Contains(bad, p.Title) {
						want = 1
					}
					expect(fmt.Sprintf("(count(%s %s %v or %s != %s) or on () vector(0)) > bool 0", e, than, p.Bad, e, e), want)
					expect(fmt.Sprintf("count(%s) > bool 0", e), 1)
				}
			}
		}
	}
	require.Greater(t, len(titles), 7)
	for _, title := range bad {
		require.True(t, titles[title], title)
	}
	var files []string
	if !noRules {
		for _, name := range ruleFiles() {
			path, err := filepath.Abs(filepath.Join(deploy, name))
			require.NoError(t, err)
			files = append(files, path)
		}
	}
	return map[string]any{
		"rule_files": files, "group_eval_order": []string{"antipode", "antipode-alerts"}, "evaluation_interval": "15s",
		"tests": []any{map[string]any{"interval": "15s", "input_series": input, "promql_expr_test": exprs}},
	}
}
