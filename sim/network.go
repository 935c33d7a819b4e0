package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/node"
	"antipode/stamp/replica"
)

// network carries messages and range snapshots between the nodes of one location, each
// batch after a latency drawn for it; it loses, doubles, delays and so reorders them. It
// implements node.SnapshotTransport.
type network struct {
	l *location
	// isolated nodes neither send nor receive; cut ways carry nothing.
	isolated map[geo.NodeID]bool
	cut      map[way]bool
	ways     map[way]*traffic
	// transfers are the range snapshots under way.
	transfers []*transfer
	// clocks draws what happens to messages about clocks.
	clocks *rand.Rand
}

// way is one direction between two nodes.
type way struct{ from, to geo.NodeID }

// traffic is what passed one way.
type traffic struct {
	// sent numbers the batches; newest is the greatest number that arrived.
	sent, newest uint64
	// last is when the newest batch arrives that was not delayed: the honest
	// network keeps the order.
	last time.Duration
}

func newNetwork(l *location) *network {
	return &network{l: l, isolated: map[geo.NodeID]bool{}, cut: map[way]bool{}, ways: map[way]*traffic{}, clocks: rand.New(rand.NewPCG(uint64(len(l.name)), 6))}
}

// carries reports whether messages pass one way.
func (t *network) carries(from, to geo.NodeID) bool {
	return !t.isolated[from] && !t.isolated[to] && !t.cut[way{from, to}]
}

// reach reports whether a node can ask another and receive the answer.
func (t *network) reach(from, to geo.NodeID) bool { return t.carries(from, to) && t.carries(to, from) }

// Attach implements node.Transport. Who is attached follows from the members.
func (t *network) Attach(geo.NodeID, node.Member) {}

// latencyMax bounds the latency of the honest network.
const latencyMax = time.Millisecond

// Send implements node.Transport.
func (t *network) Send(from, to geo.NodeID, batch []node.Envelope) {
	s := t.l.s
	sender := t.l.member(from)
	if aboutClocks(batch) {
		t.sendAboutClocks(from, to, batch)
		return
	}
	sender.seam()
	if sender.maybeKill() {
		return
	}
	if !t.carries(from, to) {
		s.counts.NetLost++
		return
	}
	var now []node.Envelope
	for _, e := range batch {
		e.From = from
		sender.checkSent(e)
		switch {
		case s.chance(s.rates.netLose):
			s.counts.NetLost++
			s.event("%s net lost %d>%d r%d %s", t.l.name, from, to, e.Range, typeWord(e))
			continue
		case s.chance(s.rates.netDelay):
			s.counts.NetDelayed++
			t.carry(from, to, []node.Envelope{e}, s.between(time.Millisecond, s.rates.netDelayMax))
			continue
		case s.chance(s.rates.netDouble):
			s.counts.NetDoubled++
			again := node.Envelope{Range: e.Range, Report: e.Report, Message: proto.CloneOf(e.Message), From: e.From}
			t.carry(from, to, []node.Envelope{again}, s.between(0, s.rates.netDelayMax))
		}
		now = append(now, e)
	}
	if len(now) > 0 {
		w := t.way(from, to)
		w.last = max(w.last, s.now+s.between(latencyMax/10, latencyMax))
		t.carry(from, to, now, w.last-s.now)
	}
}

// typeWord is the type of a message in the event log. A report has the number that it has on the
// wire, so that hashes of recorded runs stay.
func typeWord(e node.Envelope) string {
	switch e.Report.(type) {
	case membership.DurableIndex:
		return "1000"
	case membership.Hello:
		return "1001"
	case membership.HelloAnswer:
		return "1002"
	case membership.LossReport:
		return "1003"
	case membership.RecoveryReport:
		return "1004"
	case membership.OtherPlacement:
		return "1005"
	case membership.LeaderHint:
		return "1006"
	case membership.LastID:
		return "1007"
	case membership.RoomReport:
		return "1010"
	case membership.LogMark:
		return "1011"
	}
	return e.Message.GetType().String()
}

// checkSent holds a message against what its sender must have on its disk by then.
func (m *member) checkSent(e node.Envelope) {
	if e.Report != nil {
		return
	}
	m.l.recovery.checkOldID(m, e.Range, e.Message.GetType())
	if id, forgot := m.forgot[e.Range]; forgot && replica.From(e.Message) == id {
		m.l.s.fail(fmt.Errorf("%w: %s-%d r%d: %s of replica %d", ErrForgot, m.l.name, m.id, e.Range, e.Message.GetType(), id))
	}
	for _, entry := range e.Message.GetEntries() {
		m.checkPayload("what it sent", entry.GetData())
	}
	if e.Message.GetType() == pb.MsgVoteResp && !e.Message.GetReject() && !m.logCorrupted {
		m.l.s.counts.VoteChecked++
		if err := m.votedFor(e.Range, e.Message.GetTerm(), e.Message.GetTo()); err != nil {
			m.l.s.fail(fmt.Errorf("%w: %s-%d r%d: %w", ErrVote, m.l.name, m.id, e.Range, err))
		}
	}
}

func (t *network) way(from, to geo.NodeID) *traffic {
	w := t.ways[way{from, to}]
	if w == nil {
		w = &traffic{}
		t.ways[way{from, to}] = w
	}
	return w
}

// carry delivers a batch after d, to the life that is up then.
func (t *network) carry(from, to geo.NodeID, batch []node.Envelope, d time.Duration) {
	s := t.l.s
	w := t.way(from, to)
	w.sent++
	number := w.sent
	s.after(d, func() {
		m := t.l.member(to)
		if m.n == nil || !t.carries(from, to) {
			s.counts.NetLost++
			return
		}
		if number < w.newest {
			s.counts.NetReordered++
		}
		w.newest = max(w.newest, number)
		m.n.Receive(batch)
		m.dirty = true
	})
}
