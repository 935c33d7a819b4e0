package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plural is a number with a word for many things behind it, which is wrong for one. A bound in bytes is never one, and of a whole
// ("1 of 3 ranges") there are many.
var plural = regexp.MustCompile(`(%d of )?%d ((?:more |older |acknowledged |other )?[a-z]+s)\b`)

// many has what is never one, or no noun.
var many = map[string]bool{"bytes": true, "days": true, "is": true, "perhaps": true, "waits": true}

// What people read in a terminal counts things with check.Count, which knows "1 account" from "2 accounts".
func TestPluralsAreCounted(t *testing.T) {
	read := 0
	for _, dir := range []string{"../cmd/*", "../client/*", "../server/flow"} {
		files, err := filepath.Glob(dir + "/*.go")
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			read++
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, file, nil, 0)
			require.NoError(t, err)
			ast.Inspect(f, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					for _, m := range plural.FindAllStringSubmatch(l.Value, -1) {
						if m[1] == "" && !many[m[2]] {
							t.Errorf("%s: %q: check.Count, or the number at the end", fset.Position(l.Pos()), m[0])
						}
					}
				}
				return true
			})
		}
	}
	require.Greater(t, read, 100)
}
