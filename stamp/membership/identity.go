package membership

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/durable"
	"antipode/stamp/feature"
	"antipode/stamp/replica"
)

// Phase is how far a node's replica of a range can be trusted: see the package text.
type Phase byte

// The phases. Durable: never renumber.
const (
	Joining    Phase = 1
	Member     Phase = 2
	Rebuilding Phase = 3
	Lost       Phase = 4
	Recovering Phase = 5
	Forgotten  Phase = 6
)

// String is the word for people.
func (p Phase) String() string {
	switch p {
	case Joining:
		return "joining"
	case Member:
		return "member"
	case Rebuilding:
		return "rebuilding"
	case Lost:
		return "lost"
	case Recovering:
		return "recovering"
	case Forgotten:
		return "forgotten"
	}
	return fmt.Sprintf("phase-%d", byte(p))
}

// Nonce names an identity file. It is drawn when the file is made: a node that lost the file
// draws another one, which its peers do not know.
type Nonce uint64

// Identity is what a node's folder holds of a replica: docs/format/identity.md.
type Identity struct {
	Phase Phase
	// Replica is its id.
	Replica geo.ReplicaID
	Nonce   Nonce
	// Floor is that of Reform while the replica is Recovering, otherwise zero.
	Floor geo.Timestamp
	// Peers are the nonces of the nodes that joined together with this one.
	Peers map[geo.NodeID]Nonce
}

// Recovery is the one that the replica belongs to.
func (d Identity) Recovery() replica.Recovery { return replica.RecoveryOf(d.Replica) }

// NewIdentity is the identity of a node that has no file. tookPart: the log or the state of the
// range holds something, in a folder from before there were identities or one that lost only
// this file; members is the configuration in that state.
func NewIdentity(node geo.NodeID, nonce Nonce, tookPart bool, members replica.Members) *Identity {
	d := &Identity{Phase: Joining, Replica: replica.FirstID(node), Nonce: nonce, Peers: map[geo.NodeID]Nonce{}}
	if tookPart {
		d.Phase = Member
		if own, ok := members.On(node); ok {
			d.Replica = own.ID
		}
	}
	return d
}

const (
	identityVersion = 2
	identityHead    = 1 + 1 + 8 + 8 + 8 + 1
)

// ErrIdentity: the file that says who the node is, is malformed. A file of a later version, whose second copy ends
// with its checksum as in this one, is feature.ErrLater.
var ErrIdentity = errors.New("identity file of a replica is malformed")

// encode lists the peers in the given order of the nodes.
func (d Identity) encode(order []geo.NodeID) []byte {
	b := []byte{identityVersion, byte(d.Phase)}
	b = binary.LittleEndian.AppendUint64(b, uint64(d.Replica))
	b = binary.LittleEndian.AppendUint64(b, uint64(d.Nonce))
	b = binary.LittleEndian.AppendUint64(b, uint64(d.Floor))
	b = append(b, byte(len(d.Peers)))
	for _, p := range order {
		if nonce, ok := d.Peers[p]; ok {
			b = binary.LittleEndian.AppendUint64(b, uint64(p))
			b = binary.LittleEndian.AppendUint64(b, uint64(nonce))
		}
	}
	return binary.LittleEndian.AppendUint32(b, crc.Of(b))
}

func parseIdentity(b []byte) (*Identity, error) {
	if len(b) > 0 && b[0] > identityVersion && crc.Fits(b) {
		return nil, feature.Later("the identity file of a replica", uint64(b[0]), identityVersion)
	}
	if len(b) < identityHead || b[0] != identityVersion {
		return nil, ErrIdentity
	}
	n := identityHead + 16*int(b[identityHead-1])
	if len(b) < n+4 || crc.Of(b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return nil, ErrIdentity
	}
	d := &Identity{
		Phase: Phase(b[1]), Replica: geo.ReplicaID(binary.LittleEndian.Uint64(b[2:])), Nonce: Nonce(binary.LittleEndian.Uint64(b[10:])),
		Floor: geo.Timestamp(binary.LittleEndian.Uint64(b[18:])), Peers: map[geo.NodeID]Nonce{},
	}
	if d.Phase > Forgotten {
		return nil, feature.Later("the phase of a replica", uint64(d.Phase), uint64(Forgotten))
	}
	if d.Phase < Joining {
		return nil, ErrIdentity
	}
	for b = b[identityHead:n]; len(b) > 0; b = b[16:] {
		d.Peers[geo.NodeID(binary.LittleEndian.Uint64(b))] = Nonce(binary.LittleEndian.Uint64(b[8:]))
	}
	return d, nil
}

// identityFile is its name in the folder replicas of a node.
func identityFile(id geo.RangeID) string { return fmt.Sprintf("r%d", id) }

// Load reads the identity of a range's replica in the folder of a node; nil if there is none.
// ErrIdentity: both copies in its file are damaged.
func Load(fs vfs.FS, dir string, id geo.RangeID) (*Identity, error) {
	b, err := durable.Read(fs, fs.PathJoin(dir, "replicas", identityFile(id)))
	if err != nil || b == nil {
		return nil, err
	}
	return durable.ParseTwice(b, parseIdentity)
}

// Recoveries grows whenever a range of the node is re-formed with loss (R4). An identity that cannot be read counts as
// none.
func Recoveries(fs vfs.FS, dir string, ids []geo.RangeID) (sum uint64) {
	for _, id := range ids {
		if d, err := Load(fs, dir, id); err == nil && d != nil {
			sum += uint64(d.Recovery())
		}
	}
	return sum
}

// Save replaces the identity of a range's replica in the folder of a node, durably, in one
// step. order lists the nodes of the stamp.
func Save(fs vfs.FS, dir string, id geo.RangeID, d *Identity, order []geo.NodeID) error {
	return durable.Replace(fs, fs.PathJoin(dir, "replicas"), identityFile(id), durable.Twice(d.encode(order)))
}
