package membership

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/stamp/durable"
)

// StampID names one stamp for ever: another one that is made later for the same location, with the same nodes, has
// another. All zeros where it is not known.
type StampID [16]byte

// catalog is the range that is on every node of a stamp.
const catalog = geo.RangeID(geo.Catalog)

// IsZero reports whether the id is not known.
func (s StampID) IsZero() bool { return s == StampID{} }

// String is the whole id, 32 hexadecimal digits.
func (s StampID) String() string { return hex.EncodeToString(s[:]) }

// Short is the beginning of it, for people: 8 digits.
func (s StampID) Short() string { return s.String()[:8] }

// ParseStampID is the inverse of String. Anything else is the zero id.
func ParseStampID(text string) (s StampID) {
	if b, err := hex.DecodeString(text); err == nil && len(b) == len(s) {
		copy(s[:], b)
	}
	return s
}

// StampIn returns the stamp that the data folder of a node is of, zero if that is not known or cannot be read. The node
// may run, or be none.
func StampIn(fs vfs.FS, dir string, self geo.NodeID) StampID {
	if o, _, err := readOwner(fs, dir); err == nil && !o.Stamp.IsZero() {
		return o.Stamp
	}
	return stampOf(fs, dir, self)
}

// stampOf computes the id of the stamp that a node's data folder is of, zero if that does not show. The replicas of
// the catalog joined together with nonces that are the same on all nodes of the stamp. The nonces are durable before
// one of the replicas votes, and were drawn for this stamp alone. They stay through losses and recoveries of the
// range. A node that joined alone, since its folder was lost, does not have them.
func stampOf(fs vfs.FS, dir string, self geo.NodeID) StampID {
	// What cannot be read shows nothing, and stops the start later on.
	d, err := Load(fs, dir, catalog)
	if err != nil || d == nil || d.Phase == Joining || d.Phase == Forgotten {
		return StampID{}
	}
	file, err := durable.Read(fs, fs.PathJoin(dir, "placement"))
	if err != nil || file == nil {
		return StampID{}
	}
	p, err := ReadPlacement(file)
	if err != nil || !slices.Contains(p.Nodes, self) || len(d.Peers) != len(p.Nodes)-1 {
		return StampID{}
	}
	nonces := maps.Clone(d.Peers)
	nonces[self] = d.Nonce
	b := []byte("antipode stamp")
	for _, id := range p.Nodes {
		nonce, joined := nonces[id]
		if !joined {
			return StampID{}
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(id))
		b = binary.LittleEndian.AppendUint64(b, uint64(nonce))
	}
	sum := sha256.Sum256(b)
	return StampID(sum[:len(StampID{})])
}

// takesPart reports whether a replica in a node's data folder may be more than new: what cannot be read may be.
func takesPart(fs vfs.FS, dir string) bool {
	names, err := list(fs, fs.PathJoin(dir, "replicas"))
	if err != nil {
		return true
	}
	for _, name := range names {
		id, is := identityOf(name)
		if !is {
			continue
		}
		if d, err := Load(fs, dir, id); err != nil || d != nil && d.Phase != Joining && d.Phase != Forgotten {
			return true
		}
	}
	return false
}
