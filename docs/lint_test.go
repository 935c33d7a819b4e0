package docs_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// filesOf is a pattern of holds as the lint rule writes it.
func filesOf(pattern string) string {
	if path.Ext(pattern) == ".go" || strings.HasSuffix(pattern, "/**") {
		return "**/" + pattern
	}
	return "**/" + pattern + "/*.go"
}

// files are the files of a room: not those of rooms inside it, nor of packages that only tests import.
func (r room) files() (patterns []string) {
	held := strings.Fields(r.holds)
	for _, pattern := range held {
		patterns = append(patterns, filesOf(pattern))
	}
	if strings.Contains(r.holds, "*") {
		for _, other := range rooms {
			for _, pattern := range strings.Fields(other.holds) {
				base := strings.TrimRight(pattern, "/*")
				if path.Ext(base) == ".go" {
					base = path.Dir(base)
				}
				if other.name != r.name && slices.ContainsFunc(held, func(p string) bool { return match(p, base) >= 0 }) {
					patterns = append(patterns, "!"+filesOf(pattern))
				}
			}
		}
		patterns = append(patterns, "!**/*test/*.go")
	}
	return append(patterns, "!$test")
}

// allowed are the imports of a room as the lint rule writes them: there a name without $ is a prefix.
func (r room) allowed() []string {
	allow := []string{"$gostd"}
	for _, p := range strings.Fields(r.imports) {
		first, _, _ := strings.Cut(p, "/")
		switch prefix, below := strings.CutSuffix(p, "/*"); {
		case p == "std":
		case strings.Contains(first, "."):
			allow = append(allow, p)
		case below:
			allow = append(allow, "antipode/"+prefix)
		default:
			allow = append(allow, "antipode/"+p+"$")
		}
	}
	return allow
}

// writeRule adds a strict rule.
func writeRule(b *strings.Builder, name string, files, allow []string) {
	quoted := make([]string, 0, len(files))
	for _, f := range files {
		quoted = append(quoted, fmt.Sprintf("%q", f))
	}
	fmt.Fprintf(b, "        %s:\n          list-mode: strict\n          files:\n            - %s\n          allow:\n            - %s\n",
		name, strings.Join(quoted, "\n            - "), strings.Join(allow, "\n            - "))
}

// The lint rules are those of the rooms, and a package that no room holds may import nothing of ours.
//
// Capability: The house: The floors of DESIGN section 8.
func TestHouseIsLinted(t *testing.T) {
	var b strings.Builder
	rest := []string{"$all"}
	for _, r := range rooms {
		if r.imports != "" {
			writeRule(&b, r.name, r.files(), r.allowed())
		}
		for _, pattern := range strings.Fields(r.holds) {
			rest = append(rest, "!"+filesOf(pattern))
		}
	}
	writeRule(&b, "nowhere", append(rest, "!**/*test/*.go", "!$test"), []string{"$gostd"})
	requireGeneratedBetween(t, "../.golangci.yaml", "        # The house: docs/floors_test.go writes what follows.",
		"        # End of the house.", b.String())
}

// Every room holds a package, and every package of an order exists: else a rule would bind nothing.
func TestHouseHoldsWhatExists(t *testing.T) {
	held, within := map[string]bool{}, map[string][]string{}
	for _, s := range sources(t) {
		pkg := path.Dir(s.path)
		if forTests(pkg) {
			continue
		}
		r, ok := roomWith(pkg)
		require.True(t, ok, "%s is in no room: give it a line in docs/floors_test.go", pkg)
		held[r.name] = true
		held[s.path] = true
		name := "."
		if _, rest, below := strings.Cut(pkg, "/"); below {
			name = roomOf(rest)
		}
		within[roomOf(pkg)] = append(within[roomOf(pkg)], name)
	}
	for _, r := range rooms {
		if len(r.packages()) > 0 {
			require.True(t, held[r.name], "room %s holds nothing", r.name)
			continue
		}
		for _, file := range strings.Fields(r.holds) {
			require.True(t, held[file], "room %s: there is no %s", r.name, file)
		}
	}
	for folder, packages := range order {
		require.Subset(t, within[folder], packages, "the order of %s", folder)
	}
}
