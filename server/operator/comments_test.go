package operator

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// comments reads those of a package.
func comments(t *testing.T, dir string) spoken {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	s := spoken{of: map[string]string{}, calls: map[string]string{}, values: map[string][]string{}, constants: map[string]string{}}
	names, makes := map[string]string{}, map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil {
					continue
				}
				if d.Recv == nil {
					s.of[d.Name.Name] = flat(d.Doc)
				} else if made := callIn(d); made != "" && makes[made] == "" {
					makes[made] = sentence(d.Name.Name, flat(d.Doc))
				}
			case *ast.GenDecl:
				s.declared(d, names)
			}
		}
	}
	for variable, name := range names {
		if s.calls[name] == "" {
			s.calls[name] = makes[variable]
		}
	}
	return s
}

// declared takes types, constants and calls. names has the name of each call by its variable.
func (s spoken) declared(d *ast.GenDecl, names map[string]string) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if doc := spec.Doc; doc != nil {
				s.of[spec.Name.Name] = flat(doc)
			} else {
				s.of[spec.Name.Name] = flat(d.Doc)
			}
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range fields.Fields.List {
					for _, n := range f.Names {
						s.of[spec.Name.Name+"."+n.Name] = flat(f.Doc)
					}
				}
			}
		case *ast.ValueSpec:
			of, typed := spec.Type.(*ast.Ident)
			for i, v := range spec.Values {
				lit, literal := v.(*ast.BasicLit)
				switch {
				case d.Tok == token.CONST && literal && lit.Kind == token.STRING:
					if text, err := strconv.Unquote(lit.Value); err == nil && text != "" {
						s.constants[spec.Names[i].Name] = text
						if typed {
							s.values[of.Name] = append(s.values[of.Name], text)
						}
					}
				case d.Tok == token.VAR && strings.HasPrefix(spec.Names[i].Name, "Call"):
					names[spec.Names[i].Name] = name(v)
					if spec.Doc != nil {
						s.calls[name(v)] = flat(spec.Doc)
					}
				}
			}
		}
	}
}

// callIn is the variable of the call that a method makes.
func callIn(d *ast.FuncDecl) (found string) {
	ast.Inspect(d.Body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Do" {
			if x, ok := s.X.(*ast.Ident); ok && strings.HasPrefix(x.Name, "Call") {
				found = x.Name
			}
		}
		return true
	})
	return found
}

// sentence makes one of a comment that begins with the name of a function.
func sentence(name, doc string) string {
	doc = strings.TrimPrefix(doc, name+" ")
	return strings.ToUpper(doc[:1]) + doc[1:]
}

func flat(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	return strings.Join(strings.Fields(doc.Text()), " ")
}
