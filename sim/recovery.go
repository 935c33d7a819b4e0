package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/ranges"
)

// recovery is a range that an operator re-forms from one of its replicas, accepting the loss of what
// the others held (R4). The fault of a run plays all of it:
//
//	lagging     a node is cut off and leaves the in-sync set: writes go on without it
//	abandoned   the others lose their power; the node is reached again, but has no quorum
//	re-formed   from that node, as antipodectl range recover --accept-loss does
//	returning   the others start again with their old disks, must learn of the recovery before
//	            they do anything, and are rebuilt
//
// No other fault meets the nodes of the location meanwhile. The link and the stream have theirs.
type recovery struct {
	l        *location
	id       geo.RangeID
	survivor *member
	// reforming means that the entries which the survivor applies are those that it keeps.
	reforming bool
	kept      []ranges.Applied
	reformed  bool
	// old are the members whose replicas the recovery retires, until they are rebuilt.
	old map[*member]bool
}

const (
	// recoveryShare is how many runs have a recovery; laggingShare is how many of those have a survivor
	// that was cut off before.
	recoveryShare = 0.3
	laggingShare  = 0.85
	// laggingMax is how long the survivor is cut off at most, beside the in-sync timeout, losingMax the same in a run of
	// Options.Recovers.
	laggingMax = 700 * time.Millisecond
	losingMax  = 2500 * time.Millisecond
	// operatorPause lies between two attempts of the operator, operatorMax after the first of them the
	// operator gives up.
	operatorPause = 50 * time.Millisecond
	operatorMax   = 2 * time.Second
)

// recovered are the ranges that are recovered with a loss, in a run with queues theirs, too. The catalog is not among them: records of a
// container that it lost would wait in the other location for ever.
var recovered = [...]geo.RangeID{geo.FirstRange(geo.Table), geo.FirstRange(geo.Blob)} //nolint:gochecknoglobals // A table.

// planRecovery draws whether a range is recovered in this run, and when.
func (s *Sim) planRecovery() {
	if !s.losing && !s.chance(recoveryShare) || s.budget > 0 {
		return
	}
	s.recovers = true
	l := s.locations[s.rng.IntN(len(s.locations))]
	id := recovered[s.rng.IntN(len(recovered))]
	if s.queues != nil && (s.losing || s.queues.IntN(2) == 0) {
		id = geo.FirstRange(geo.Queue)
	}
	last := s.now + faultPhase*7/10
	var try func()
	try = func() {
		switch {
		case !s.faulty || s.now > last:
		case l.calm():
			s.beginRecovery(l, id)
		default:
			s.after(operatorPause, try)
		}
	}
	s.after(s.between(faultPhase/10, faultPhase*6/10), try)
}

// calm reports whether every node works and holds what was acknowledged.
func (l *location) calm() bool {
	for _, m := range l.members {
		if m.n == nil || m.killed != nil || m.stands() || m.seams > 0 || m.failSync != "" || m.failed || m.damaged || m.leaving() {
			return false
		}
	}
	return l.up() == len(l.members) && l.untrusted() == ""
}

func (s *Sim) beginRecovery(l *location, id geo.RangeID) {
	on := l.holders(id)
	r := &recovery{l: l, id: id, survivor: on[s.rng.IntN(len(on))], old: map[*member]bool{}}
	l.recovery = r
	lag := time.Duration(0)
	if s.losing || s.chance(laggingShare) {
		most := laggingMax
		if s.losing {
			most = losingMax
		}
		lag = s.between(s.inSyncTimeout, s.inSyncTimeout+most)
		l.net.isolated[r.survivor.id] = true
	}
	s.event("%s r%d will be recovered from node %d", l.name, id, r.survivor.id)
	s.after(lag, r.abandon)
}

// abandon takes the power from all other nodes of the range.
func (r *recovery) abandon() {
	s, l := r.l.s, r.l
	delete(l.net.isolated, r.survivor.id)
	for _, m := range l.holders(r.id) {
		if m == r.survivor || m.n == nil {
			continue
		}
		s.event("%s node %d abandoned", l.name, m.id)
		m.abandon()
	}
	r.operate(s.now)
}

// abandon ends a node that stays down until somebody opens it.
func (m *member) abandon() {
	m.die(m.crashed())
	m.life++ // The start that die has planned is void.
}

