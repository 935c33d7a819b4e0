// Package docs_test checks the documents against the tree.
package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// foreign are the first words of dotted names that are not ours: packages of others, and
// what documents write in the same form.
var foreign = []string{"azblob", "azcore", "http", "os", "pebble", "prometheus", "raft", "runtime", "slog", "sync", "tls", "vfs"}

// notOurs are whole code spans in the form of a symbol or file that name something else:
// files of a deployment, modules, examples.
var notOurs = []string{
	"package.Type.Method", "node.yaml", "gateway.yaml", "ca.crt", "ca.key", "ca/ca.key", "node.crt", "node.key", "next.new", "go.mod", "nats.go",
	"NNNNNN.ext", "NNNNNN.sst", "NNNNNNNN.seg",
	"antipode.test", "hostmaster.ZONE", "ns.ZONE", "names.new", "names.damaged", "first.mjs", "docs/runbooks/NAME.md",
	"g.Pred", // A value in a planted bug.
	// Planned: DESIGN.md marks them so.
	"replication/site", "services/lease",
}

// tree is what the Go files of the repository declare.
type tree struct {
	// files are the paths of all files and folders, from the root.
	files []string
	// packages by folder.
	packages map[string]*pkg
	// tests are the names of test, fuzz and benchmark functions.
	tests map[string]bool
	// fields are the names in yaml and json tags.
	fields map[string]bool
}

// pkg is what one folder declares, test files included.
type pkg struct {
	name string
	// members of a declared name: methods, fields and embedded types; nil where it has none.
	members map[string]map[string]bool
	embeds  map[string][]string
}

// tag finds the name in a yaml or json tag.
var tag = regexp.MustCompile(`(?:yaml|json):"(\w+)`)

var testName = regexp.MustCompile(`\b(Test|Fuzz|Benchmark|Example)[A-Z]\w*`)

// skipped are folders with nothing of ours.
var skipped = []string{".git", "node_modules", "bin", "antipode-data", "antipode-cluster"}

func readTree(t *testing.T, root string) *tree {
	t.Helper()
	tr := &tree{packages: map[string]*pkg{}, tests: map[string]bool{}, fields: map[string]bool{}}
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(skipped, d.Name()) {
			return fs.SkipDir
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		tr.files = append(tr.files, filepath.ToSlash(rel))
		if d.IsDir() || path.Ext(rel) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		tr.add(path.Dir(filepath.ToSlash(rel)), parsed)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok && f.Tag != nil {
				for _, m := range tag.FindAllStringSubmatch(f.Tag.Value, -1) {
					tr.fields[m[1]] = true
				}
			}
			return true
		})
		return nil
	}))
	return tr
}

func (tr *tree) add(dir string, f *ast.File) {
	p := tr.packages[dir]
	if p == nil {
		p = &pkg{name: strings.TrimSuffix(f.Name.Name, "_test"), members: map[string]map[string]bool{}, embeds: map[string][]string{}}
		tr.packages[dir] = p
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				p.member(typeName(d.Recv.List[0].Type), d.Name.Name)
				continue
			}
			p.declare(d.Name.Name)
			if testName.MatchString(d.Name.Name) {
				tr.tests[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						p.declare(n.Name)
					}
				case *ast.TypeSpec:
					p.declare(s.Name.Name)
					p.addType(s.Name.Name, s.Type)
				}
			}
		}
	}
}

func (p *pkg) addType(name string, e ast.Expr) {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	default:
		p.embeds[name] = append(p.embeds[name], typeName(e)) // type A B, or an alias.
		return
	}
	for _, f := range fields.List {
		for _, n := range f.Names {
			p.member(name, n.Name)
		}
		if len(f.Names) == 0 {
			p.member(name, typeName(f.Type))
			p.embeds[name] = append(p.embeds[name], typeName(f.Type))
		}
	}
}

func (p *pkg) declare(name string) {
	if _, known := p.members[name]; !known {
		p.members[name] = nil
	}
}

