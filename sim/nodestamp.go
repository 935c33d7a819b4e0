package sim

import (
	"context"
	"errors"
	"time"

	"antipode/directory"
	"antipode/geo"
	"antipode/primary"
	"antipode/replication/receive"
	"antipode/secondary"
	"antipode/stamp/cursor"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// nodeStamp is a location as the process of one of its nodes sees it: a secondary.Stamp. Other nodes are
// called over the network.
type nodeStamp struct{ m *member }

// Leader implements secondary.Stamp.
func (n nodeStamp) Leader(id geo.RangeID) *ranges.Range {
	if n.m.leads(id) {
		return n.m.n.Range(id)
	}
	return nil
}

// LeaderNode implements secondary.Stamp.
func (n nodeStamp) LeaderNode(id geo.RangeID) (geo.NodeID, bool) {
	if n.m.n == nil {
		return 0, false
	}
	lead := geo.NodeID(0)
	switch r := n.m.n.Range(id); {
	case r == nil:
		lead = n.m.n.LeaderHint(id)
	case r.Leading():
		lead = n.m.id
	default:
		lead = r.Leader()
	}
	return lead, lead != 0
}

// Replica implements secondary.Stamp.
func (n nodeStamp) Replica(id geo.RangeID) *ranges.Range {
	if n.m.n == nil {
		return nil
	}
	if r := n.m.n.Range(id); r != nil && (r.Leading() || r.Leader() != 0) {
		return r
	}
	return nil
}

// Route implements secondary.Stamp.
func (nodeStamp) Route() *route.Table { return firstRanges }

// Go implements secondary.Stamp.
func (n nodeStamp) Go(f func(ctx context.Context)) {
	n.m.begin(func() { f(context.Background()) })
}

// Submit implements ranges.Submitter, of a task: see stamp.Stamp.Submit.
func (n nodeStamp) Submit(_ context.Context, id geo.RangeID, cmd ranges.Command) error {
	lead, known := n.LeaderNode(id)
	portable, ok := cmd.(ranges.Portable)
	if !known || !ok || lead == n.m.id {
		return kv.ErrBusy // One that leads here since is called with the next try.
	}
	body := portable.Encode()
	result, err := n.m.call(lead, func(at *member, answer func([]byte, error)) {
		there, err := at.decode(portable.Kind(), body)
		r := nodeStamp{at}.Leader(id)
		if err != nil || r == nil {
			answer(nil, ranges.ErrNotLeader)
			return
		}
		r.Submit(there, func(err error) {
			if err != nil {
				answer(nil, err)
				return
			}
			answer(there.EncodeResult(), nil)
		})
		at.dirty = true
	})
	if errors.Is(err, ranges.ErrNotLeader) {
		return kv.ErrBusy // Nothing happened, and the caller tries again.
	}
	if err != nil {
		return err
	}
	return portable.DecodeResult(result)
}

// decode takes a command of another node.
func (m *member) decode(kind string, body []byte) (ranges.Portable, error) {
	replica := func() *ranges.Range { return nodeStamp{m}.Replica(geo.FirstRange(geo.Catalog)) }
	for _, known := range []ranges.Commands{secondary.Commands(replica), directory.Commands(), primary.Commands()} {
		if decode := known[kind]; decode != nil {
			return decode(body)
		}
	}
	return nil, ranges.ErrNotLeader
}

// Progress implements secondary.Stamp, of a task: of the replica here once that has applied what its leader
// has, or of the leader.
func (n nodeStamp) Progress(_ context.Context, id geo.RangeID, src geo.SourceRange, a geo.Account) (p cursor.Progress, err error) {
	if n.m.n == nil {
		return p, kv.ErrBusy
	}
	if r := n.m.n.Range(id); r != nil {
		err = n.m.l.s.task.await(callMax, func(done func(error)) {
			if r.Leading() {
				r.Confirm(done)
			} else {
				r.CatchUp(done)
			}
			n.m.dirty = true
		})
		if err != nil {
			return p, err
		}
		return r.Machine.Progress(src, a), nil
	}
	lead, known := n.LeaderNode(id)
	if !known {
		return p, kv.ErrBusy
	}
	_, err = n.m.call(lead, func(at *member, answer func([]byte, error)) {
		r := nodeStamp{at}.Leader(id)
		if r == nil {
			answer(nil, ranges.ErrNotLeader)
			return
		}
		r.Confirm(func(err error) {
			if err == nil {
				p = r.Machine.Progress(src, a)
			}
			answer(nil, err)
		})
		at.dirty = true
	})
	return p, err
}

// PutChunk implements secondary.Stamp.
func (n nodeStamp) PutChunk(_ context.Context, ref extent.Ref, data []byte) error {
	if n.m.n == nil || n.m.l.s.task.gone {
		return errGone
	}
	return n.m.l.putChunk(ref, data, func(to *member) bool { return to == n.m || n.m.l.net.reach(n.m.id, to.id) })
}

// HasChunk implements secondary.Stamp.
func (n nodeStamp) HasChunk(ref extent.Ref) bool {
	lead, known := n.LeaderNode(geo.FirstRange(geo.Blob))
	if !known {
		return false
	}
	at := n.m.l.member(lead)
	if at.n == nil || at.killed != nil || at.paused || at != n.m && !n.m.l.net.reach(n.m.id, lead) {
		return false
	}
	return at.n.Extents().Durable(ref.ID)
}

// callMax is how long a call between nodes waits for its answer.
const callMax = 400 * time.Millisecond

// call calls another node of the location, of a task, and waits for the answer: kv.ErrUnknown if none comes,
// ranges.ErrNotLeader if the node is down, so that nothing happened.
func (m *member) call(to geo.NodeID, f func(at *member, answer func([]byte, error))) (result []byte, err error) {
	s, at := m.l.s, m.l.member(to)
	lost := func(from, to geo.NodeID) bool { return !m.l.net.carries(from, to) || s.chance(s.rates.netLose) }
	err = s.task.await(callMax, func(done func(error)) {
		s.after(s.between(latencyMax/10, latencyMax), func() {
			switch {
			case lost(m.id, to):
				return
			case at.n == nil || at.killed != nil:
				done(ranges.ErrNotLeader)
				return
			}
			at.whenAwake(func() {
				f(at, func(body []byte, err error) {
					s.after(s.between(latencyMax/10, latencyMax), func() {
						if !lost(to, m.id) {
							result = body
							done(err)
						}
					})
				})
			})
		})
	})
	return result, err
}

// watchedApplier counts what became of received records.
type watchedApplier struct {
	receive.Applier
	l *location
}

// Apply implements receive.Applier.
func (a watchedApplier) Apply(b *receive.Batch, done func(error)) {
	a.Applier.Apply(b, func(err error) {
		if err == nil {
			a.l.outcomes(b)
		}
		done(err)
	})
	a.l.wake()
}

func (l *location) outcomes(b *receive.Batch) {
	for _, r := range b.Records {
		switch r.Outcome {
		case receive.Duplicate:
			l.s.counts.Dedup++
		case receive.Wait:
			l.s.counts.Wait++
		case receive.Refused:
			if !l.history[r.Record.Range].ended(r.Record.Stream()) {
				l.s.fail(ErrAlarm)
			}
		}
	}
}