// operate lets the operator try until the range is re-formed.
func (r *recovery) operate(since time.Duration) {
	s := r.l.s
	err := r.reform()
	if err != nil && s.faulty && s.now < since+operatorMax {
		s.after(operatorPause, func() { r.operate(since) })
		return
	}
	if err != nil {
		s.event("%s r%d: no recovery: %v", r.l.name, r.id, err)
		r.l.recovery = nil
	}
	for _, m := range r.l.members {
		if m.n == nil {
			s.after(s.between(20*time.Millisecond, 600*time.Millisecond), func() {
				if m.n == nil {
					clear(r.l.net.isolated)
					clear(r.l.net.cut)
					m.open()
				}
			})
		}
	}
}

var errStill = errors.New("sim: the survivor does not answer")

// reform does what stamp.Stamp.Recover does, with the nodes that are up.
func (r *recovery) reform() error {
	ctx, m := context.Background(), r.survivor
	if m.n == nil || m.killed != nil || m.still() || m.passing != nil {
		return errStill
	}
	var surveys []membership.Survey
	for _, other := range r.l.holders(r.id) {
		if other.n == nil {
			continue
		}
		if other.passing != nil {
			return errStill
		}
		v, err := other.n.Survey(ctx, r.id)
		if err != nil {
			return err
		}
		surveys = append(surveys, v)
	}
	best, as, err := membership.Survivor(surveys, false)
	if err != nil {
		return err
	}
	m = r.l.member(best.Node)
	applied := m.n.Range(r.id).Machine.AppliedState().Index
	r.reforming = true
	err = m.n.Reform(ctx, r.id, best, as, r.floor())
	r.reforming = false
	if err != nil {
		return err
	}
	r.reformed = true
	r.l.s.counts.Recovered++
	for _, other := range r.l.holders(r.id) {
		if other != m {
			r.old[other] = true
			other.damaged = true
		}
	}
	r.l.history[r.id].lose(applied, geo.Incarnation(as))
	for _, a := range r.kept {
		m.applied[r.id] = a.Index - 1
		m.onApplied(r.id, a)
	}
	r.l.history[r.id].loseHidden()
	m.dirty = true
	r.l.s.event("%s r%d recovered from node %d, kept #%d", r.l.name, r.id, m.id, len(r.l.history[r.id].log))
	return nil
}

// floor returns the greatest time that the other location has committed of the range, as far as a node
// there is up.
func (r *recovery) floor() (t geo.Timestamp) {
	for _, m := range r.l.far.holders(r.id) {
		if m.n != nil {
			t = max(t, m.n.Range(r.id).Machine.Received(geo.SourceRange{Origin: r.l.name, Range: r.id}))
		}
	}
	return t
}

// takes keeps what the survivor applies while the range is re-formed, and reports whether the entry
// is none of the range's history: that, or one of a replica that the recovery retired.
func (r *recovery) takes(m *member, id geo.RangeID, a ranges.Applied) bool {
	if r != nil && r.id == id && r.reforming {
		r.kept = append(r.kept, a)
		return true
	}
	return r.retired(m, id)
}

// retired reports whether a replica belongs to the time before the recovery.
func (r *recovery) retired(m *member, id geo.RangeID) bool { return r != nil && r.id == id && r.old[m] }

// rebuilds records that a retired replica is rebuilt.
func (r *recovery) rebuilds(m *member, id geo.RangeID) {
	if r != nil && r.id == id {
		delete(r.old, m)
	}
}

// endRecovery ends the recovery of a location once all its replicas are back.
func (l *location) endRecovery() {
	if r := l.recovery; r != nil && r.reformed && len(r.old) == 0 && l.untrusted() == "" {
		l.s.event("%s r%d is whole again", l.name, r.id)
		l.recovery = nil
	}
}

// checkOldID: a replica that the recovery retired says nothing more (R4).
func (r *recovery) checkOldID(m *member, id geo.RangeID, said fmt.Stringer) {
	if r.retired(m, id) {
		m.l.s.fail(fmt.Errorf("%w: %s-%d r%d: %s, after the range was recovered without it", ErrForgot, m.l.name, m.id, id, said))
	}
}
