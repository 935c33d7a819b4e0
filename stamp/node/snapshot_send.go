package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// Of the range snapshots that a node sends.
const (
	// outgoingMax bounds those under way: each holds an open view of the state store.
	outgoingMax = 2
	// againAfter is how long a range waits after one that failed.
	againAfter = time.Second
	// pinAfter is how long the log stays whole behind one that was installed, for the
	// peer to go on from there.
	pinAfter = 2 * time.Second
)

// outgoing is a snapshot under way to a peer of a range, or the last one there was.
type outgoing struct {
	to     geo.ReplicaID
	active bool
	// pin is an index behind which the log is kept until pinned, within bounds: see
	// trimTo.
	pin    uint64
	pinned time.Duration
	// notBefore is when the next one may begin.
	notBefore time.Duration
}

// sent is what became of an outgoing snapshot.
type sent struct {
	id  geo.RangeID
	err error
}

// source reads a range from one view of the state store, piece by piece.
type source struct {
	snap   *state.Snapshot
	spans  []state.Span
	it     kv.Iterator
	row    bool // it stands at a row not yet in a piece
	number uint32
	header SnapshotHeader
}

// openSource opens the newest state of a range as the answer to the MsgSnap m. The
// applied index in the same view says what it is: it may be newer than m.
func (n *Node) openSource(id geo.RangeID, m *pb.Message) (_ *source, err error) {
	s := &source{snap: n.state.NewSnapshot(), spans: ranges.Spans(id)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	applied, err := ranges.AppliedIn(s.snap, id)
	if err != nil {
		return nil, err
	}
	if want := m.GetSnapshot().GetMetadata().GetIndex(); applied.Index < want {
		return nil, fmt.Errorf("snapshot of range %d: state at %d, offered at %d", id, applied.Index, want)
	}
	members, err := ranges.MembersIn(s.snap, id, n.placement.Of(id))
	if err != nil {
		return nil, err
	}
	s.header = SnapshotHeader{Range: id, Message: &pb.Message{
		Type: m.Type, To: m.To, From: m.From, Term: m.Term, Snapshot: replica.SnapshotOf(applied.Index, applied.Term, members),
	}}
	return s, nil
}

// next returns the next piece; none follows one that is Last.
func (s *source) next() (Piece, error) {
	p := Piece{Number: s.number}
	s.number++
	for {
		if !s.row {
			if err := s.advance(); err != nil {
				return p, err
			}
		}
		if !s.row {
			p.Last = true
			break
		}
		size := len(s.it.Key()) + len(s.it.Value())
		if len(p.Rows) > 0 && len(p.Rows)+size > pieceBytesMax {
			break
		}
		p.Rows = appendRow(p.Rows, s.it.Key(), s.it.Value())
		s.row = false
	}
	p.CRC = p.sum()
	return p, nil
}

// advance moves to the next row, row tells whether there is one.
func (s *source) advance() (err error) {
	for {
		if s.it == nil {
			if len(s.spans) == 0 {
				return nil
			}
			if s.it, err = s.snap.Scan(s.spans[0].Lower, s.spans[0].Upper); err != nil {
				return err
			}
			s.spans = s.spans[1:]
		}
		if s.row = s.it.Next(); s.row {
			if plantedbugs.Planted(plantedbugs.SnapshotWithoutCursor) && bytes.HasPrefix(s.it.Key(), keys.Cursors(s.header.Range)) {
				continue
			}
			return nil
		}
		it := s.it
		s.it = nil
		if err := it.Close(); err != nil {
			return err
		}
	}
}

// close releases the view. It may be called again.
func (s *source) close() error {
	var err error
	if s.it != nil {
		err = s.it.Close()
	}
	if s.snap != nil {
		err = errors.Join(err, s.snap.Close())
	}
	s.it, s.snap = nil, nil
	return err
}

// offer implements replica.Snapshots.Offer: the state is taken later, and is then as new
// or newer.
func (n *Node) offer(id geo.RangeID) (*pb.Snapshot, error) {
	active := 0
	for _, o := range n.outgoing {
		if o.active {
			active++
		}
	}
	o := n.outgoing[id]
	if active >= outgoingMax || o != nil && (o.active || n.o.Clock.Mono() < o.notBefore) {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	a := n.byID[id].Machine.AppliedState()
	if a.Index == 0 {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return replica.SnapshotOf(a.Index, a.Term, n.byID[id].Machine.Members()), nil
}

// startSnapshot carries out a MsgSnap apart from the scheduler.
func (n *Node) startSnapshot(id geo.RangeID, m *pb.Message) {
	if o := n.outgoing[id]; o != nil && o.active {
		n.byID[id].Replica().ReportSnapshot(replica.To(m), false) // Two peers were offered the same one.
		return
	}
	n.outgoing[id] = &outgoing{to: replica.To(m), active: true, pin: m.GetSnapshot().GetMetadata().GetIndex()}
	to := n.nodeOf(id, replica.To(m))
	n.start(func() {
		err := n.sendSnapshot(n.ctx, id, to, m)
		n.mu.Lock()
		n.sent = append(n.sent, sent{id, err})
		n.mu.Unlock()
		n.Wake()
	})
}

func (n *Node) sendSnapshot(ctx context.Context, id geo.RangeID, to geo.NodeID, m *pb.Message) (err error) {
	src, err := n.openSource(id, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.close()) }()
	stream, err := n.o.Transport.(SnapshotTransport).Snapshot(n.o.ID, to, src.header)
	if err != nil {
		return err
	}
	defer stream.Close()
	for last := false; !last; {
		p, err := src.next()
		if err != nil {
			return err
		}
		if err := stream.Send(ctx, p); err != nil {
			return err
		}
		last = p.Last
	}
	// The peer may take long to fetch the payload: the view of the state ends before.
	if err := src.close(); err != nil {
		return err
	}
	return stream.Finish(ctx)
}

// settleSent tells Raft what became of the snapshots that ended.
func (n *Node) settleSent(ended []sent, now time.Duration) {
	for _, s := range ended {
		o := n.outgoing[s.id]
		o.active = false
		n.byID[s.id].Replica().ReportSnapshot(o.to, s.err == nil)
		if s.err != nil {
			o.pin, o.notBefore = 0, now+againAfter
			n.o.Logger.Warn("range snapshot not taken; it is tried again", "range", s.id, "to", o.to, "error", s.err)
			continue
		}
		o.pinned = now + pinAfter
		n.event(Event{Kind: SnapshotSent, Range: s.id, Node: n.nodeOf(s.id, o.to), Replica: o.to})
	}
}
