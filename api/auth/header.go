package auth

import (
	"net/http"
	"slices"
	"strings"

	"antipode/services/storageerr"
)

// scheme is the first word of an Authorization header.
type scheme uint8

const (
	sharedKey scheme = iota + 1
	sharedKeyLite
	bearer
)

// authorization is an Authorization header of the form
// {scheme} {account}:{signature}. Of a bearer token only the scheme is kept.
type authorization struct {
	scheme    scheme
	account   string
	signature string
}

// parseAuthorization reads the header. Anything but a known scheme, one space,
// an account, a colon and a signature is 400 InvalidAuthenticationInfo. Whether
// the signature is Base64 is not looked at: a damaged one is a wrong one.
func parseAuthorization(value string) (authorization, error) {
	word, rest, found := strings.Cut(value, " ")
	var a authorization
	switch {
	case strings.EqualFold(word, "SharedKey"):
		a.scheme = sharedKey
	case strings.EqualFold(word, "SharedKeyLite"):
		a.scheme = sharedKeyLite
	case strings.EqualFold(word, "Bearer"):
		return authorization{scheme: bearer}, nil
	default:
		return authorization{}, storageerr.InvalidAuthentication
	}
	colon := strings.LastIndexByte(rest, ':')
	if !found || colon <= 0 || colon == len(rest)-1 || strings.ContainsAny(rest, " \t") {
		return authorization{}, storageerr.InvalidAuthentication
	}
	a.account, a.signature = rest[:colon], rest[colon+1:]
	return a, nil
}

// joined returns a header's value: several lines of one name are one value, with
// commas. The name must be in canonical form.
func joined(h http.Header, name string) string {
	switch values := h[name]; len(values) {
	case 0:
		return ""
	case 1:
		return trim(values[0])
	default:
		trimmed := make([]string, len(values))
		for i, v := range values {
			trimmed[i] = trim(v)
		}
		return strings.Join(trimmed, ",")
	}
}

// blanks are what HTTP takes for white space around a value. What else Unicode calls so is
// part of the value, and stays in it.
const blanks = " \t"

// trim drops what HTTP drops around a value.
func trim(value string) string { return strings.Trim(value, blanks) }

// collapse writes one space for every run of white space.
func collapse(value string) string {
	return strings.Join(strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(blanks, r) }), " ")
}

// collapseHeaders makes the x-ms- headers what they are in the string that spacesCollapsed
// signs.
func collapseHeaders(h http.Header) {
	for name, values := range h {
		for i, value := range values {
			if one := collapse(value); one != value && signs(name) {
				h[name] = slices.Clone(h[name]) // The array may be that of other names, too.
				h[name][i] = one
			}
		}
	}
}

// signs reports whether a header is one of those that are signed by name.
func signs(name string) bool { return len(name) >= 5 && strings.EqualFold(name[:5], "x-ms-") }
