package catalog

import (
	"fmt"
	"strings"

	"antipode/geo"
)

// Redundancy of an account. It is in catalog rows: never rename a value.
type Redundancy string

// The redundancies.
const (
	// LRS has its data at the primary alone.
	LRS Redundancy = "LRS"
	// GRS is copied to a secondary that clients cannot read.
	GRS Redundancy = "GRS"
	// RAGRS is copied to a secondary that clients can read.
	RAGRS Redundancy = "RA-GRS"
)

// Geo reports whether the data is copied to a secondary.
func (r Redundancy) Geo() bool { return r == GRS || r == RAGRS }

// Readable reports whether clients can read the secondary.
func (r Redundancy) Readable() bool { return r == RAGRS }

// ParseRedundancy parses a redundancy, or the name of its SKU (protocol/service.md 9). Case does not
// count.
func ParseRedundancy(s string) (Redundancy, error) {
	switch strings.ToLower(s) {
	case "lrs", "standard_lrs":
		return LRS, nil
	case "grs", "standard_grs":
		return GRS, nil
	case "ra-grs", "ragrs", "standard_ragrs":
		return RAGRS, nil
	}
	return "", fmt.Errorf("%q is no redundancy: LRS, GRS or RA-GRS", s)
}

// SetRedundancy sets the redundancy, and the secondary with it: other is the other location of the
// pair.
func (a *Account) SetRedundancy(r Redundancy, other geo.Location) {
	a.Redundancy, a.Secondary = r, ""
	if r.Geo() {
		a.Secondary = other
	}
}

// Operation is what is under way for an account.
type Operation struct {
	Kind OperationKind `json:"kind"`
}

// OperationKind is what an operation does. It is in catalog rows: never rename a value.
type OperationKind string

// The kinds.
const (
	// OperationAnnounce announces to the other location that an account without a secondary is complete.
	OperationAnnounce OperationKind = "announce"
	// OperationLeave ends the streams of an account that has become LRS, and deletes its copy.
	OperationLeave OperationKind = "leave"
)

// Describe says for people what the operation is.
func (o *Operation) Describe() string {
	switch o.Kind {
	case OperationAnnounce:
		return "the creation of the account: it is not announced to the other location yet"
	case OperationLeave:
		return "the change to LRS: the other location has not deleted its copy yet"
	}
	return string(o.Kind)
}
