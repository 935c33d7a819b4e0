package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/stamp/feature"
)

// Member is one replica of a range.
type Member struct {
	// ID is its Raft id. An id is given once: a replica that was lost never sends under its id
	// again (R4).
	ID   geo.ReplicaID
	Node geo.NodeID
	// Learner: it is fed, but does not vote and is not in the in-sync set.
	Learner bool
}

// Members is the configuration of a range, part of its replicated state. The zero
// value holds no replica.
type Members struct {
	// Next is the id that the next replica gets. All ids below were given.
	Next geo.ReplicaID
	// List is in the order of the ids.
	List []Member
}

// FirstMembers is the configuration that a range begins with: a voter on each node, whose id
// is the node's number.
func FirstMembers(nodes []geo.NodeID) Members {
	m := Members{Next: 1}
	for _, n := range slices.Sorted(slices.Values(nodes)) {
		m.List = append(m.List, Member{ID: FirstID(n), Node: n})
		m.Next = FirstID(n) + 1
	}
	return m
}

// FirstID is the id of the first replica that a node has of a range, when the stamp is made.
// Replicas that are built again later get ids above all that were given.
func FirstID(n geo.NodeID) geo.ReplicaID { return geo.ReplicaID(n) }

// From is the replica that a Raft message names as its sender.
func From(m *pb.Message) geo.ReplicaID { return geo.ReplicaID(m.GetFrom()) }

// To is the replica that a Raft message is for.
func To(m *pb.Message) geo.ReplicaID { return geo.ReplicaID(m.GetTo()) }

// Of returns the replica with an id.
func (m Members) Of(id geo.ReplicaID) (Member, bool) {
	for _, r := range m.List {
		if r.ID == id {
			return r, true
		}
	}
	return Member{}, false
}

// On returns the replica on a node.
func (m Members) On(n geo.NodeID) (Member, bool) {
	for _, r := range m.List {
		if r.Node == n {
			return r, true
		}
	}
	return Member{}, false
}

// conf is Raft's form of the configuration.
func (m Members) conf() *pb.ConfState {
	c := &pb.ConfState{}
	for _, r := range m.List {
		if r.Learner {
			c.Learners = append(c.Learners, uint64(r.ID))
		} else {
			c.Voters = append(c.Voters, uint64(r.ID))
		}
	}
	return c
}

// ErrMembers: bytes that are no configuration, or a change that does not fit it.
var ErrMembers = errors.New("replica: malformed configuration")

const membersVersion = 1

// AppendMembers appends the encoded configuration: docs/format/keys.md.
func AppendMembers(dst []byte, m Members) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, membersVersion), uint64(m.Next))
	dst = append(dst, byte(len(m.List)))
	for _, r := range m.List {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(r.ID))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Node))
		flag := byte(0)
		if r.Learner {
			flag = 1
		}
		dst = append(dst, flag)
	}
	return dst
}

// ParseMembers decodes a configuration that fills b.
func ParseMembers(b []byte) (Members, error) {
	const head, each = 10, 17
	if len(b) > 0 && b[0] > membersVersion {
		return Members{}, feature.Later("the configuration of a range", uint64(b[0]), membersVersion)
	}
	if len(b) < head || b[0] != membersVersion || len(b) != head+each*int(b[9]) {
		return Members{}, ErrMembers
	}
	m := Members{Next: geo.ReplicaID(binary.LittleEndian.Uint64(b[1:]))}
	last := geo.ReplicaID(0)
	for b = b[head:]; len(b) > 0; b = b[each:] {
		r := Member{geo.ReplicaID(binary.LittleEndian.Uint64(b)), geo.NodeID(binary.LittleEndian.Uint64(b[8:])), b[16] == 1}
		if r.ID <= last || r.ID >= m.Next || b[16] > 1 {
			return Members{}, ErrMembers
		}
		last = r.ID
		m.List = append(m.List, r)
	}
	return m, nil
}

// parseChange decodes an entry that changes the configuration.
func parseChange(e *pb.Entry) (*pb.ConfChangeV2, error) {
	cc := &pb.ConfChangeV2{}
	if err := proto.Unmarshal(e.Data, cc); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMembers, err)
	}
	if len(cc.Changes) != 1 {
		return nil, fmt.Errorf("a change of the configuration in %d steps: %w", len(cc.Changes), ErrLater)
	}
	switch typ := cc.Changes[0].GetType(); typ {
	case pb.ConfChangeAddNode, pb.ConfChangeRemoveNode, pb.ConfChangeAddLearnerNode:
		return cc, nil
	default:
		return nil, fmt.Errorf("a change of the configuration of type %d: %w", typ, ErrLater)
	}
}

