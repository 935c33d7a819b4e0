package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/metrics"
)

// ruleTests is a file of promtool's rule tests.
type ruleTests struct {
	RuleFiles          []string `yaml:"rule_files"`
	GroupEvalOrder     []string `yaml:"group_eval_order"`
	EvaluationInterval string   `yaml:"evaluation_interval"`
	Tests              []struct {
		Name        string `yaml:"name"`
		Interval    string `yaml:"interval"`
		InputSeries []struct {
			Series string `yaml:"series"`
			Values string `yaml:"values"`
		} `yaml:"input_series"`
		PromqlExprTest []struct {
			Expr       string `yaml:"expr"`
			EvalTime   string `yaml:"eval_time"`
			ExpSamples []any  `yaml:"exp_samples"`
		} `yaml:"promql_expr_test"`
		AlertRuleTest []struct {
			Alertname string `yaml:"alertname"`
			EvalTime  string `yaml:"eval_time"`
			ExpAlerts []any  `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func readRuleTests(t *testing.T) (f ruleTests) {
	t.Helper()
	readYAML(t, filepath.Join(deploy, "tests/alerts.yaml"), &f)
	require.Equal(t, []string{"../rules.yaml", "../alerts.yaml"}, f.RuleFiles)
	return f
}

// Every alert has a severity, a time for which it has to last, a summary, and a runbook that exists and names it. Every
// alert that a runbook names exists.
//
// Capability: Operation in Prometheus: 24 alerts, each with a runbook.
func TestAlertsHaveRunbooks(t *testing.T) {
	pages := map[string]bool{}
	alerts := map[string]bool{}
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		alerts[r.Alert] = true
		require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.For, r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		page := r.Annotations["runbook_url"]
		require.True(t, strings.HasPrefix(page, "docs/runbooks/"), r.Alert)
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err, r.Alert)
		require.Contains(t, string(text), "`"+r.Alert+"`", page)
		for _, heading := range []string{"## What it means", "## How to confirm", "## What to do"} {
			require.Contains(t, string(text), heading, page)
		}
		pages[page] = true
	}
	require.NotEmpty(t, alerts)
	named := regexp.MustCompile(`Antipode[A-Z][A-Za-z]+`)
	for page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		for _, name := range named.FindAllString(string(text), -1) {
			require.Contains(t, alerts, name, page)
		}
		index, err := os.ReadFile(filepath.Join(root, "docs/runbooks/README.md"))
		require.NoError(t, err)
		require.Contains(t, string(index), "("+filepath.Base(page)+")")
	}
}

// Every alert has a rule test in which it fires, and one in which it does not.
//
// Capability: Operation in Prometheus: 24 alerts, each with a runbook.
func TestAlertsAreTestedBothWays(t *testing.T) {
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, c := range readRuleTests(t).Tests {
		for _, a := range c.AlertRuleTest {
			fires[a.Alertname] = fires[a.Alertname] || len(a.ExpAlerts) > 0
			quiet[a.Alertname] = quiet[a.Alertname] || len(a.ExpAlerts) == 0
		}
	}
	for _, r := range rules(t) {
		if r.Alert != "" {
			require.True(t, fires[r.Alert], "%s fires in no rule test", r.Alert)
			require.True(t, quiet[r.Alert], "%s is quiet in no rule test", r.Alert)
		}
	}
}

var (
	word    = regexp.MustCompile(`[A-Za-z_:][A-Za-z0-9_:]*`)
	literal = regexp.MustCompile(`"[^"]*"`)
	label   = regexp.MustCompile(`(\w+)="[^"]*"`)
	// documented is the beginning of a line of metrics.md.
	documented = regexp.MustCompile("(?m)^- `(antipode_[a-z_]+)` \\(([a-z]+), [A-Za-z01 ]+?(?:; ([`a-z_ ]+))?\\):")
)

// documentedMetric is what metrics.md has of a metric.
type documentedMetric struct {
	kind   string
	labels []string
}

// formerMetric is a line of metrics.md about a metric that was renamed.
var formerMetric = regexp.MustCompile("(?m)^- `(antipode_[a-z_]+)`: now `(antipode_[a-z_]+)`")

// documentedMetrics returns each metric by the table of metrics.md, which a test of package docs compares with the code.
func documentedMetrics(t *testing.T) map[string]documentedMetric {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/metrics.md"))
	require.NoError(t, err)
	out := map[string]documentedMetric{}
	for _, m := range documented.FindAllStringSubmatch(regexp.MustCompile(`\n {2,}`).ReplaceAllString(string(text), " "), -1) {
		out[m[1]] = documentedMetric{m[2], strings.Fields(strings.ReplaceAll(m[3], "`", ""))}
	}
	for _, m := range formerMetric.FindAllStringSubmatch(string(text), -1) {
		require.Contains(t, out, m[2])
		out[m[1]] = out[m[2]]
	}
	for _, name := range metrics.Names() {
		require.Contains(t, out, name)
	}
	return out
}

// metricsOf returns the metrics of Antipode in an expression, and the recorded series.
func metricsOf(expr string) (raw, recorded []string) {
	for _, w := range word.FindAllString(literal.ReplaceAllString(expr, `""`), -1) {
		switch {
		case strings.Contains(w, ":"):
			recorded = append(recorded, w)
		case strings.HasPrefix(w, "antipode_"):
			raw = append(raw, strings.TrimSuffix(w, "_bucket"))
		}
	}
	return raw, recorded
}

// Every metric that a rule reads exists, and so does every recorded series. A metric that was misspelled would never fire.
func TestRulesReadWhatExists(t *testing.T) {
	known, records := documentedMetrics(t), map[string]bool{}
	for _, r := range rules(t) {
		records[r.Record] = true
	}
	n := 0
	for _, r := range rules(t) {
		raw, recorded := metricsOf(r.Expr)
		for _, name := range raw {
			require.Contains(t, known, name, r.Expr)
		}
		for _, name := range recorded {
			require.True(t, records[name], "%s, of %s, is not recorded", name, r.Expr)
		}
		n += len(raw) + len(recorded)
	}
	require.Greater(t, n, 40)
}

// The series of the rule tests have the labels of the metrics, and instance, which a scrape adds: with others a rule
// might work in its test alone.
func TestRuleTestsHaveRealSeries(t *testing.T) {
	known := documentedMetrics(t)
	n := 0
	for _, c := range readRuleTests(t).Tests {
		for _, s := range c.InputSeries {
			name := word.FindString(s.Series)
			want, ok := known[name]
			if !ok {
				require.Equal(t, "up", name, s.Series)
				want.labels = []string{"job"}
			}
			var got []string
			for _, m := range label.FindAllStringSubmatch(s.Series, -1) {
				got = append(got, m[1])
			}
			require.ElementsMatch(t, append([]string{"instance"}, want.labels...), got, s.Series)
			n++
		}
	}
	require.Greater(t, n, 40)
}

// promtool finds nothing wrong with the rules, their tests and the three configurations.
//
// Capability: Operation in Prometheus: 24 alerts, each with a runbook.
// Capability: Operation in Prometheus: A witness shows its metrics.
func TestPromtool(t *testing.T) {
	tool := program(t, "promtool")
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir = deploy
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "promtool %s\n%s", strings.Join(args, " "), out)
	}
	run("test", "rules", "tests/alerts.yaml")
	run("check", "rules", "rules.yaml", "alerts.yaml")
	run("check", "config", "dev.yaml")
	run("check", "config", "cluster.yaml")

	// Debian's promtool is built without the discovery of Kubernetes: all but its lines are checked.
	text, err := os.ReadFile(filepath.Join(deploy, "kubernetes.yaml"))
	require.NoError(t, err)
	const discovery = "kubernetes_sd_configs:\n      - role: pod"
	require.Contains(t, string(text), discovery)
	dir := t.TempDir()
	for _, name := range ruleFiles() {
		rules, err := os.ReadFile(filepath.Join(deploy, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), rules, 0o600))
	}
	file := filepath.Join(dir, "kubernetes.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), discovery, "static_configs:\n      - targets: [\"127.0.0.1:1\"]", 1)), 0o600))
	run("check", "config", file)
}
