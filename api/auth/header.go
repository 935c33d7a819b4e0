package auth

import (
	"net/http"
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
		return strings.TrimSpace(values[0])
	default:
		trimmed := make([]string, len(values))
		for i, v := range values {
			trimmed[i] = strings.TrimSpace(v)
		}
		return strings.Join(trimmed, ",")
	}
}
