package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lineMax is how long a line of the page may be.
const lineMax = 118

var documentNamed = regexp.MustCompile(`\bdocs/([\w/-]+\.md)`)

// reader collects the fields of the configurations from the source of this package.
type reader struct {
	structs map[string]*ast.StructType
	// listed are the structs that an earlier file has; a later one refers to it.
	listed map[string]bool
	out    strings.Builder
	// names and text are the entry under way: fields without a comment join the one before.
	names []string
	text  string
}

// flush writes the entry under way.
func (r *reader) flush() {
	if len(r.names) == 0 {
		return
	}
	line := "-"
	text := "`" + strings.Join(r.names, "`, `") + "`: " + documentNamed.ReplaceAllString(r.text, "[$1]($1)")
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > lineMax {
			r.out.WriteString(line + "\n")
			line = " "
		}
		line += " " + word
	}
	r.out.WriteString(line + "\n")
	r.names = nil
}

// add lists the fields of a struct under a path; fields that are structs of this package are listed one by one.
func (r *reader) add(t *testing.T, of, under string, seen map[string]bool) {
	for _, f := range r.structs[of].Fields.List {
		require.NotNil(t, f.Tag, "%s: a field without a name in the file", of)
		tag, err := strconv.Unquote(f.Tag.Value)
		require.NoError(t, err)
		path := under + reflect.StructTag(tag).Get("yaml")
		text := strings.TrimPrefix(strings.Join(strings.Fields(f.Doc.Text()), " "), f.Names[0].Name+": ")
		of, list := f.Type, ""
		if a, ok := of.(*ast.ArrayType); ok {
			of, list = a.Elt, "[]"
		}
		name, _ := of.(*ast.Ident)
		inner := name != nil && r.structs[name.Name] != nil
		switch {
		case inner && r.listed[name.Name]:
			r.flush()
			r.names, r.text = []string{path}, strings.TrimSpace("As in node.yaml. "+text)
		case inner:
			seen[name.Name] = true
			if text != "" {
				r.flush()
				r.names, r.text = []string{path}, text
			}
			r.flush()
			r.add(t, name.Name, path+list+".", seen)
			r.flush()
		case text != "":
			r.flush()
			r.names, r.text = []string{path}, text
		default:
			require.NotEmpty(t, r.names, "%s has no comment", path)
			r.names = append(r.names, path)
		}
	}
}

// The page of the configurations is what the comments of the fields say.
func TestReference(t *testing.T) {
	r := &reader{structs: map[string]*ast.StructType{}, listed: map[string]bool{}}
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range sources {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					r.structs[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	r.out.WriteString("# Configuration\n\n<!-- Generated from the structs: " +
		"go test ./server/config -run Reference -args -rewrite -->\n\n" +
		"Every field of the four files. `antipode config check` reports the errors of a file; unknown and repeated fields\n" +
		"are errors. How they work together: [node.md](node.md), [dns.md](dns.md).\n")
	for _, file := range []struct{ name, of string }{
		{"node.yaml", "Node"}, {"gateway.yaml", "Gateway"}, {"dns.yaml", "DNS"}, {"witness.yaml", "Witness"},
	} {
		fmt.Fprintf(&r.out, "\n## %s\n\n", file.name)
		seen := map[string]bool{}
		r.add(t, file.of, "", seen)
		r.flush()
		maps.Copy(r.listed, seen)
	}
	const page = "../../docs/configuration.md"
	if *rewrite {
		require.NoError(t, os.WriteFile(page, []byte(r.out.String()), 0o644))
	}
	want, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, slices.Collect(strings.Lines(string(want))), slices.Collect(strings.Lines(r.out.String())))
}
