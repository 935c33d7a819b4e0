package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// unwatched are the packages with tests and goroutines whose tests need not find leaks.
var unwatched = map[string]string{
	"test/messages": "its tests start no goroutine; the tests that run a crowd are in test/faults",
}

// watches matches a TestMain that finds leaked goroutines.
var watches = regexp.MustCompile(`(?m)^func TestMain\(m \*testing\.M\) (\{ |\{\n(?:\t.*\n)*?\t)(goleak\.VerifyTestMain\(m\)|os\.Exit\(devproc\.Main\(m)`)

// Goroutines end with what started them (ARCHITECTURE): the tests of each package that starts any find those that
// are left.
func TestTestsFindLeakedGoroutines(t *testing.T) {
	starting := map[string]bool{}
	for _, s := range sources(t) {
		dir := filepath.Dir(s.path)
		starting[dir] = starting[dir] || startsGoroutine(t, filepath.Join("..", s.path))
	}
	for dir, starts := range starting {
		tests, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
		require.NoError(t, err)
		if !starts || len(tests) == 0 {
			require.NotContains(t, unwatched, dir)
			continue
		}
		watched := false
		for _, name := range tests {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			watched = watched || watches.Match(text)
		}
		require.Equal(t, unwatched[dir] == "", watched, "%s starts goroutines: TestMain calls goleak.VerifyTestMain(m)", dir)
	}
	require.Greater(t, len(starting), 100)
}

// startsGoroutine reports whether a file has a go statement, or calls a method Go with a function.
func startsGoroutine(t *testing.T, name string) (starts bool) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.CallExpr:
			method, ok := n.Fun.(*ast.SelectorExpr)
			starts = starts || ok && method.Sel.Name == "Go" && len(n.Args) == 1
		}
		return !starts
	})
	return starts
}
