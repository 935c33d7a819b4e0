package receive

import (
	"maps"
	"slices"
	"time"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
)

// mirror is what this receiver knows of the cursors and closed heads of a source range here, so
// that nothing has to read those of every stream for each commit. It is loaded once, follows the
// outcomes of commits, and is loaded again when it proves wrong and every ReconcileEvery.
//
// It may be behind what is committed: another receiver may have committed more. What that leads
// to is harmless: a record is pulled or acknowledged again. It is ahead only where this location
// lost committed records; the next record then shows a gap behind a cursor that it follows.
type mirror struct {
	known   bool // loaded at least once
	stale   bool // it has to be loaded again
	loading bool
	loadAt  time.Duration // not before
	readAt  time.Duration // when it was loaded last
	applied map[geo.Stream]geo.Head
	// set are the streams whose cursor moved while a load was under way: they are right already.
	set map[geo.Stream]struct{}
	// behind are the streams below a closed head.
	behind map[geo.Stream]lag
	// moved are the streams whose cursor is to be sent to the source.
	moved map[geo.Stream]struct{}
	// closedT is the greatest time of the closed records taken of an incarnation of the source range.
	closedT     geo.Timestamp
	incarnation geo.Incarnation
}

// lag is the closed head that a stream is below, and since when its cursor has not moved, in
// running time.
type lag struct {
	head  geo.Seq
	since time.Duration
}

func newMirror() mirror {
	return mirror{
		stale: true, applied: map[geo.Stream]geo.Head{}, set: map[geo.Stream]struct{}{}, behind: map[geo.Stream]lag{},
		moved: map[geo.Stream]struct{}{},
	}
}

// loadPause is how soon a mirror is loaded again.
const loadPause = time.Second

// stopsEvery is how often a mirror is loaded while a stream is stopped here. An operator may let the
// stream go on, and nothing of it comes before it is pulled.
const stopsEvery = 5 * time.Second

// load reads the cursors where the mirror is not known or proved wrong.
func (rr *rangeReceiver) load(now time.Duration) {
	m := &rr.mirror
	m.stale = m.stale || len(rr.stopped) > 0 && now >= m.readAt+stopsEvery || len(rr.settling) > 0 && now >= m.readAt+settleEvery
	if !m.stale || m.loading || now < m.loadAt {
		return
	}
	m.loading, m.stale = true, false
	clear(m.set)
	asked := maps.Clone(rr.acks.lost)
	rr.r.o.Applier.Progress(rr.src, func(p cursor.Progress, err error) {
		rr.r.post(func(now time.Duration) {
			m.loading = false
			if err != nil {
				m.stale = true
				m.loadAt = now + rr.r.o.RetryAfter
				return
			}
			m.loadAt, m.readAt = now+loadPause, now
			first := !m.known
			m.take(p, rr.r.running.Time())
			for _, st := range slices.Collect(maps.Keys(rr.pulls.of)) {
				if p.HasEnded(st) {
					rr.pulls.end(st)
				}
			}
			rr.confirm(asked, p)
			rr.reportStops(p.Stops)
			rr.tryAgain(p.Stops, first, now)
			rr.reportRefused(p)
		})
	})
}

// reload lets it be loaded at once.
func (m *mirror) reload() { m.stale, m.loadAt = true, 0 }

// take replaces the mirror with what was loaded.
func (m *mirror) take(p cursor.Progress, ran time.Duration) {
	applied := make(map[geo.Stream]geo.Head, len(p.Streams))
	behind := map[geo.Stream]lag{}
	for st := range m.set {
		applied[st] = m.applied[st]
		if l, ok := m.behind[st]; ok {
			behind[st] = l
		}
	}
	for _, s := range p.Streams {
		if _, ok := m.set[s.Stream]; ok {
			continue
		}
		if applied[s.Stream] = s.Applied; s.Applied != m.applied[s.Stream] {
			m.moved[s.Stream] = struct{}{}
		}
		if s.Behind > 0 {
			l, ok := m.behind[s.Stream]
			if !ok {
				l.since = ran
			}
			behind[s.Stream] = lag{max(l.head, s.Behind), l.since}
		}
	}
	for st, l := range m.behind { // Heads that were committed after the answer was read.
		if _, ok := behind[st]; !ok && l.head > applied[st].Seq && !p.HasEnded(st) {
			behind[st] = l
		}
	}
	m.known, m.applied, m.behind = true, applied, behind
	clear(m.set)
}

// advance takes a record that is applied here.
func (m *mirror) advance(rec *Record, ran time.Duration) {
	st := rec.Record.Stream()
	m.applied[st] = geo.Head{Seq: rec.Record.Seq, Hash: change.HashOf(rec.Bytes)}
	m.set[st], m.moved[st] = struct{}{}, struct{}{}
	if l, ok := m.behind[st]; ok {
		if rec.Record.Seq >= l.head {
			delete(m.behind, st)
		} else {
			m.behind[st] = lag{l.head, ran}
		}
	}
}

// again takes a duplicate: the source, or its present leader, does not know of the cursor.
func (m *mirror) again(st geo.Stream, seq geo.Seq) {
	if m.applied[st].Seq < seq {
		m.stale = true
	}
	m.moved[st] = struct{}{}
}

// voided reports whether the closed record of a batch was not taken though it continues the last one that
// was: the range here was recovered with loss, and has voided that (R16). Its cursors have to be read again.
func (m *mirror) voided(b *Batch) bool {
	if c := b.Closed; b.ClosedAhead > 0 || c.Incarnation != m.incarnation || m.closedT == 0 || c.T0 > m.closedT {
		return false
	}
	m.closedT = 0
	return true
}

// close takes a closed record that is committed here.
func (m *mirror) close(c *change.Closed, ran time.Duration) {
	if c.Incarnation > m.incarnation {
		m.incarnation, m.closedT = c.Incarnation, 0
	}
	if c.Incarnation == m.incarnation {
		m.closedT = max(m.closedT, c.T)
	}
	for _, h := range c.Heads {
		st := c.Stream(h)
		if h.Seq <= m.applied[st].Seq {
			continue
		}
		l, ok := m.behind[st]
		if !ok {
			l.since = ran
		}
		m.behind[st] = lag{max(l.head, h.Seq), l.since}
	}
}

// checkBehind starts the pull of streams that were below a closed head for longer than the grace
// without moving: the end of the stream was lost, or the source holds it back. The pull finds out which.
func (rr *rangeReceiver) checkBehind(now, ran time.Duration) {
	if now < rr.checkAt || !rr.mirror.known {
		return
	}
	rr.checkAt = now + checkEvery
	var due []geo.Stream
	for st, l := range rr.mirror.behind {
		if rr.mayPull(st) && ran-l.since > rr.r.o.BehindGrace && rr.pulls.of[st] == nil {
			due = append(due, st)
		}
	}
	slices.SortFunc(due, geo.Stream.Compare)
	for _, st := range due {
		rr.leaveToPull(st, rr.mirror.behind[st].head).behind = true
	}
}
