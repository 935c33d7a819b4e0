package wire

import (
	"net/http"
	"slices"
	"strings"

	"antipode/services/catalog"
	"antipode/services/storageerr"
)

const (
	metaPrefix = "X-Ms-Meta-"
	// metaBytesMax bounds all names and values of metadata (protocol/blob.md 19.2).
	metaBytesMax = 8 << 10
)

// ParseMetadata reads the x-ms-meta headers, in the order of their names. Identifiers
// requires names to be C# identifiers, which they are since 2009-09-19; before, a name
// is whatever the name of a header may be. Names come out in lower case, since net/http
// does not keep theirs.
func ParseMetadata(h http.Header, identifiers bool) ([]catalog.Pair, error) {
	var out []catalog.Pair
	size := 0
	empty, invalid := false, false
	for key, values := range h {
		name, found := strings.CutPrefix(key, metaPrefix)
		if !found {
			continue
		}
		if name == "" {
			empty = true
			continue
		}
		// Two values are two names that differed in case.
		if len(values) != 1 || identifiers && !isIdentifier(name) || !isPrintable(values[0]) {
			invalid = true
			continue
		}
		size += len(name) + len(values[0])
		out = append(out, catalog.Pair{Name: strings.ToLower(name), Value: values[0]})
	}
	switch { // After the loop, since a map's order is chance.
	case empty:
		return nil, storageerr.EmptyMetadataKey
	case invalid:
		return nil, storageerr.InvalidMetadata
	case size > metaBytesMax:
		return nil, storageerr.MetadataTooLarge
	}
	slices.SortFunc(out, func(a, b catalog.Pair) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// isIdentifier reports whether name is a C# identifier of ASCII letters.
func isIdentifier(name string) bool {
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '_', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return name != ""
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if (s[i] < ' ' && s[i] != '\t') || s[i] > '~' {
			return false
		}
	}
	return true
}

// SetMetadata writes metadata. The keys go to the map as they are stored: Set would
// change their case.
func SetMetadata(h http.Header, list []catalog.Pair) {
	for _, m := range list {
		h["x-ms-meta-"+m.Name] = []string{m.Value}
	}
}

// AppendMetadata appends metadata to a listing: an element each, called by its name.
// No element may be called by what a version before 2009-09-19 let pass (protocol/blob.md
// S1).
func AppendMetadata(b []byte, list []catalog.Pair) []byte {
	b = append(b, "<Metadata>"...)
	for _, m := range list {
		if isIdentifier(m.Name) {
			b = AppendElement(b, m.Name, m.Value)
		} else {
			b = AppendElement(b, "x-ms-invalid-name", m.Name)
		}
	}
	return append(b, "</Metadata>"...)
}
