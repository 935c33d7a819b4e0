package node

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/stamp/durable"
)

// ReplicaIdentity is what a node's folder says of a replica that it holds:
// docs/format/identity.md.
type ReplicaIdentity struct {
	// Phase is joining, member, rebuilding, lost, forgotten or recovering.
	Phase string
	// Replica is its Raft id.
	Replica geo.ReplicaID
}

// ReadIdentity reads the identity of a range's replica in the folder of a node that does
// not run; ok is false where there is none. ErrIdentity: both of its copies are damaged.
func ReadIdentity(fs vfs.FS, dir string, id geo.RangeID) (i ReplicaIdentity, ok bool, err error) {
	b, err := durable.Read(fs, fs.PathJoin(dir, "replicas", fmt.Sprintf("r%d", id)))
	if err != nil || b == nil {
		return i, false, err
	}
	d, err := durable.ParseTwice(b, parseIdentity)
	if err != nil {
		return i, true, err
	}
	return ReplicaIdentity{d.phase.String(), d.replica}, true, nil
}

// String is the word for people.
func (p phase) String() string {
	switch p {
	case joining:
		return "joining"
	case member:
		return "member"
	case rebuilding:
		return "rebuilding"
	case lost:
		return "lost"
	case recovering:
		return "recovering"
	case forgotten:
		return "forgotten"
	}
	return fmt.Sprintf("phase-%d", byte(p))
}
