package operator

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// statuses are those that answers name in Go.
var statuses = map[string]int{
	"StatusBadRequest": http.StatusBadRequest, "StatusUnauthorized": http.StatusUnauthorized, "StatusForbidden": http.StatusForbidden,
	"StatusNotFound": http.StatusNotFound, "StatusConflict": http.StatusConflict,
	"StatusRequestEntityTooLarge": http.StatusRequestEntityTooLarge, "StatusInternalServerError": http.StatusInternalServerError,
	"StatusServiceUnavailable": http.StatusServiceUnavailable,
}

// Every code that the admin API, its backend or a location writes with a status is in the table of codes, with that status.
// So is every code that the client has a name for. The test reads the Go source, so an answer that no test makes counts, too.
func TestCodes(t *testing.T) {
	table := map[string][]int{}
	for _, c := range wire.Codes() {
		require.NotContains(t, table, c.Name)
		table[c.Name] = c.Statuses
	}
	texts := comments(t, "../../client/admin").constants
	for name, code := range texts {
		if strings.HasPrefix(name, "Code") {
			require.Contains(t, table, code, name)
		}
	}
	seen := 0
	for _, dir := range []string{"../../client/admin", "../../api/admin", ".", "../location"} {
		known := comments(t, dir).constants
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, file := range slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") }) {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(parsed, func(n ast.Node) bool {
				status, code := answerIn(n)
				of, ok := statuses[last(status)]
				if !ok {
					return true
				}
				name := texts[last(code)]
				if name == "" {
					name = known[last(code)]
				}
				if lit, is := code.(*ast.BasicLit); is {
					name, _ = strconv.Unquote(lit.Value)
				}
				if name == "" {
					return true // Of the storage protocol, or the parameter of a function.
				}
				seen++
				require.Contains(t, table, name, file)
				require.Contains(t, table[name], of, "%s: %s", file, name)
				return true
			})
		}
	}
	require.Greater(t, seen, 40)
}

// answerIn is the status and the code that an error is made of.
func answerIn(n ast.Node) (status, code ast.Expr) {
	switch n := n.(type) {
	case *ast.CompositeLit:
		for _, e := range n.Elts {
			if field, ok := e.(*ast.KeyValueExpr); ok {
				switch last(field.Key) {
				case "Status":
					status = field.Value
				case "Code":
					code = field.Value
				}
			}
		}
	case *ast.CallExpr:
		if len(n.Args) >= 2 {
			status, code = n.Args[0], n.Args[1]
		}
	}
	return status, code
}

// last is the identifier that an expression ends with, "" for none.
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
