package membership

import (
	"encoding/binary"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/feature"
)

// FolderKind is what a folder is for.
type FolderKind byte

// The kinds. Durable: never renumber. Unstated is a node's data folder or the folder of a node's process, in a file
// of an earlier version. Data is the data folder of a node, and Process the folder of the process of one node. Dev is
// the folder of antipode dev, and Bus the store of a bus. Clone is the folder of one clone of a node, and Witness the
// folder of a witness.
const (
	Unstated FolderKind = 0
	Data     FolderKind = 1
	Process  FolderKind = 2
	Dev      FolderKind = 3
	Bus      FolderKind = 4
	Clone    FolderKind = 5
	Witness  FolderKind = 6
)

// Owner is what a folder belongs to: docs/format/owner.md. Data of another node must not be served in its name: its
// replicas would vote and acknowledge under ids that are not theirs (R4).
type Owner struct {
	Kind     FolderKind
	Location geo.Location
	// Node is 0 where the folder belongs to no single node.
	Node geo.NodeID
	// Stamp is zero where it is not known.
	Stamp StampID
}

// String is the name for people.
func (o Owner) String() string {
	node := fmt.Sprintf("%s-%d", o.Location, o.Node) // As node.Name.
	switch o.Kind {
	case Dev:
		return "antipode dev"
	case Bus:
		if o.Node == 0 {
			return "the bus of " + string(o.Location)
		}
		return "the bus of " + node
	case Clone:
		return "a clone of " + node
	case Witness:
		return "the witness " + string(o.Location)
	}
	return node
}

// of is String for a sentence that says what a folder belongs to.
func (o Owner) of() string {
	if o.Kind <= Process {
		return "node " + o.String()
	}
	return o.String()
}

// ErrOwner: a folder belongs to another node or process, or its file owner is damaged.
var ErrOwner = errors.New("nothing of it was changed")

// errOwnerBytes: one copy in a file owner is malformed.
var errOwnerBytes = errors.New("file owner is malformed")

const (
	ownerFile    = "owner"
	ownerVersion = 1
	ownerHead    = 1 + 8 + 2
	// ownerMore is the second part, without its CRC. Programs before it end with the CRC of the first, and drop the
	// rest when they write the file.
	ownerMore = 1 + len(StampID{})
)

// encode leaves out the second part if it has nothing to say: the bytes are then those of earlier programs.
func (o Owner) encode() []byte {
	b := binary.LittleEndian.AppendUint64([]byte{ownerVersion}, uint64(o.Node))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(o.Location)))
	b = append(b, o.Location...)
	b = binary.LittleEndian.AppendUint32(b, crc.Of(b))
	if o.Kind == Unstated && o.Stamp.IsZero() {
		return b
	}
	b = append(append(b, byte(o.Kind)), o.Stamp[:]...)
	return binary.LittleEndian.AppendUint32(b, crc.Of(b))
}

func parseOwner(b []byte) (o Owner, err error) {
	if len(b) > 0 && b[0] > ownerVersion && crc.Fits(b) {
		return o, feature.Later("the file owner", uint64(b[0]), ownerVersion)
	}
	if len(b) < ownerHead || b[0] != ownerVersion {
		return o, errOwnerBytes
	}
	n := ownerHead + int(binary.LittleEndian.Uint16(b[9:]))
	if len(b) < n+4 || crc.Of(b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return o, errOwnerBytes
	}
	o = Owner{Location: geo.Location(b[ownerHead:n]), Node: geo.NodeID(binary.LittleEndian.Uint64(b[1:]))}
	more := b[n+4:]
	switch {
	case allZero(more[:min(len(more), ownerMore+4)]):
		return o, nil // A file of before there was a second part: zeros follow, or nothing.
	case len(more) < ownerMore+4 || !crc.Fits(b[:n+4+ownerMore+4]):
		return Owner{}, errOwnerBytes
	case FolderKind(more[0]) > Witness:
		return Owner{}, feature.Later("the kind in the file owner", uint64(more[0]), uint64(Witness))
	}
	o.Kind = FolderKind(more[0])
	copy(o.Stamp[:], more[1:])
	return o, nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
