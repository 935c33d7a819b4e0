package catalog

import (
	"encoding/hex"
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

// SKU is the name by which clients know a redundancy (protocol/service.md 9).
func (r Redundancy) SKU() string { return "Standard_" + strings.ReplaceAll(string(r), "-", "") }

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
// pair. Without a secondary nothing can be late.
func (a *Account) SetRedundancy(r Redundancy, other geo.Location) {
	a.Redundancy, a.Secondary = r, other
	if !r.Geo() {
		a.Secondary, a.WhenLate = "", LateAlert
	}
}

// Operation is what is under way for an account.
type Operation struct {
	Kind OperationKind `json:"kind"`
	// After is a commit time that all later changes of the account are above, in every range: that of the
	// record with which its streams of former epochs end; zero if it had none.
	After geo.Timestamp `json:"after,omitempty"`
	// Rate is how many bytes per second, payload included, a bootstrap may copy; 0 is no bound.
	Rate uint64 `json:"rate,omitempty"`
	// Copying is set once the other location has an empty copy and the account's changes are shipped.
	Copying bool `json:"copying,omitempty"`
	// Imaged is set in a bootstrap once the images of all ranges are complete: what the catalog had committed by then has to
	// be applied before the copy is whole. The images lack rows of containers that were deleted meanwhile.
	Imaged bool `json:"imaged,omitempty"`
	// Agreed is set in a change to LRS, and before Copying, where the other location had a copy: the number of the last
	// epoch that it knows of. Until it knows of this one it may become the primary, out of that copy (R20, R21).
	Agreed geo.EpochNumber `json:"agreed,omitempty"`
	// Partial is set before Copying where the other location has a part of a copy: that of a bootstrap that this one
	// replaces.
	Partial bool `json:"partial,omitempty"`
	// Again counts how often the operation began again within its epoch, since a range was recovered with loss: what it
	// had done there may be lost. It makes the operation another one for whatever was under way.
	Again uint64 `json:"again,omitempty"`
	// Whole is set where the copy was whole when the operation began, since a range was recovered with loss: it may have
	// what the primary has lost.
	Whole bool `json:"whole,omitempty"`
	// Move is how far a move is; the zero value for other kinds.
	Move Move `json:"move,omitzero"`
	// Unplanned is set in an operation of the kind OperationTaken where the former primary was not asked (R20).
	Unplanned bool `json:"unplanned,omitempty"`
	// Unclaimed is set there where an operator had it go on without the witness, until the witness has the claim of the
	// epoch: a former primary that cannot reach this location may be able to reach the witness (R21).
	Unclaimed bool `json:"unclaimed,omitempty"`
	// Diverged is set there once the former primary has answered that it has changes which this location does not have,
	// or lacks some: it serves nothing of the account before its copy is made again.
	Diverged bool `json:"diverged,omitempty"`
	// Rewinding is set there once the former primary has kept all changes that this location does not have, and their
	// rows are sent to it as they are here (R22). Joined is set once it takes the streams of the epoch. Rewound
	// counts the ranges of which all are numbered. In the next one the rows before RewoundRow of the lost change with
	// the key RewoundTo are numbered, or those before that key, if it is one of a container that is sent whole.
	Rewinding bool `json:"rewinding,omitempty"`
	Joined    bool `json:"joined,omitempty"`
	Rewound   int  `json:"rewound,omitempty"`

	// RewoundCatalog is set before Joined once all rows of containers and tables are numbered that the former primary lacks.
	RewoundCatalog bool `json:"rewound_catalog,omitempty"`

	RewoundTo  Key `json:"rewound_to,omitempty"`
	RewoundRow int `json:"rewound_row,omitempty"`
}

// Key is a key of a row in a record, in hexadecimal digits: a value that can be compared.
type Key string

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, []byte(k)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Key) UnmarshalText(b []byte) error {
	key, err := hex.DecodeString(string(b))
	*k = Key(key)
	return err
}

// OperationKind is what an operation does. It is in catalog rows: never rename a value.
type OperationKind string

