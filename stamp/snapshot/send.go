package snapshot

import (
	"errors"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/replica"
)

const (
	// outgoingMax bounds the outgoing snapshots of a node: each holds an open view of the state
	// store.
	outgoingMax = 2
	// againAfter is how long a range waits after a snapshot failed.
	againAfter = time.Second
	// pinAfter is how long the log stays whole behind a snapshot that a peer installed, so
	// that the peer can continue from there.
	pinAfter = 2 * time.Second
)

// outgoing is a snapshot under way to a peer of a range, or the last one that was.
type outgoing struct {
	to     geo.ReplicaID
	active bool
	// pin is an index above which the log is kept, within bounds, while active and until
	// pinned: see Pin.
	pin    uint64
	pinned time.Duration
	// notBefore is when the next one may begin.
	notBefore time.Duration
}

// sent is the result of an outgoing snapshot.
type sent struct {
	id  geo.RangeID
	err error
}

// offer is replica.Snapshots.Offer. The state is read later; it is then as new as offered, or
// newer.
func (m *Manager) offer(id geo.RangeID) (*pb.Snapshot, error) {
	active := 0
	for _, o := range m.outgoing {
		if o.active {
			active++
		}
	}
	o := m.outgoing[id]
	if active >= outgoingMax || o != nil && (o.active || m.o.Clock.Mono() < o.notBefore) {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	a := m.o.Node.Range(id).Machine.AppliedState()
	if a.Index == 0 {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return replica.SnapshotOf(a.EntryID, m.o.Node.Range(id).Machine.Members()), nil
}

// Send carries out a MsgSnap apart from the scheduler.
func (m *Manager) Send(id geo.RangeID, msg *pb.Message) {
	if o := m.outgoing[id]; o != nil && o.active {
		m.o.Node.Range(id).Replica().ReportSnapshot(replica.To(msg), false) // One was offered to two peers.
		return
	}
	m.outgoing[id] = &outgoing{to: replica.To(msg), active: true, pin: msg.GetSnapshot().GetMetadata().GetIndex()}
	to := m.o.Node.NodeOf(id, replica.To(msg))
	m.start(func() {
		err := m.send(id, to, msg)
		m.mu.Lock()
		m.ended = append(m.ended, sent{id, err})
		m.mu.Unlock()
		m.o.Node.Wake()
	})
}

func (m *Manager) send(id geo.RangeID, to geo.NodeID, msg *pb.Message) (err error) {
	src, err := openSource(m.o.State, id, m.o.Node.Placed(id), msg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.close()) }()
	stream, err := m.o.Node.Open(to, src.header)
	if err != nil {
		return err
	}
	defer stream.Close()
	for last := false; !last; {
		f, err := src.next()
		if err != nil {
			return err
		}
		if err := stream.Send(m.ctx, f); err != nil {
			return err
		}
		last = f.Last
	}
	// The peer may take long to fetch the payload: do not keep the view of the state open.
	if err := src.close(); err != nil {
		return err
	}
	return stream.Finish(m.ctx)
}

// FinishSends reports to Raft the results of the snapshots that ended before this pass.
func (m *Manager) FinishSends(now time.Duration) {
	for _, s := range m.pass.ended {
		o := m.outgoing[s.id]
		o.active = false
		m.o.Node.Range(s.id).Replica().ReportSnapshot(o.to, s.err == nil)
		if s.err != nil {
			o.pin, o.notBefore = 0, now+againAfter
			m.o.Logger.Warn("range snapshot not taken; it is tried again", "range", s.id, "to", o.to, "error", s.err)
			continue
		}
		o.pinned = now + pinAfter
		m.o.Node.Sent(s.id, o.to)
	}
}