func (p *pkg) member(of, name string) {
	if p.members[of] == nil {
		p.members[of] = map[string]bool{}
	}
	p.members[of][name] = true
}

// typeName is the last word of a type's name.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	}
	return ""
}

// has reports whether a type has a member, by embedding too; an embedded type is looked for
// by its name in all packages.
func (tr *tree) has(p *pkg, of, name string, depth int) bool {
	if p.members[of][name] {
		return true
	}
	if depth == 0 {
		return false
	}
	for _, e := range p.embeds[of] {
		for _, q := range tr.packages {
			if _, known := q.members[e]; known && tr.has(q, e, name, depth-1) {
				return true
			}
		}
	}
	return false
}

var (
	dotted   = regexp.MustCompile(`^((?:[a-z]\w*/)*)([a-z]\w*)\.(\w+)(?:\.(\w+))?(?:\.\w+)*$`)
	goOrText = regexp.MustCompile(`^[\w./*{},-]+\.(go|md|sh|mjs|cjs|proto|golden|json|yaml|txt)$`)
	member   = regexp.MustCompile(`^([A-Z]\w*)\.(\w+)$`)
	folder   = regexp.MustCompile(`^(\./)?[a-z][\w-]*(/[\w{},.*-]+)+/?$`)
)

// check returns what is wrong with a code span, "" where nothing is.
func (tr *tree) check(span string) string {
	for _, name := range testName.FindAllString(span, -1) {
		if tr.tests[name] || name == "TestMain" {
			continue
		}
		if !strings.Contains(span, "-run") || !slices.ContainsFunc(sortedKeys(tr.tests), func(s string) bool { return strings.HasPrefix(s, name) }) {
			return "there is no " + name
		}
	}
	word, _, _ := strings.Cut(span, "(")
	switch {
	case strings.ContainsAny(word, " <>$|\"'") || word == "" || slices.Contains(notOurs, word) || tr.isField(word):
		return ""
	case goOrText.MatchString(word):
		return tr.checkFile(word)
	case folder.MatchString(word) && slices.Contains(tr.files, strings.TrimPrefix(strings.SplitN(strings.TrimPrefix(word, "./"), "/", 2)[0], "./")) && !dotted.MatchString(word):
		return tr.checkFile(strings.TrimSuffix(word, "/"))
	}
	if m := dotted.FindStringSubmatch(word); m != nil {
		return tr.checkDotted(strings.TrimSuffix(m[1], "/"), m[2], m[3], m[4])
	}
	if m := member.FindStringSubmatch(word); m != nil && !tr.hasAnywhere(m[1], m[2]) {
		return fmt.Sprintf("no type %s has %s", m[1], m[2])
	}
	return ""
}

// isField reports whether a dotted name is that of a field in a configuration or document.
func (tr *tree) isField(word string) bool {
	for _, part := range strings.Split(word, ".") {
		if !tr.fields[strings.TrimSuffix(part, "[]")] {
			return false
		}
	}
	return true
}

func (tr *tree) hasAnywhere(of, name string) bool {
	for _, p := range tr.packages {
		if _, known := p.members[of]; known && tr.has(p, of, name, 3) {
			return true
		}
	}
	return false
}

func sortedKeys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// checkFile looks for a path, or for the end of one; braces and stars stand for several.
func (tr *tree) checkFile(name string) string {
	for _, pattern := range braces(strings.TrimPrefix(name, "./")) {
		found := slices.ContainsFunc(tr.files, func(file string) bool {
			for {
				if ok, err := path.Match(pattern, file); err == nil && ok {
					return true
				}
				_, rest, more := strings.Cut(file, "/")
				if !more {
					return false
				}
				file = rest
			}
		})
		if !found {
			return "there is no file " + pattern
		}
	}
	return ""
}

