package dashboards

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/metrics"
)

// deployed is where the files are.
const deployed = "../../deploy/grafana/dashboards"

var rewrite = flag.Bool("rewrite", false, "write the dashboards again")

// The files that are deployed are those that the description gives: `go test ./client/dashboards -args -rewrite` writes them.
func TestFilesAreTheDescription(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Dashboards() {
		got, err := d.JSON()
		require.NoError(t, err)
		name := filepath.Join(deployed, d.UID+".json")
		if *rewrite {
			require.NoError(t, os.WriteFile(name, got, 0o644))
		}
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s is not what the description gives: run with -rewrite", name)
		seen[d.UID+".json"] = true
	}
	files, err := filepath.Glob(filepath.Join(deployed, "*.json"))
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, seen[filepath.Base(f)], "no dashboard gives %s", f)
	}
}

// A panel has a title that is its own in the dashboard, says what it is for, and asks for something in each query.
func TestPanelsAreComplete(t *testing.T) {
	for _, d := range Dashboards() {
		titles := map[string]bool{}
		for _, r := range d.Rows {
			for _, p := range r.Panels {
				name := d.UID + ": " + r.Title + ": " + p.Title
				require.False(t, titles[r.Title+p.Title], "%s is there twice", name)
				titles[r.Title+p.Title] = true
				require.NotEmpty(t, p.About, name)
				require.NotEmpty(t, p.Unit, name)
				require.NotEmpty(t, p.Queries, name)
			}
		}
	}
}

// Every metric of a query exists: those of the package metrics, and the others that docs/metrics.md names.
func TestMetricsExist(t *testing.T) {
	known := map[string]bool{}
	for _, n := range metrics.Names() {
		known[n] = true
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	for _, n := range regexp.MustCompile(`antipode_[a-z_]+`).FindAllString(string(page), -1) {
		known[n] = true
	}
	suffix := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, d := range Dashboards() {
		for _, r := range d.Rows {
			for _, p := range r.Panels {
				for _, q := range p.Queries {
					for _, n := range regexp.MustCompile(`antipode_[a-z_]+`).FindAllString(q.Expr, -1) {
						require.True(t, known[n] || known[suffix.ReplaceAllString(n, "")], "%s: %s: no metric %s", d.UID, p.Title, n)
					}
				}
			}
		}
	}
}

// A number in Grafana is asked for now alone, shows the last value and not the last one that is known, and is red where
// none is known: its expression may answer NaN, or nothing.
func TestNumbersOfGrafanaAreRedWithoutValue(t *testing.T) {
	type panel struct {
		Type    string
		Title   string
		Targets []struct{ Instant, Range bool }
		Options struct {
			ReduceOptions struct{ Calcs []string }
		}
		FieldConfig struct {
			Defaults struct {
				NoValue  string
				Mappings []struct {
					Type    string
					Options struct {
						Match  string
						Result struct{ Text, Color string }
					}
				}
			}
		}
	}
	numbers := 0
	for _, d := range Dashboards() {
		text, err := d.JSON()
		require.NoError(t, err)
		var board struct{ Panels []panel }
		require.NoError(t, json.Unmarshal(text, &board))
		for _, p := range board.Panels {
			if p.Type != "stat" {
				continue
			}
			numbers++
			for _, target := range p.Targets {
				require.True(t, target.Instant && !target.Range, p.Title)
			}
			require.Equal(t, []string{"last"}, p.Options.ReduceOptions.Calcs, p.Title)
			require.Equal(t, unknown, p.FieldConfig.Defaults.NoValue, p.Title)
			require.Len(t, p.FieldConfig.Defaults.Mappings, 1, p.Title)
			m := p.FieldConfig.Defaults.Mappings[0]
			shown := []string{m.Type, m.Options.Match, m.Options.Result.Text, m.Options.Result.Color}
			require.Equal(t, []string{"special", "null+nan", unknown, bad}, shown, p.Title)
		}
	}
	require.Greater(t, numbers, 7)
}