// The kinds.
const (
	// OperationAnnounce announces to the other location that an account without a secondary is complete.
	OperationAnnounce OperationKind = "announce"
	// OperationLeave ends the streams of an account that has become LRS, and deletes its copy.
	OperationLeave OperationKind = "leave"
	// OperationBootstrap copies all that an account has to its secondary, whose copy begins empty (R17).
	OperationBootstrap OperationKind = "bootstrap"
	// OperationMove makes the secondary the primary, at the present primary: see Move.
	OperationMove OperationKind = "move"
	// OperationTaken is that of an account whose primary this location has become: the other one does not know yet, or
	// not all ranges do.
	OperationTaken OperationKind = "taken"
)

// Describe says for people what the operation is.
func (o *Operation) Describe() string {
	switch o.Kind {
	case OperationAnnounce:
		return "the creation of the account: it is not announced to the other location yet"
	case OperationLeave:
		return "the change to LRS: the other location has not deleted its copy yet"
	case OperationBootstrap:
		if o.Copying {
			return "the first copy of its data at the other location (bootstrap)"
		}
		return "the first copy of its data (bootstrap): the other location is not ready for it yet"
	case OperationMove:
		return o.Move.describe()
	case OperationTaken:
		if o.Diverged {
			return "the failover to this location: the other one has changes of before that are not here, and serves nothing; account rebuild makes its copy again"
		}
		if o.Rewinding {
			return "the failover to this location: the other one has kept its changes of before that are not here, and gets what it lacks"
		}
		return "the failover to this location: it is the primary, and the other one does not know yet"
	}
	return string(o.Kind)
}

// Bootstraps reports whether a bootstrap of the account is under way: its copy is not complete.
func (a *Account) Bootstraps() bool {
	return a.Operation != nil && a.Operation.Kind == OperationBootstrap
}

// Copying reports whether the account's copy is being made: it has a part of the data.
func (a *Account) Copying() bool { return a.Bootstraps() && a.Operation.Copying }

// MaySettle reports whether forks of the account's streams may be settled (R16). An operation makes the copy again
// instead. One whose copy was whole does not: it waits for the streams that have stopped, and deletes nothing that the
// other location alone may have.
func (a *Account) MaySettle() bool { return a.Operation == nil || a.Copying() && a.Operation.Whole }

// Promotable reports whether the copy of the account at its secondary may become the primary by an unplanned failover
// (R20): an operation of the primary that changes or replaces the copy is not under way.
func (a *Account) Promotable() bool {
	if a.Operation == nil {
		return true
	}
	switch a.Operation.Kind {
	case OperationMove:
		return true
	case OperationTaken:
		return !a.Operation.Rewinding
	case OperationBootstrap:
		return a.Operation.Whole
	case OperationAnnounce, OperationLeave:
	}
	return false
}

// Agreed is the number of the last epoch that the other location knows of, where it may not know of the present one and has
// a copy: see change.Gate.Agreed. Else 0.
func (a *Account) Agreed() geo.EpochNumber {
	if o := a.Operation; o != nil && (o.Kind == OperationLeave || o.Kind == OperationBootstrap && !o.Copying) {
		return o.Agreed
	}
	return 0
}

// Partial reports whether the other location has a part of the account's data, which nobody may read.
func (a *Account) Partial() bool {
	return a.Bootstraps() && (a.Operation.Copying || a.Operation.Partial) || a.Unsure()
}

// Unsure reports whether the secondary is the former primary of an unplanned failover, and may have what the present
// primary does not have, or less (R20, R22). Nobody may read it before the two have compared that.
func (a *Account) Unsure() bool {
	return a.Operation != nil && a.Operation.Kind == OperationTaken && (a.Operation.Unplanned || a.Operation.Diverged)
}

// Ships reports whether the changes of the account have numbers (R10): there is a copy, or it has begun.
func (a *Account) Ships() bool { return a.Redundancy.Geo() && a.Bootstraps() == a.Copying() }
