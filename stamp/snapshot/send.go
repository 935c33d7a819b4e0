package snapshot

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
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
	// againAfter is how long a range waits after a stream broke off, or a snapshot failed.
	againAfter = time.Second
	// stalledAfter is how long a snapshot may make no progress before it is given up, with the log that is kept for
	// it. A receiver may restart in that time.
	stalledAfter = 2 * time.Minute
)

// phase is how far a peer has been fed:
//
//	Send ──> sending ─installed, or unneeded─> following ──in sync──> over
//	          │    ^                               │
//	   broke off   │ againAfter                 stalled
//	          v    │                               v
//	         broken ────stalled, not leading───> over ──againAfter──> Send
type phase uint8

const (
	// over: nothing is under way.
	over phase = iota
	// sending: a stream is open, or the peer installs.
	sending
	// broken: the stream broke off; the view of the state stays open, so that another one goes on with it.
	broken
	// following: the peer has the snapshot and is not in sync yet: it is fed from the log.
	following
)

// outgoing is a snapshot under way to a peer of a range, or the last one that was. The fields are the scheduler's, but
// src, begun and keeps, which belong to the goroutine of the stream while there is one.
type outgoing struct {
	id     geo.RangeID
	to     geo.ReplicaID
	node   geo.NodeID
	msg    *pb.Message
	number uint64 // of the source
	phase  phase
	cancel context.CancelFunc
	// begun means that a fragment was sent, whole that the last was. keeps: see Stream.Resume. canceled is of the
	// scheduler.
	begun, keeps bool
	whole        atomic.Bool
	src          *source
	canceled     bool
	// unpinChunks ends the pin of the payload that the view names, which the peer fetches (R9).
	unpinChunks func()
	// moved grows with all that the peer does; progressed is when it did so last, as of seen.
	moved      atomic.Uint64
	seen       uint64
	progressed time.Duration
	// notBefore is when the next stream, or the next snapshot, may begin.
	notBefore time.Duration
	pinned
}

// release closes the view of the state. It may be called again.
func (o *outgoing) release() error {
	if o.src == nil {
		return nil
	}
	return o.src.close()
}

// sent is the result of a stream.
type sent struct {
	id  geo.RangeID
	err error
}

// active reports whether a snapshot is under way: it holds a view of the state, or the peer installs.
func (o *outgoing) active() bool { return o.phase == sending || o.phase == broken }

