package operation

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

var rewrite = flag.Bool("rewrite", false, "write the list of what is not built into the pages that have it")

// listed begins the list in each page.
const listed = "\nOperations that are not built answer 501 NotImplemented:\n\n"

// unbuilt is the list of the operations that answer 501, a kind after the other, by the names that the service's reference
// has for them.
func unbuilt() string {
	word := regexp.MustCompile(`URL|ACL|[A-Z][a-z]*`)
	var out strings.Builder
	for _, s := range []geo.Service{geo.Blob, geo.Queue, geo.Table} {
		var names []string
		for _, o := range Of(s) {
			if !o.Built {
				names = append(names, strings.Join(word.FindAllString(o.Name, -1), " "))
			}
		}
		if len(names) == 0 {
			continue
		}
		slices.Sort(names)
		kind := s.String()
		line := "- " + strings.ToUpper(kind[:1]) + kind[1:] + "s:"
		for _, part := range strings.Fields(strings.Join(slices.Compact(names), ", ") + ".") {
			if len(line)+1+len(part) > 118 {
				out.WriteString(line + "\n")
				line = " "
			}
			line += " " + part
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// Who reads what is not there finds every operation that answers 501 in coverage.md, in DIVERGENCE and in the help of
// antipodectl; and none that is built.
func TestUnbuiltOperationsAreDocumented(t *testing.T) {
	for _, page := range []string{"docs/coverage.md", "docs/DIVERGENCE.md", "cmd/antipodectl/operations.txt"} {
		path := filepath.Join("..", "..", filepath.FromSlash(page))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		head, rest, found := strings.Cut(string(text), listed)
		require.True(t, found, page)
		list, tail, more := strings.Cut(rest, "\n\n")
		if more {
			list, tail = list+"\n", "\n"+tail
		}
		if *rewrite {
			require.NoError(t, os.WriteFile(path, []byte(head+listed+unbuilt()+tail), 0o644))
			continue
		}
		require.Equal(t, unbuilt(), list, "%s: go test ./api/operation -args -rewrite writes it", page)
	}
}
