package operation

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// Who reads what is not there finds every operation that answers 501, by the name that the service's reference has for
// it, in the README and in DIVERGENCE; and none that is built.
func TestUnbuiltOperationsAreDocumented(t *testing.T) {
	word := regexp.MustCompile(`URL|ACL|[A-Z][a-z]*`)
	want := map[string][]string{}
	for _, s := range geo.Services {
		for _, o := range Of(s) {
			if o.Built {
				continue
			}
			kind := strings.ToUpper(s.String()[:1]) + s.String()[1:] + "s"
			want[kind] = append(want[kind], strings.Join(word.FindAllString(o.Name, -1), " "))
			slices.Sort(want[kind])
			want[kind] = slices.Compact(want[kind])
		}
	}
	for _, page := range []string{"README.md", filepath.Join("docs", "DIVERGENCE.md")} {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		require.NoError(t, err)
		_, list, found := strings.Cut(string(text), "\nOperations that are not built answer 501 NotImplemented:\n\n")
		require.True(t, found, page)
		list, _, _ = strings.Cut(list, "\n\n")
		got := map[string][]string{}
		for _, line := range strings.Split(strings.ReplaceAll(list, "\n  ", " "), "\n") {
			kind, names, _ := strings.Cut(strings.TrimPrefix(line, "- "), ": ")
			got[kind] = strings.Split(strings.TrimSuffix(names, "."), ", ")
		}
		require.Equal(t, want, got, page)
	}
}
