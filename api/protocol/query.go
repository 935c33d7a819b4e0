package protocol

import (
	"strings"

	"antipode/services/storageerr"
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
type Query []Param

// ParseQuery decodes a raw query: percent-encoding, + as space, & alone as
// separator (a semicolon is data). Bad percent-encoding and more than 256
// parameters are 400 InvalidQueryParameterValue. Values that need no decoding
// share the memory of raw.
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
			return nil, badParameter(pair, "", "Too many query parameters.")
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, ok := unescapeQuery(rawName)
		if !ok {
			return nil, badParameter(rawName, rawValue, "Invalid percent-encoding.")
		}
		value, ok := unescapeQuery(rawValue)
		if !ok {
			return nil, badParameter(name, rawValue, "Invalid percent-encoding.")
		}
		q = append(q, Param{Name: lowerASCII(name), Value: value})
	}
	return q, nil
}

// Lookup returns the first value of the parameter and whether it was sent.
func (q Query) Lookup(name string) (value string, sent bool) {
	for i := range q {
		if q[i].Name == name {
			return q[i].Value, true
		}
	}
	return "", false
}

// Get returns the first value of the parameter, empty when it was not sent.
func (q Query) Get(name string) string {
	value, _ := q.Lookup(name)
	return value
}

// Has reports whether the parameter was sent, with a value or without.
func (q Query) Has(name string) bool {
	_, sent := q.Lookup(name)
	return sent
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

func badParameter(name, value, reason string) error {
	return storageerr.InvalidQueryParameter.With(
		"QueryParameterName", name, "QueryParameterValue", value, "Reason", reason)
}

// unescapeQuery decodes one name or value of a query, where + is a space.
func unescapeQuery(s string) (string, bool) {
	i := strings.IndexAny(s, "%+")
	if i < 0 {
		return s, true
	}
	b := make([]byte, i, len(s))
	copy(b, s)
	for ; i < len(s); i++ {
		switch s[i] {
		case '+':
			b = append(b, ' ')
		case '%':
			c, ok := hexPair(s, i+1)
			if !ok {
				return "", false
			}
			b = append(b, c)
			i += 2
		default:
			b = append(b, s[i])
		}
	}
	return string(b), true
}

// UnescapePath percent-decodes a part of a path, where + is a plus sign. The
// caller cuts the raw path first: a decoded slash is data. ok is false for bad
// percent-encoding; whether the bytes are UTF-8 is not looked at.
func UnescapePath(s string) (decoded string, ok bool) {
	i := strings.IndexByte(s, '%')
	if i < 0 {
		return s, true
	}
	b := make([]byte, i, len(s))
	copy(b, s)
	for ; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		c, ok := hexPair(s, i+1)
		if !ok {
			return "", false
		}
		b = append(b, c)
		i += 2
	}
	return string(b), true
}

// hexPair reads the two hexadecimal digits of s at i.
func hexPair(s string, i int) (byte, bool) {
	if i+1 >= len(s) {
		return 0, false
	}
	high, ok1 := hexDigit(s[i])
	low, ok2 := hexDigit(s[i+1])
	return high<<4 | low, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
