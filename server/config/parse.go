package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// BytesMax bounds a file.
const BytesMax = 1 << 20

// Load reads the file of a node: see Parse. It returns an error other than Problems if the file
// could not be read.
func Load(path string) (Node, Problems, error) { return load[Node](path) }

func load[T file[T]](path string) (none T, _ Problems, _ error) {
	f, err := os.Open(path)
	if err != nil {
		return none, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, BytesMax+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return none, nil, err
	}
	return parse[T](data)
}

// Parse reads the text of a node.yaml, fills in defaults and validates. It returns the problems in
// the order of the file. If one of them is an error, they are also the error returned, and the
// Node must not be used.
func Parse(data []byte) (Node, Problems, error) { return parse[Node](data) }

// file is the contents of a configuration file.
type file[T any] interface {
	withDefaults() T
	validate(w *walker)
}

func parse[T file[T]](data []byte) (T, Problems, error) {
	w := walker{lines: map[string]int{}, values: map[string]string{}}
	var n T
	if len(data) > BytesMax {
		w.add("", 0, "", fmt.Sprintf("the file is longer than %d bytes", BytesMax))
	} else if root := w.document(data); root != nil {
		w.walk(root, reflect.ValueOf(&n).Elem(), "")
		if len(w.problems) == 0 {
			n = n.withDefaults()
			n.validate(&w)
		}
	}
	slices.SortStableFunc(w.problems, func(a, b Problem) int { return a.Line - b.Line })
	if w.problems.Errors() > 0 {
		return n, w.problems, w.problems
	}
	return n, w.problems, nil
}

// walker decodes a YAML tree into a struct. The decoder of package yaml stops at the first
// unknown field, names Go types in errors, and drops the line numbers.
type walker struct {
	problems Problems
	// lines and values by field path, such as peers[1].address.
	lines  map[string]int
	values map[string]string
}

func (w *walker) add(field string, line int, value, message string) {
	w.problems = append(w.problems, Problem{Severity: Error, Field: field, Line: line, Value: value, Message: message})
}

// document returns the root of the only document in data, or nil.
func (w *walker) document(data []byte) *yaml.Node {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := d.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		w.add("", 0, "", "the file is empty: docs/node.md has one to start from")
		return nil
	}
	if err != nil {
		w.add("", lineOf(err), "", "this is not YAML: "+strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		w.add("", more.Line, "", "only one document is read: remove what follows ---")
		return nil
	}
	return doc.Content[0]
}

// lineOf finds the line number in an error of package yaml, zero without one.
func lineOf(err error) int {
	_, rest, ok := strings.Cut(err.Error(), "line ")
	if !ok {
		return 0
	}
	digits, _, _ := strings.Cut(rest, ":")
	line, _ := strconv.Atoi(digits)
	return line
}

// walk sets v from n.
func (w *walker) walk(n *yaml.Node, v reflect.Value, path string) {
	if path != "" {
		w.lines[path] = n.Line
	}
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		w.add(path, n.Line, n.Value, "anchors and aliases are not read: write the value itself")
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		// The same as a missing field.
	case v.Kind() == reflect.Struct:
		w.mapping(n, v, path)
	case v.Kind() == reflect.Slice:
		w.sequence(n, v, path)
	case n.Kind != yaml.ScalarNode:
		w.add(path, n.Line, "", "want one value, not "+kindWords(n))
	case v.Kind() == reflect.Uint64:
		w.values[path] = n.Value
		number, err := strconv.ParseUint(n.Value, 10, 64)
		if err != nil {
			w.add(path, n.Line, n.Value, "want a whole number, from 1")
			return
		}
		v.SetUint(number)
	case v.Kind() == reflect.Int64:
		w.values[path] = n.Value
		number, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil {
			w.add(path, n.Line, n.Value, "want a whole number")
			return
		}
		v.SetInt(number)
	case v.Kind() == reflect.Bool:
		w.values[path] = n.Value
		if n.Value != "true" && n.Value != "false" {
			w.add(path, n.Line, n.Value, "want true or false")
		}
		v.SetBool(n.Value == "true")
	default:
		w.values[path] = n.Value
		v.SetString(n.Value)
	}
}

func kindWords(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "fields"
	}
	return "a value"
}

func (w *walker) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		w.add(path, n.Line, n.Value, "want fields (name: value), not "+kindWords(n))
		return
	}
	var names []string
	fields := map[string]reflect.Value{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		names = append(names, name)
		fields[name] = v.Field(i)
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := key.Value
		if path != "" {
			at = path + "." + key.Value
		}
		field, known := fields[key.Value]
		switch {
		case !known:
			w.add(at, key.Line, "", "there is no such field; here can be: "+strings.Join(names, ", "))
		case seen[key.Value] != 0:
			w.add(at, key.Line, "", fmt.Sprintf("the field is there twice, first on line %d: remove one", seen[key.Value]))
		default:
			seen[key.Value] = key.Line
			w.walk(value, field, at)
		}
	}
}

func (w *walker) sequence(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.ScalarNode && v.Type().Elem().Kind() == reflect.String {
		v.Set(reflect.MakeSlice(v.Type(), 1, 1)) // One value is a list of one.
		w.walk(n, v.Index(0), path+"[0]")
		return
	}
	if n.Kind != yaml.SequenceNode {
		w.add(path, n.Line, n.Value, "want a list (lines that begin with -), not "+kindWords(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		w.walk(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}