// Understood returns ErrLater for an entry of a type, or with a change of the configuration, that this version does not
// write. What other entries hold is for the range to say.
func Understood(e *pb.Entry) error {
	switch typ := e.GetType(); typ {
	case pb.EntryNormal:
		return nil
	case pb.EntryConfChangeV2:
		if _, err := parseChange(e); errors.Is(err, ErrLater) {
			return err
		}
		return nil // What is damaged is left to Apply.
	default:
		return fmt.Errorf("an entry of type %d: %w", typ, ErrLater)
	}
}

// Apply returns the configuration after a committed entry of type EntryConfChangeV2. A leader
// proposes a change on the configuration that it has applied, and Raft takes one at a time, so
// a change that does not fit is an error, not a no-op.
func (m Members) Apply(e *pb.Entry) (Members, error) {
	cc, err := parseChange(e)
	if err != nil {
		return m, err
	}
	id := geo.ReplicaID(cc.Changes[0].GetNodeId())
	out := Members{Next: m.Next, List: slices.Clone(m.List)}
	at := slices.IndexFunc(out.List, func(r Member) bool { return r.ID == id })
	switch typ := cc.Changes[0].GetType(); {
	case typ == pb.ConfChangeRemoveNode && at >= 0:
		out.List = slices.Delete(out.List, at, at+1)
	case typ == pb.ConfChangeAddNode && at >= 0 && out.List[at].Learner:
		out.List[at].Learner = false
	case typ == pb.ConfChangeAddLearnerNode && id == m.Next && len(cc.Context) == 8:
		out.List = append(out.List, Member{ID: id, Node: geo.NodeID(binary.LittleEndian.Uint64(cc.Context)), Learner: true})
		out.Next = id + 1
	default:
		return m, fmt.Errorf("%w: %s of replica %d", ErrMembers, typ, id)
	}
	return out, nil
}

// change proposes one change of the configuration.
func (r *Replica) change(typ pb.ConfChangeType, id geo.ReplicaID, context []byte) error {
	raftID := uint64(id)
	return r.rn.ProposeConfChange(&pb.ConfChangeV2{
		Changes: []*pb.ConfChangeSingle{{Type: &typ, NodeId: &raftID}}, Context: context,
	})
}

// Remove proposes that a replica is no member any more.
func (r *Replica) Remove(id geo.ReplicaID) error { return r.change(pb.ConfChangeRemoveNode, id, nil) }

// AddLearner proposes a new replica on a node, under the next id.
func (r *Replica) AddLearner(n geo.NodeID) error {
	return r.change(pb.ConfChangeAddLearnerNode, r.members.Next, binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

// Promote proposes that a learner becomes a voter.
func (r *Replica) Promote(id geo.ReplicaID) error { return r.change(pb.ConfChangeAddNode, id, nil) }

// Match returns the index up to which a replica has persisted the log, as far as this leader
// knows, and the last index of this leader's log.
func (r *Replica) Match(id geo.ReplicaID) (match, last uint64) {
	status := r.rn.Status()
	return status.Progress[uint64(id)].Match, status.Progress[uint64(r.o.ID)].Match
}

// applyConf passes the changes of the configuration among the applied entries to Raft.
func (r *Replica) applyConf(entries []*pb.Entry) error {
	changed := false
	for _, e := range entries {
		if e.GetType() != pb.EntryConfChangeV2 {
			continue
		}
		cc, err := parseChange(e)
		if err != nil {
			return err
		}
		r.rn.ApplyConfChange(cc)
		changed = true
	}
	if changed {
		r.reconfigure()
	}
	return nil
}

// reconfigure takes over the configuration of the applied state.
func (r *Replica) reconfigure() {
	r.members = r.o.Machine.Members()
	r.inSync.configure(r.members)
}

// Members is the configuration as applied here.
func (r *Replica) Members() Members { return r.members }

// ID is the replica's Raft id.
func (r *Replica) ID() geo.ReplicaID { return r.o.ID }
