package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is a Go file that is not a test.
type source struct {
	path    string
	lines   int
	imports []string
}

// sources are the files of the module, without tests and what only tests use.
func sources(t *testing.T) (all []source) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != ".." || d.Name() == "node_modules" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel("..", file)
		if err != nil || strings.HasSuffix(file, ".pb.go") { // Generated.
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		s := source{path: filepath.ToSlash(name), lines: strings.Count(string(text), "\n")}
		for _, i := range parsed.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if own, ok := strings.CutPrefix(p, "antipode/"); ok {
				s.imports = append(s.imports, own)
			}
		}
		all = append(all, s)
		return nil
	}))
	return all
}

// forTests reports whether only tests import a package.
func forTests(pkg string) bool {
	return strings.HasSuffix(pkg, "test") || strings.HasPrefix(pkg, "test/")
}

// roomOf is the first element of a package's path.
func roomOf(pkg string) string {
	top, _, _ := strings.Cut(pkg, "/")
	return top
}

// folderOf is roomOf, but for a part of the directory, which stands on its floor wherever its folder is: it counts by itself.
func folderOf(pkg string) string {
	if r, ok := roomWith(pkg); ok && r.floor == 3 {
		return pkg
	}
	return roomOf(pkg)
}

// No import goes to a higher floor, folders do not import each other in a circle, and within stamp
// and server each package imports only what stands below it.
//
// Capability: The house: The floors of DESIGN section 8.
func TestImportsPointDownward(t *testing.T) {
	arrows := map[string][]string{}
	for _, s := range sources(t) {
		pkg := path.Dir(s.path)
		if forTests(pkg) {
			continue
		}
		room, known := roomWith(pkg)
		require.True(t, known, "%s is in no room: give its package a line in docs/floors_test.go", s.path)
		for _, to := range s.imports {
			below, known := roomWith(to)
			require.True(t, known, "%s imports %s, which is in no room", s.path, to)
			require.LessOrEqual(t, below.floor, room.floor, "%s imports %s, which is above it", s.path, to)
			if from, to := folderOf(pkg), folderOf(to); from != to && !slices.Contains(arrows[from], to) {
				arrows[from] = append(arrows[from], to)
			}
			for within, packages := range order {
				inOrder(t, s.path, pkg, to, within, packages)
			}
		}
	}
	for from := range arrows {
		require.NotContains(t, reached(arrows, from), from, "folders import each other in a circle")
	}
}

// inOrder checks an import within a folder.
func inOrder(t *testing.T, file, pkg, to, within string, order []string) {
	t.Helper()
	if roomOf(pkg) != within || roomOf(to) != within || pkg == to {
		return
	}
	place := func(p string) int {
		name := "."
		if _, rest, ok := strings.Cut(p, "/"); ok {
			name = roomOf(rest)
		}
		at := slices.Index(order, name)
		require.GreaterOrEqual(t, at, 0, "%s: package %s has no place in the order of %s", file, p, within)
		return at
	}
	require.LessOrEqual(t, place(to), place(pkg), "%s imports %s, which is above it", file, to)
}

// reached are the folders that one leads to.
func reached(arrows map[string][]string, from string) (found []string) {
	next := slices.Clone(arrows[from])
	for len(next) > 0 {
		f := next[0]
		next = next[1:]
		if !slices.Contains(found, f) {
			found = append(found, f)
			next = append(next, arrows[f]...)
		}
	}
	return found
}

// linesMax bounds a file that is not a test and not generated.
const linesMax = 400

// A file has one subject, and so a length that one reads at once.
//
// Capability: The house: The floors of DESIGN section 8.
func TestFilesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		require.LessOrEqual(t, s.lines, linesMax, s.path)
	}
}

// nodeLinesMax bounds the files of stamp/node together: what decides is in packages that it drives.
const nodeLinesMax = 2500

// The package of a node grows only by what carries out, not by what decides.
func TestNodeIsSmall(t *testing.T) {
	lines := 0
	for _, s := range sources(t) {
		if path.Dir(s.path) == "stamp/node" {
			lines += s.lines
		}
	}
	require.Less(t, lines, nodeLinesMax)
}

// Bounds of node.Node. What a method does for one range belongs to hostedRange, what a pass does to
// scheduler, and what concerns the disk or the places of ranges to stores and placement.
const (
	nodeMethodsMax = 39
	nodeFieldsMax  = 20
)

// The type that holds a node together does not collect the work of its parts.
//
// Capability: The house: Every rule, protocol section, symbol and file that a comment or document names exists.
func TestNodeTypeIsSmall(t *testing.T) {
	methods, fields := membersOf(t, "../stamp/node", "Node")
	require.NotZero(t, methods)
	require.NotZero(t, fields)
	require.LessOrEqual(t, methods, nodeMethodsMax, "methods of node.Node")
	require.LessOrEqual(t, fields, nodeFieldsMax, "fields of node.Node")
}

// membersOf counts the methods and fields that a folder declares for a type, without its tests.
func membersOf(t *testing.T, dir, name string) (methods, fields int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil && typeName(n.Recv.List[0].Type) == name {
					methods++
				}
				return false
			case *ast.TypeSpec:
				if of, ok := n.Type.(*ast.StructType); ok && n.Name.Name == name {
					for _, f := range of.Fields.List {
						fields += max(1, len(f.Names)) // An embedded field has no name.
					}
				}
				return false
			}
			return true
		})
	}
	return methods, fields
}

// Which range holds what is for package route alone to say: geo.FirstRange is where the first table is
// made (R14).
func TestR14RangesAreRouted(t *testing.T) {
	var found []string
	for _, s := range sources(t) {
		folder, _, _ := strings.Cut(s.path, "/")
		if slices.Contains([]string{"geo", "sim", "bench", "test"}, folder) || s.path == "stamp/route/table.go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", s.path))
		require.NoError(t, err)
		if strings.Contains(string(text), "geo.FirstRange(") || strings.Contains(string(text), "route.Unsplit(") && s.path != "stamp/ranges/snapshot.go" {
			found = append(found, s.path)
		}
	}
	require.Empty(t, found, "ask a route.Table instead")
}
