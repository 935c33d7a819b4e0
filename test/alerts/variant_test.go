package alerts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var (
	window = regexp.MustCompile(`(\[|offset )([0-9]+[smhd])`)
	target = regexp.MustCompile(`^vector\(([0-9]+)\)$`)
)

// Least times of a variant: Prometheus scrapes and evaluates each second, and a rate needs some samples.
const (
	tick       = time.Second
	windowLess = 10 * time.Second
)

// shorter returns a time divided by scale, in whole seconds and no less than least.
func shorter(t *testing.T, text string, scale int, least time.Duration) string {
	t.Helper()
	d, err := model.ParseDuration(text)
	require.NoError(t, err)
	return model.Duration(max(least, (time.Duration(d) / time.Duration(scale)).Round(time.Second))).String()
}

// quicken divides the times of a rule: for how long, the windows that it looks at, and the target of Last Sync Time.
func quicken(t *testing.T, r rule, scale int) rule {
	t.Helper()
	if r.For != "" {
		r.For = shorter(t, r.For, scale, tick)
	}
	r.Expr = window.ReplaceAllStringFunc(r.Expr, func(found string) string {
		m := window.FindStringSubmatch(found)
		return m[1] + shorter(t, m[2], scale, windowLess)
	})
	if m := target.FindStringSubmatch(r.Expr); m != nil {
		seconds, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		r.Expr = fmt.Sprintf("vector(%d)", max(1, seconds/scale))
	}
	return r
}

// writeVariant writes the files of deploy for antipode dev into dir, with all times divided by scale, and addr as what is
// scraped. It returns the configuration's path.
func writeVariant(t *testing.T, dir string, scale int, addr string) string {
	t.Helper()
	for _, name := range ruleFiles() {
		var f ruleFile
		readYAML(t, filepath.Join(deploy, name), &f)
		for i := range f.Groups {
			g := &f.Groups[i]
			g.Interval = shorter(t, g.Interval, scale, tick)
			for k, r := range g.Rules {
				g.Rules[k] = quicken(t, r, scale)
			}
		}
		writeYAML(t, filepath.Join(dir, name), f)
	}
	var config map[string]any
	readYAML(t, filepath.Join(deploy, "dev.yaml"), &config)
	global := config["global"].(map[string]any)
	for _, field := range []string{"scrape_interval", "evaluation_interval"} {
		global[field] = shorter(t, global[field].(string), scale, tick)
	}
	job := config["scrape_configs"].([]any)[0].(map[string]any)
	require.Equal(t, []any{"127.0.0.1:10080"}, job["static_configs"].([]any)[0].(map[string]any)["targets"])
	job["static_configs"] = []any{map[string]any{"targets": []string{addr}}}
	file := filepath.Join(dir, "prometheus.yaml")
	writeYAML(t, file, config)
	return file
}

func writeYAML(t *testing.T, file string, v any) {
	t.Helper()
	out, err := yaml.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, out, 0o600))
}

// A variant differs from the rules in its times alone, and with the scale 1 in nothing.
func TestVariantDiffersInTimesAlone(t *testing.T) {
	digits := regexp.MustCompile(`[0-9]+[smhd]|vector\([0-9]+\)`)
	changed := 0
	for _, r := range rules(t) {
		require.Equal(t, r, quicken(t, r, 1))
		v := quicken(t, r, 12)
		require.Equal(t, digits.ReplaceAllString(r.Expr, "N"), digits.ReplaceAllString(v.Expr, "N"))
		if v.Expr != r.Expr || v.For != r.For {
			changed++
		}
		v.Expr, v.For = r.Expr, r.For
		require.Equal(t, r, v)
	}
	require.Greater(t, changed, 20)
	require.Equal(t, rule{Expr: "rate(x[25s] offset 50s) > 1"}, quicken(t, rule{Expr: "rate(x[5m] offset 10m) > 1"}, 12))
	require.Equal(t, rule{Expr: "vector(5)", For: "10s"}, quicken(t, rule{Expr: "vector(60)", For: "2m"}, 12))
	require.Equal(t, "1s", shorter(t, "5s", 12, tick), "no less than a tick")
}
