package geo

import (
	"fmt"
	"strings"
)

// Location is a named place that runs a stamp, such as "northcentralus".
// Locations come in pairs.
type Location string

// Account is the top of the namespace: 3 to 24 lower-case letters and digits.
type Account string

// SecondarySuffix marks the read-only endpoint of an account in host and path.
const SecondarySuffix = "-secondary"

// Valid reports whether a is a legal account name (protocol/blob.md 1.1).
func (a Account) Valid() bool {
	if len(a) < 3 || len(a) > 24 {
		return false
	}
	for i := range len(a) {
		c := a[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// SplitSecondary cuts the -secondary suffix from an account label as it came
// over the wire and reports whether it was there.
func SplitSecondary(label string) (Account, bool) {
	name, found := strings.CutSuffix(label, SecondarySuffix)
	return Account(name), found
}

// CloneSuffix marks the endpoint of a clone of an account in host and path: see server/clone. No account is named so, since
// names have no hyphen.
const CloneSuffix = "-drill"

// SplitClone cuts the -drill suffix from an account label as it came over the wire and reports whether it was there.
func SplitClone(label string) (Account, bool) {
	name, found := strings.CutSuffix(label, CloneSuffix)
	return Account(name), found
}

// NodeID names one node of a stamp within its location, from 1.
type NodeID uint64

// ReplicaID names one replica of a range within that range: its Raft id. It does not identify the
// node that holds the replica. The first replicas of a range have the numbers of their nodes;
// later ones have numbers that other nodes of the stamp may have.
type ReplicaID uint64

// Service is one of the protocol's services, or the catalog that names their
// tables, containers and queues. The numbers are part of the durable formats.
type Service uint8

// The services. Each has one range at the start (DESIGN section 5).
const (
	Catalog Service = 1
	Blob    Service = 2
	Queue   Service = 3
	Table   Service = 4
)

// Services lists the three services a client can address.
var Services = [...]Service{Blob, Queue, Table} //nolint:gochecknoglobals // A table, never written.

// String returns the lower-case word used in hosts, metrics, logs and subjects.
func (s Service) String() string {
	switch s {
	case Catalog:
		return "catalog"
	case Blob:
		return "blob"
	case Queue:
		return "queue"
	case Table:
		return "table"
	}
	return fmt.Sprintf("service-%d", uint8(s))
}

// ParseService is the inverse of Service.String.
func ParseService(s string) (Service, error) {
	for _, v := range []Service{Catalog, Blob, Queue, Table} {
		if v.String() == s {
			return v, nil
		}
	}
	return 0, fmt.Errorf("unknown service %q: want blob, queue, table or catalog", s)
}

// RangeID names a range within its stamp. The first four equal their service's
// number; a split mints new ones.
type RangeID uint32

// FirstRange is the range that holds a whole service before any split.
func FirstRange(s Service) RangeID { return RangeID(s) }