func braces(pattern string) []string {
	before, rest, found := strings.Cut(pattern, "{")
	list, after, closed := strings.Cut(rest, "}")
	if !found || !closed {
		return []string{pattern}
	}
	var out []string
	for _, one := range strings.Split(list, ",") {
		out = append(out, braces(before+one+after)...)
	}
	return out
}

func (tr *tree) checkDotted(dir, name, symbol, member string) string {
	ours := false
	for at, p := range tr.packages {
		if p.name != name && path.Base(at) != name || dir != "" && !strings.HasSuffix("/"+path.Dir(at), "/"+dir) {
			continue
		}
		ours = true
		if _, known := p.members[symbol]; known && (member == "" || tr.has(p, symbol, member, 3)) {
			return ""
		}
	}
	switch {
	case !ours && dir == "" && (slices.Contains(foreign, name) || member == "" && tr.hasAnywhere(name, symbol)):
		return ""
	case !ours:
		return fmt.Sprintf("there is no package %s", name)
	case member != "":
		return fmt.Sprintf("package %s has no %s with %s", name, symbol, member)
	}
	return fmt.Sprintf("package %s has no %s", name, symbol)
}

var (
	fence  = regexp.MustCompile("(?ms)^```.*?^```")
	inline = regexp.MustCompile("`([^`]+)`")
)

// documents returns the documents, except the protocol references: their words are the protocol's.
func documents(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"../*.md", "*.md", "*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range found {
			if dir, base := filepath.Split(file); filepath.Clean(dir) != "protocol" || base == "README.md" {
				out = append(out, file)
			}
		}
	}
	require.Greater(t, len(out), 10)
	return out
}

// lineMax is how many characters a line of a document may have.
const lineMax = 120

// Lines of documents are short enough to read and to compare. The protocol references are
// excepted: their tables are the reference's, and tests read them line by line.
func TestLinesAreShort(t *testing.T) {
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for i, line := range strings.Split(string(text), "\n") {
			if n := utf8.RuneCountInString(line); n > lineMax {
				t.Errorf("%s:%d has %d characters, %d are allowed: %.60s", file, i+1, n, lineMax, line)
			}
		}
	}
}

// Every package.Symbol, test and file that the documents name in code spans exists: who
// follows one finds it. Renaming a symbol fails here until the documents follow.
func TestDocumentsNameWhatExists(t *testing.T) {
	tr := readTree(t, "..")
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		body := fence.ReplaceAllStringFunc(string(text), func(string) string { return "\n" })
		for _, paragraph := range strings.Split(body, "\n\n") {
			for _, m := range inline.FindAllStringSubmatch(paragraph, -1) {
				span := strings.ReplaceAll(m[1], "\n", " ")
				if wrong := tr.check(span); wrong != "" {
					t.Errorf("%s: `%s`: %s", file, span, wrong)
				}
			}
		}
	}
}

// The check itself: names of each kind that exist pass, and others do not.
func TestCheck(t *testing.T) {
	tr := readTree(t, "..")
	for _, span := range []string{
		"protocol.ParseTarget", "api/protocol.ParseTarget", "api.exchange.dispatch", "stamp.Stamp.Submit", "Machine.fits", "TestCheck", "TestCheck/sub",
		"go test ./docs -run 'TestDocuments'", "api/server.go", "server.go", "server/dev/*_test.go", "services/{catalog,tables}", "listen.admin",
		"http.Server", "kill -9", "make run ARGS=\"--port-base 20000\"", "protocol.ParseTarget(r, s)", "x-ms-version", "$filter",
	} {
		require.Empty(t, tr.check(span), span)
	}
	for _, span := range []string{
		"protocol.Nothing", "api/blobs.ParseTarget", "api.Server.dispatch", "nopackage.Symbol", "Machine.nothing", "TestNothingOfTheKind", "go test ./docs -run TestNothing",
		"api/nothing.go", "nothing_test.go", "internal/nothing", "services/{catalog,nothing}", "listen.nothing",
	} {
		require.NotEmpty(t, tr.check(span), span)
	}
}
