package operation

import (
	"net/http"
	"slices"
	"strings"

	"antipode/api/protocol"
	"antipode/geo"
	"antipode/stamp/route"
)

// Unknown is the name of a request that is none of the protocol's operations. Every
// service refuses it, so it has no effect; still nothing repeats it, since a newer node may
// know the operation.
const Unknown = "Unknown"

// The rows that belong to no service.
//
//nolint:gochecknoglobals // Tables, never written.
var (
	unknown = Operation{Name: Unknown}
	// Preflight is every OPTIONS request, whatever its path.
	preflight = Operation{Name: "Preflight", Built: true, Verbs: OPTIONS, Effect: Reads, Secondary: Yes}
)

// Fault is why a request is none of the operations.
type Fault uint8

// The faults, in the order in which they are found.
const (
	NoFault Fault = iota
	// BadPath: the path names nothing.
	BadPath
	// BadRestype and BadComp: no operation on the resource has the value.
	BadRestype
	BadComp
	// BadVerb: no operation of that restype and comp has the verb.
	BadVerb
)

// Match is what a request asks for.
type Match struct {
	// Operation is a row of the table, never nil: that of Unknown where there is a fault.
	*Operation
	// Resource is what the path names, of a request with a fault too.
	Resource Resource
	// Container is the name of the container or table in the path; empty if it has none.
	Container string
	// Blob is the name of the blob in the path, decoded; empty if it has none.
	Blob  string
	Fault Fault
	// Allow has the verbs that would fit, of a BadVerb.
	Allow Verbs
	// near is a row that differs in the verb alone; nil if there is none.
	near *Operation
}

// Range returns the range whose leader serves the request for an account; zero where any node does. A
// verb that does not fit goes the way of those that do: a newer node may know it.
func (m Match) Range(t *route.Table, s geo.Service, a geo.Account) geo.RangeID {
	if m.near != nil {
		return m.near.leader(t, s, a)
	}
	return m.leader(t, s, a)
}

// Resolves returns the name of the container that the operation needs as the catalog has it;
// empty if it needs none. An operation that changes a container does not: it is evaluated
// in the catalog, on the newest state.
func (m Match) Resolves() string {
	if !m.Built || m.Leads == Anyone || m.Leads == Catalog && m.Effect != Reads {
		return ""
	}
	return m.Container
}

// Nothing is the match of a request whose path names no resource.
func Nothing() Match { return Match{Operation: &unknown, Fault: BadPath} }

// Of returns the rows of a service. They must not be written.
func Of(s geo.Service) []Operation {
	switch s {
	case geo.Blob:
		return blobRows
	case geo.Queue:
		return queueRows
	case geo.Table:
		return tableRows
	}
	return nil
}

// Named returns the row of a service's operation; that of Unknown if it has none.
func Named(s geo.Service, name string) *Operation {
	rows := Of(s)
	if i := slices.IndexFunc(rows, func(o Operation) bool { return o.Name == name }); i >= 0 {
		return &rows[i]
	}
	return &unknown
}

// IsPreflight returns the match of an OPTIONS request, which is one whatever its path.
func IsPreflight(method string) (m Match, is bool) {
	return Match{Operation: &preflight}, method == http.MethodOptions
}

// Find returns what a request with the verb asks of the resource that its path names.
func Find(r *protocol.Request, on Resource, verb string) Match {
	comp, restype := strings.ToLower(r.Query.Get("comp")), ""
	if r.Service == geo.Blob || on == Service { // Queues and tables have none, and ignore it.
		restype = strings.ToLower(r.Query.Get("restype"))
	}
	m, bit := Match{Operation: &unknown, Resource: on, Fault: BadRestype}, VerbOf(verb)
	rows := Of(r.Service)
	for i := range rows {
		o := &rows[i]
		switch {
		case o.On != on || o.Restype != restype:
		case o.Comp != comp:
			m.Fault = max(m.Fault, BadComp)
		case o.Verbs&bit == 0:
			m.Fault, m.near = BadVerb, o
			m.Allow |= o.Verbs
		case o.selects(r):
			return Match{Operation: o, Resource: on}
		}
	}
	return m
}

// selects reports whether the request has what the row asks for in headers and query.
func (o *Operation) selects(r *protocol.Request) bool {
	for _, f := range o.With {
		value := r.Query.Get(f.Query)
		if f.Header != "" {
			value = r.Header(f.Header)
		}
		if value == "" || f.Value != "" && !strings.EqualFold(value, f.Value) {
			return false
		}
	}
	return true
}
