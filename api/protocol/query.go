package protocol

import (
	"iter"
	"strings"

	"antipode/api/wire"
)

// queryParametersMax bounds the parameters of one request. No operation knows a
// tenth of this; without it a request line could cost thirty times its length.
const queryParametersMax = 256

// Param is one decoded query parameter.
type Param struct {
	// Name is decoded, with ASCII letters in lower case.
	Name string
	// Value is decoded; empty for a bare name.
	Value string
}

// Query is the decoded parameters of a request in the order they were sent.
// Names match without case: pass them in lower case. There are few, so lookups
// walk the slice.
//
// Invariant: no name stands in it twice, but that of the list with a value each time.
// A signature joins the values of a name with commas and may leave out empty ones: were
// one of several values taken, a request could be sent as another under its signature.
type Query []Param

// listName is the one parameter that may be repeated: see Query.Included.
const listName = "include"

// ParseQuery decodes a raw query: percent-encoding, + as space, & alone as
// separator (a semicolon is data). Bad percent-encoding, a name that is repeated
// and more than 256 parameters are 400 InvalidQueryParameterValue. Values that need
// no decoding share the memory of raw.
func ParseQuery(raw string) (Query, error) {
	if raw == "" {
		return nil, nil
	}
	q := make(Query, 0, min(strings.Count(raw, "&")+1, queryParametersMax))
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if pair == "" {
			continue
		}
		if len(q) == queryParametersMax {
			return nil, wire.BadParameter(pair, "", "Too many query parameters.")
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, ok := wire.UnescapeQuery(rawName)
		if !ok {
			return nil, wire.BadParameter(rawName, rawValue, "Invalid percent-encoding.")
		}
		value, ok := wire.UnescapeQuery(rawValue)
		if !ok {
			return nil, wire.BadParameter(name, rawValue, "Invalid percent-encoding.")
		}
		p := Param{Name: lowerASCII(name), Value: value}
		if q.repeats(p) {
			return nil, wire.BadParameter(p.Name, value, "The parameter is given more than once.")
		}
		q = append(q, p)
	}
	return q, nil
}

// repeats reports whether p would break the invariant.
func (q Query) repeats(p Param) bool {
	for i := range q {
		if q[i].Name == p.Name && (p.Name != listName || p.Value == "" || q[i].Value == "") {
			return true
		}
	}
	return false
}

// Lookup returns the value of the parameter and whether it was sent.
func (q Query) Lookup(name string) (value string, sent bool) {
	for i := range q {
		if q[i].Name == name {
			return q[i].Value, true
		}
	}
	return "", false
}

// Get returns the value of the parameter, empty when it was not sent.
func (q Query) Get(name string) string {
	value, _ := q.Lookup(name)
	return value
}

// Has reports whether the parameter was sent, with a value or without.
func (q Query) Has(name string) bool {
	_, sent := q.Lookup(name)
	return sent
}

// Included yields the items of the include parameters of a listing in lower case: they are
// separated by commas, and perhaps in several parameters. Empty items are left out.
func (q Query) Included() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, p := range q {
			if p.Name != listName {
				continue
			}
			for item := range strings.SplitSeq(p.Value, ",") {
				if item = strings.ToLower(strings.TrimSpace(item)); item != "" && !yield(item) {
					return
				}
			}
		}
	}
}

// WithoutEmpty returns the parameters that have a value, in a new slice.
func (q Query) WithoutEmpty() Query {
	var kept Query
	for _, p := range q {
		if p.Value != "" {
			kept = append(kept, p)
		}
	}
	return kept
}