// offer is replica.Snapshots.Offer. The state is read later; it is then as new as offered, or
// newer.
func (m *Manager) offer(id geo.RangeID) (*pb.Snapshot, error) {
	active := 0
	for _, o := range m.outgoing {
		if o.active() {
			active++
		}
	}
	o := m.outgoing[id]
	if active >= outgoingMax || o != nil && (m.occupied(o) || m.o.Clock.Mono() < o.notBefore) {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	a := m.o.Node.Range(id).Machine.AppliedState()
	if a.Index == 0 {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return replica.SnapshotOf(a.EntryID, m.o.Node.Range(id).Machine.Members()), nil
}

// occupied reports whether no other snapshot of the range may begin.
func (m *Manager) occupied(o *outgoing) bool {
	return o.active() || o.phase == following && o.lacks > m.o.LogBytesMax/2 // Else it is fed like any peer: by the log.
}

// Send carries out a MsgSnap apart from the scheduler.
func (m *Manager) Send(id geo.RangeID, msg *pb.Message) {
	if o := m.outgoing[id]; o != nil {
		if m.occupied(o) {
			m.o.Node.Range(id).Replica().ReportSnapshot(replica.To(msg), false) // One was offered to two peers.
			return
		}
		m.unpin(o)
	}
	index := msg.GetSnapshot().GetMetadata().GetIndex()
	o := &outgoing{
		id: id, to: replica.To(msg), node: m.o.Node.NodeOf(id, replica.To(msg)), msg: msg,
		number:     max(m.o.Random()^uint64(m.o.Clock.Now().UnixNano()), 1),
		progressed: m.o.Clock.Mono(), pinned: pinned{pin: index}, unpinChunks: m.o.Chunks.Pin(),
	}
	m.outgoing[id] = o
	m.begin(o)
}

// begin opens a stream and sends what the peer lacks.
func (m *Manager) begin(o *outgoing) {
	ctx, cancel := context.WithCancel(m.ctx)
	o.phase, o.cancel = sending, cancel
	m.start(func() {
		defer cancel()
		err := m.send(ctx, o)
		m.mu.Lock()
		m.ended = append(m.ended, sent{o.id, err})
		m.mu.Unlock()
		m.o.Node.Wake()
	})
}

// errNotKept: the peer has nothing of what was sent to it.
var errNotKept = errors.New("snapshot: the receiver did not keep what it had")

func (m *Manager) send(ctx context.Context, o *outgoing) (err error) {
	o.keeps = false
	if o.src == nil {
		if o.src, err = openSource(m.o.State, o.id, m.o.Node.Placed(o.id), o.msg, o.number); err != nil {
			return err
		}
		o.src.bytesMax = m.o.FragmentBytes
		o.keeps = true // Nothing was sent that could be lost.
	}
	stream, err := m.o.Node.Open(o.node, o.src.header)
	if err != nil {
		o.keeps = o.begun // It may be back in a moment.
		return err
	}
	defer stream.Close()
	after, keeps := stream.Resume()
	if len(after) == 0 && o.begun {
		o.keeps = false
		return errNotKept
	}
	if err := o.src.seek(after); err != nil {
		return err
	}
	o.keeps = keeps
	for last := false; !last; {
		f, err := o.src.next()
		if err != nil {
			o.keeps = false
			return err
		}
		if err := stream.Send(ctx, f); err != nil {
			return err
		}
		o.begun = true
		o.moved.Add(1)
		last = f.Last
	}
	o.whole.Store(true)
	// The peer may take long to fetch the payload: do not keep the view of the state open.
	if err := o.src.close(); err != nil {
		return err
	}
	return stream.Finish(ctx, func() { o.moved.Add(1) })
}

// FinishSends takes the results of the streams that ended before this pass, reports them to Raft, and looks after the
// snapshots under way.
func (m *Manager) FinishSends(now time.Duration) {
	for _, s := range m.pass.ended {
		o := m.outgoing[s.id]
		switch {
		case s.err == nil:
			m.fed(o, now)
			m.o.Node.Sent(o.id, o.to)
		case errors.Is(s.err, ErrUnneeded) && m.leads(o):
			// The peer has as much or more, as after a restart amid the installation. Raft may learn that from nothing
			// else: where the log does not reach back to what it knows of the peer, it would offer snapshots for ever.
			if err := o.release(); err != nil {
				m.o.Logger.Warn("view of the state not closed behind a range snapshot", "range", o.id, "error", err)
			}
			m.fed(o, now)
		case o.keeps && !o.canceled && !errors.Is(s.err, ErrFragment) && m.leads(o):
			o.phase, o.notBefore = broken, now+againAfter
			m.o.Logger.Warn("range snapshot broke off; it goes on where it was", "range", o.id, "to", o.to, "error", s.err)
		default:
			m.giveUp(o, now, s.err)
		}
	}
	for _, id := range m.underWay() {
		m.look(m.outgoing[id], now)
	}
}

// fed has Raft go on behind the snapshot, from the log.
func (m *Manager) fed(o *outgoing, now time.Duration) {
	o.phase, o.progressed = following, now
	o.unpinChunks()
	o.follows(now)
	m.o.Node.Range(o.id).Replica().ReportSnapshot(o.to, true)
}

// underWay are the ranges that are not over, ascending.
func (m *Manager) underWay() (list []geo.RangeID) {
	for id, o := range m.outgoing {
		if o.phase != over {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// leads reports whether the range is led here as when the snapshot began, with its receiver.
func (m *Manager) leads(o *outgoing) bool {
	rep := m.o.Node.Range(o.id).Replica()
	_, term := rep.Leader()
	_, member := rep.Members().Of(o.to)
	return rep.IsLeader() && term == o.msg.GetTerm() && member
}

var (
	errStalled = errors.New("snapshot: no progress for too long")
	errNotLed  = errors.New("snapshot: the range is not led here any more, or without that replica")
)

// look takes the next step of a snapshot under way that is due.
func (m *Manager) look(o *outgoing, now time.Duration) {
	if moved := o.moved.Load(); moved != o.seen {
		o.seen, o.progressed = moved, now
	}
	m.measure(o, now)
	stalled := now-o.progressed >= stalledAfter
	switch {
	case o.phase == sending && stalled && !o.whole.Load(): // Of what the receiver does behind the last row not all shows.
		o.canceled = true
		o.cancel()
	case o.phase == broken && stalled:
		m.giveUp(o, now, errStalled)
	case o.phase == broken && !m.leads(o):
		m.giveUp(o, now, errNotLed)
	case o.phase == broken && now >= o.notBefore:
		m.begin(o)
	case o.phase == following && (o.pin == 0 || !m.leads(o) || m.inSync(o)):
		o.phase = over
		m.unpin(o)
	}
}

// giveUp ends a snapshot that is not gone on with.
func (m *Manager) giveUp(o *outgoing, now time.Duration, why error) {
	why = errors.Join(why, o.release())
	o.phase, o.notBefore = over, now+againAfter
	o.unpinChunks()
	m.unpin(o)
	m.o.Node.Range(o.id).Replica().ReportSnapshot(o.to, false)
	m.o.Logger.Warn("range snapshot not taken; it is tried again", "range", o.id, "to", o.to, "error", why)
}

// inSync reports whether the receiver counts as in sync.
func (m *Manager) inSync(o *outgoing) bool {
	return slices.Contains(m.o.Node.Range(o.id).Replica().InSyncNodes(), o.node)
}
