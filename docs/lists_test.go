package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	metricInCode = regexp.MustCompile(`"(antipode_[a-z_]+)"`)
	// A line of metrics.md begins with name, type, unit and labels; the line may be broken in between.
	metricLine = regexp.MustCompile("(?m)^- `(antipode_[a-z_]+)` \\(([a-z]+), ([A-Za-z01 ]+?)(?:; ([`a-z_ ]+))?\\):")
	bugInCode  = regexp.MustCompile(`\w+: +"([a-z0-9-]+)",\n`)
	bugInDocs  = regexp.MustCompile(`(?m)^- \*\*([a-z0-9-]+)\*\*`)
)

// Every metric that the code registers has one line in metrics.md, and every metric there is registered. Type and
// labels are those of the golden exposition, where the metric is in it, and the unit that of the name.
func TestMetricsAreDocumented(t *testing.T) {
	var registered []string
	for _, s := range sources(t) {
		if s.path == "metrics/former.go" {
			continue // Names of the version before: metrics.md has them in a section of theirs.
		}
		registered = append(registered, namesIn(t, filepath.Join("..", s.path), metricInCode)...)
	}
	text, err := os.ReadFile("metrics.md")
	require.NoError(t, err)
	golden, err := os.ReadFile("../metrics/testdata/exposition.golden")
	require.NoError(t, err)
	var documented []string
	for _, m := range metricLine.FindAllStringSubmatch(regexp.MustCompile(`\n {2,}`).ReplaceAllString(string(text), " "), -1) {
		name, kind, unit := m[1], m[2], m[3]
		require.NotContains(t, documented, name, "documented twice")
		documented = append(documented, name)
		last := unit[strings.LastIndexByte(unit, ' ')+1:]
		for _, base := range []string{"seconds", "bytes", "second"} {
			require.Equal(t, strings.HasSuffix(strings.TrimSuffix(name, "_total"), base), last == base, "the unit of %s", name)
		}
		require.Equal(t, kind == "counter", strings.HasSuffix(name, "_total"), name)
		if kind, labels, ok := exposed(string(golden), name); ok {
			require.Equal(t, kind, m[2], "the type of %s", name)
			require.ElementsMatch(t, labels, strings.Fields(strings.ReplaceAll(m[4], "`", "")), "the labels of %s", name)
		}
	}
	requireSame(t, registered, documented)
}

// exposed returns type and labels of a metric in an exposition; ok is false if it is not there.
func exposed(text, name string) (kind string, labels []string, ok bool) {
	_, rest, ok := strings.Cut(text, "# TYPE "+name+" ")
	if !ok {
		return "", nil, false
	}
	kind, rest, _ = strings.Cut(rest, "\n")
	series, _, _ := strings.Cut(rest, "\n")
	if _, inner, braced := strings.Cut(series, "{"); braced {
		for _, m := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(inner, -1) {
			if m[1] != "le" {
				labels = append(labels, m[1])
			}
		}
	}
	return kind, labels, true
}

// Every planted bug has its entry in planted-bugs.md, and every entry a planted bug.
func TestPlantedBugsAreDocumented(t *testing.T) {
	requireSame(t, namesIn(t, "../internal/plantedbugs/doc.go", bugInCode), namesIn(t, "planted-bugs.md", bugInDocs))
}

// namesIn returns what the group of a pattern matches in a file.
func namesIn(t *testing.T, file string, pattern *regexp.Regexp) (names []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return names
}

func requireSame(t *testing.T, code, documents []string) {
	t.Helper()
	slices.Sort(code)
	slices.Sort(documents)
	require.NotEmpty(t, code)
	require.Equal(t, slices.Compact(code), slices.Compact(documents))
}
