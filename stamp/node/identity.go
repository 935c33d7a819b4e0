package node

import (
	"encoding/binary"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/durable"
)

// What a node knows of itself, beside log and state, is which replica of a range it
// holds: a file replicas/r<range>. It is one of six things (R4):
//
//	joining     a new stamp: no peer has data either; see hello.go
//	member      it acted under its id, so its log held a hard state: gone means lost
//	lost        it found that out, and may not forget it; the id is the last one that it
//	            may have taken part under
//	forgotten   the same, but the folder is a new one: which ids it took part under, it
//	            has still to be told; see membership.go
//	rebuilding  a new id, of which nobody has heard a word: its data is being removed
//	recovering  a new id, of which nobody has heard a word: the range is being re-formed
//	            from its data; see recover.go
//
// A node that lost the file too draws another nonce, which the peers do not know.

// phase is where a replica stands.
type phase byte

// The phases. Durable: never renumber.
const (
	joining    phase = 1
	member     phase = 2
	rebuilding phase = 3
	lost       phase = 4
	recovering phase = 5
	forgotten  phase = 6
)

// identity is the durable part of what a node knows of a replica of its own.
type identity struct {
	phase phase
	// replica is its id.
	replica geo.ReplicaID
	// nonce is drawn when the file is made: it tells this node from one that lost it.
	nonce uint64
	// peers are the nonces of the nodes that joined together with this one.
	peers map[geo.NodeID]uint64
}

const (
	identityVersion = 1
	identityHead    = 1 + 1 + 8 + 8 + 1
)

// ErrIdentity: both copies in an identity file are damaged. The node must not guess.
var ErrIdentity = errors.New("node: identity file of a replica is malformed")

func (d *identity) encode(order []geo.NodeID) []byte {
	b := []byte{identityVersion, byte(d.phase)}
	b = binary.LittleEndian.AppendUint64(b, uint64(d.replica))
	b = binary.LittleEndian.AppendUint64(b, d.nonce)
	b = append(b, byte(len(d.peers)))
	for _, p := range order {
		if nonce, ok := d.peers[p]; ok {
			b = binary.LittleEndian.AppendUint64(b, uint64(p))
			b = binary.LittleEndian.AppendUint64(b, nonce)
		}
	}
	return binary.LittleEndian.AppendUint32(b, crc.Of(b))
}

// file is what an identity's file holds.
func (d *identity) file(order []geo.NodeID) []byte { return durable.Twice(d.encode(order)) }

func parseIdentity(b []byte) (*identity, error) {
	if len(b) < identityHead || b[0] != identityVersion {
		return nil, ErrIdentity
	}
	n := identityHead + 16*int(b[identityHead-1])
	if len(b) < n+4 || crc.Of(b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return nil, ErrIdentity
	}
	d := &identity{
		phase: phase(b[1]), replica: geo.ReplicaID(binary.LittleEndian.Uint64(b[2:])), nonce: binary.LittleEndian.Uint64(b[10:]),
		peers: map[geo.NodeID]uint64{},
	}
	if d.phase < joining || d.phase > forgotten {
		return nil, ErrIdentity
	}
	for b = b[identityHead:n]; len(b) > 0; b = b[16:] {
		d.peers[geo.NodeID(binary.LittleEndian.Uint64(b))] = binary.LittleEndian.Uint64(b[8:])
	}
	return d, nil
}

func (n *Node) identityDir() string { return n.o.Engine.FS.PathJoin(n.o.Dir, "replicas") }

// loadIdentity reads the identity of a range, nil where there is none.
func (n *Node) loadIdentity(id geo.RangeID) (*identity, error) {
	fs := n.o.Engine.FS
	b, err := durable.Read(fs, fs.PathJoin(n.identityDir(), fmt.Sprintf("r%d", id)))
	if err != nil || b == nil {
		return nil, err
	}
	d, err := durable.ParseTwice(b, parseIdentity)
	if err != nil {
		return nil, fmt.Errorf("range %d: %w: move %s away and start again, the node is then rebuilt from its peers", id, err, n.o.Dir)
	}
	return d, nil
}

// become makes it durable where a replica stands, and under which id, before the node
// acts on it.
func (n *Node) become(id geo.RangeID, p phase, as geo.ReplicaID) error {
	d := *n.identities[id]
	d.phase, d.replica = p, as
	if err := n.saveIdentity(id, &d); err != nil {
		return err
	}
	n.identities[id] = &d
	return nil
}

// saveIdentity replaces the identity of a range, durably, in one step.
func (n *Node) saveIdentity(id geo.RangeID, d *identity) error {
	return durable.Replace(n.o.Engine.FS, n.identityDir(), fmt.Sprintf("r%d", id), d.file(n.o.Peers))
}
