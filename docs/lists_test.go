package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	metricInCode = regexp.MustCompile(`"(antipode_[a-z_]+)"`)
	metricInDocs = regexp.MustCompile("`(antipode_[a-z_]+)`")
	bugInCode    = regexp.MustCompile(`\w+: +"([a-z0-9-]+)",\n`)
	bugInDocs    = regexp.MustCompile(`(?m)^- \*\*([a-z0-9-]+)\*\*`)
)

// Every metric that the code registers has its line in admin.md, and every metric there is
// registered.
func TestMetricsAreDocumented(t *testing.T) {
	var registered []string
	for _, s := range sources(t) {
		registered = append(registered, namesIn(t, filepath.Join("..", s.path), metricInCode)...)
	}
	requireSame(t, registered, namesIn(t, "admin.md", metricInDocs))
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
