package operation

import (
	"net/http"
	"strings"
)

// Verbs is a set of HTTP methods.
type Verbs uint8

// The methods of the protocol, in the order in which an Allow header lists them.
const (
	GET Verbs = 1 << iota
	HEAD
	PUT
	POST
	MERGE
	PATCH
	DELETE
	OPTIONS
)

//nolint:gochecknoglobals // A table, never written: the names in the order of the bits.
var verbNames = [...]string{
	http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, "MERGE", http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// VerbOf returns the set of one method; empty for one that the protocol does not have.
func VerbOf(method string) Verbs {
	for i, name := range verbNames {
		if name == method {
			return 1 << i
		}
	}
	return 0
}

// String lists the methods as an Allow header does.
func (v Verbs) String() string {
	var names []string
	for i, name := range verbNames {
		if v&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
