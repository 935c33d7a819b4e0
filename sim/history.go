package sim

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// logEntry is one index of a range's log, as the first replica applied it.
type logEntry struct {
	data      []byte
	effective bool
}

// sent is one numbered record of a stream.
type sent struct {
	bytes []byte
	time  geo.Timestamp
	hash  geo.Hash
	// committed is when a replica first applied it, by the true clock.
	committed geo.Timestamp
	// incarnation is that of the range when it was numbered.
	incarnation geo.Incarnation
}

// history is what a range of one location committed, in the order of its log. It checks every
// replica against this log, and the log against the promises.
type history struct {
	s    *Sim
	l    *location
	id   geo.RangeID
	svc  geo.Service
	log  []logEntry // index 1 first
	m    *model     // at the end of the log
	sent map[geo.Stream][]sent
	// promised is the greatest T of a closed record that the other location took.
	promised geo.Timestamp
	// newest is the last write of each partition that took effect.
	newest map[string]int
	// commits are all of them.
	commits map[string][]commit
	// touched are the partitions that the group under way changed.
	touched []string
	// twins are the blobs of this location's accounts, by partition.
	twins map[string]*blobTwin
	// versions are the hashes of all states that a partition had here.
	versions map[string]map[uint64]bool
	// lanes are those of queues, by the prefix of their keys.
	lanes map[string]geo.Lane
	loss
}

func newHistory(l *location, svc geo.Service) *history {
	return &history{
		s: l.s, l: l, id: geo.FirstRange(svc), svc: svc, m: newModel(), sent: map[geo.Stream][]sent{},
		newest: map[string]int{}, commits: map[string][]commit{}, versions: map[string]map[uint64]bool{}, twins: map[string]*blobTwin{}, lanes: map[string]geo.Lane{},
		loss: loss{ghosts: map[geo.Hash]bool{}, revived: map[geo.Hash]bool{}, received: map[geo.Stream]geo.Seq{}},
	}
}

// onApplied compares one applied entry of a replica with the history.
func (m *member) onApplied(id geo.RangeID, a ranges.Applied) {
	h := m.l.history[id]
	if h.s.rewritten || m.l.recovery.takes(m, id, a) {
		m.applied[id] = a.Index
		return
	}
	if a.Index != m.applied[id]+1 || a.Index > uint64(len(h.log))+1 {
		h.fail(ErrDiverged, "node %d applied index %d after %d, the log ends at %d", m.id, a.Index, m.applied[id], len(h.log))
		return
	}
	m.applied[id] = a.Index
	m.checkPayload("what it applied", a.Entry)
	if a.Index <= uint64(len(h.log)) {
		if e := h.log[a.Index-1]; !bytes.Equal(e.data, a.Entry) || e.effective != a.Effective {
			h.fail(ErrDiverged, "node %d at index %d", m.id, a.Index)
		}
	} else {
		h.log = append(h.log, logEntry{a.Entry, a.Effective})
		h.s.event("%s r%d #%d %016x %t", m.l.name, id, a.Index, xxhash.Sum64(a.Entry), a.Effective)
		if a.Effective {
			h.take(a)
		}
	}
	if m.l.s.chance(m.l.s.rates.flush) {
		m.flush()
		// Only after the last of its batch: the disk has the whole batch, and those that follow would not be seen.
		if m.l.s.chance(killAfterFlush) && m.n != nil && a.Index == m.n.Range(id).Machine.AppliedState().Index {
			m.kill()
		}
	}
}

func (h *history) fail(promise error, format string, args ...any) {
	h.s.fail(fmt.Errorf("%w: %s r%d: %s", promise, h.l.name, h.id, fmt.Sprintf(format, args...)))
}

// take checks a group that took effect, part by part, on the state before it. The
// states that a replica can show are those after a whole group.
func (h *history) take(a ranges.Applied) {
	h.touched = h.touched[:0]
	g, err := change.ParseGroup(a.Entry)
	if err == nil {
		err = g.Parts(func(kind change.PartKind, body []byte) error {
			if err := h.check(kind, body, a.Index); err != nil {
				return err
			}
			return h.m.part(kind, body)
		})
	}
	if err != nil {
		h.s.fail(err)
		return
	}
	for _, part := range h.touched {
		p, _, err := keys.ParsePartition([]byte(part))
		if err != nil {
			h.s.fail(err)
			return
		}
		if !keptAside(p.Account) && h.l.whole(h.s.account(p.Account)) {
			h.s.checkWhole(string(h.l.name), p, h.m.parts[part])
		}
	}
	h.tookAccounts()
}

func (h *history) check(kind change.PartKind, body []byte, index uint64) error {
	switch kind {
	case change.PartChange, change.PartReceived, change.PartReceivedCursor:
		r, err := change.ParseRecord(body)
		if err != nil {
			return err
		}
		switch kind {
		case change.PartChange:
			h.checkChange(&r, body, index)
		case change.PartReceived:
			h.checkOrder(&r, body)
		case change.PartReceivedCursor:
			h.checkOrder(&r, body)
			h.checkSkipped(&r)
			return nil // It changes no row.
		}
		h.remember(&r)
		h.touched = append(h.touched, string(r.Partition))
	case change.PartClosed:
		t, err := change.ParseClosedTime(body)
		if err != nil {
			return err
		}
		h.checkTime(t)
	case change.PartGate, change.PartGateAgreed:
		a, g, err := change.ParseGatePart(body)
		if err != nil {
			return err
		}
		h.checkGate(a, g)
	case change.PartGeneration:
		h.tookClosing(body, index)
	case change.PartReceivedClosed:
		c, err := change.ParseClosed(body)
		if err != nil {
			return err
		}
		h.l.far.history[c.Range].checkClosed(&c)
	case change.PartTrim:
		st, to, err := change.ParseTrim(body)
		if err != nil {
			return err
		}
		h.checkTrim(st, to.Seq)
	case change.PartWipe:
		lower, upper, err := change.ParseWipe(body)
		if err != nil {
			return err
		}
		h.checkWipe(lower, upper)
	case change.PartCompared:
		h.checkGates()
	case change.PartStop:
		st, why, err := change.ParseStopPart(body)
		if err != nil {
			return err
		}
		h.checkStop(st, &why)
	}
	return nil
}

// checkTime: commit and closed times strictly increase above everything in the
// range's log, and carry the location's lowest bit (R6).
func (h *history) checkTime(t geo.Timestamp) {
	if t <= h.m.last || t&1 != h.l.parity {
		h.fail(ErrCommitTime, "%d after %d", t, h.m.last)
	}
	if h.s.future(t) {
		h.fail(ErrFuture, "%s", t)
	}
}

func (h *history) checkChange(r *change.Record, body []byte, index uint64) {
	h.checkTime(r.CommitTime)
	h.checkCompared(r)
	if r.CommitTime <= h.promised {
		h.fail(ErrClosed, "commit at %d, closed up to %d", r.CommitTime, h.promised)
	}
	if a := h.s.account(r.Account); a != nil && r.CommitTime <= a.lastSync(h.svc) && r.CommitTime > h.broken {
		h.fail(ErrMissing, "commit of %s at %d, Last Sync Time was %d", r.Account, r.CommitTime, a.lastSync(h.svc))
	}
	if r.Seq != 0 {
		st := r.Stream()
		head := h.m.heads[st]
		if r.Seq != head.Seq+1 || r.Prev != head.Hash {
			h.fail(ErrNumbers, "%s #%d after #%d", st, r.Seq, head.Seq)
		}
		next := sent{body, r.CommitTime, change.HashOf(body), geo.TimestampOf(h.s.clock.Now()), r.Incarnation}
		h.sent[st] = append(h.sent[st], next)
		h.revived[next.hash] = r.Incarnation < h.incarnation && !h.ghosts[next.hash]
	}
	if !h.copies(r) {
		h.checkQueue(r)
		h.took(r, index)
	}
}

// checkOrder: a received record follows the cursor of its stream and is the one
// that the source committed under its number (R11).
func (h *history) checkOrder(r *change.Record, body []byte) {
	st := r.Stream()
	h.checkFrozen(r)
	if at := h.m.cursors[st]; r.Seq != at.Seq+1 {
		h.fail(ErrReceivedOrder, "%s #%d after #%d", st, r.Seq, at.Seq)
		return
	}
	if at := h.m.cursors[st]; at.Seq > 0 && at.Hash != r.Prev {
		h.fail(ErrReceivedOther, "%s #%d follows another record than #%d here", st, r.Seq, at.Seq)
	}
	from := h.l.far.history[st.Range]
	source := from.sent[st]
	if r.Seq <= geo.Seq(len(source)) && bytes.Equal(source[r.Seq-1].bytes, body) {
		return
	}
	if !from.ghosts[change.HashOf(body)] {
		h.fail(ErrReceivedOther, "%s #%d", st, r.Seq)
	}
}

// checkClosed: a closed record that the other location took names, for every stream
// that changed in (T0, T], no number below its last one as of T; nothing follows (R12). One that is not
// full may leave out what the other location has applied: a leader does not send what is acknowledged.
func (h *history) checkClosed(c *change.Closed) {
	if c.Incarnation != h.incarnation {
		h.broken = max(h.broken, c.T)
		return
	}
	h.promised, h.announced = max(h.promised, c.T), true
	heads := map[geo.Stream]geo.Seq{}
	for _, head := range c.Heads {
		heads[c.Stream(head)] = head.Seq
	}
	there := h.l.far.history[c.Range].m.cursors
	for _, st := range slices.SortedFunc(maps.Keys(h.sent), geo.Stream.Compare) {
		before, upTo := h.upTo(st, c.T0), h.upTo(st, c.T)
		if !c.Full && there[st].Seq >= upTo || h.ended(st) || h.l.far.history[c.Range].ended(st) {
			continue
		}
		if named, ok := heads[st]; upTo > 0 && (before < upTo || c.Full) && (!ok || named < upTo) {
			h.fail(ErrClosed, "%s is at #%d as of %d, the record (full %t) says #%d", st, upTo, c.T, c.Full, named)
		}
	}
}

// upTo returns the last number of a stream that was committed at or before t.
func (h *history) upTo(st geo.Stream, t geo.Timestamp) geo.Seq {
	n, _ := slices.BinarySearchFunc(h.sent[st], t, func(r sent, t geo.Timestamp) int {
		if r.time <= t {
			return -1
		}
		return 1
	})
	return geo.Seq(n)
}

// remember keeps the state of r's partition after r.
func (h *history) remember(r *change.Record) {
	rows := maps.Clone(h.m.parts[string(r.Partition)])
	next := &model{parts: map[string]map[string]string{string(r.Partition): rows}}
	if rows == nil {
		next.parts = map[string]map[string]string{}
	}
	next.set(r)
	seen := h.versions[string(r.Partition)]
	if seen == nil {
		seen = map[uint64]bool{hashRows(nil): true}
		h.versions[string(r.Partition)] = seen
	}
	seen[hashRows(next.parts[string(r.Partition)])] = true
}

// hashRows is a hash of the rows of a partition.
func hashRows(rows map[string]string) uint64 {
	d := xxhash.New()
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		_, _ = fmt.Fprintf(d, "%q=%q;", row, rows[row]) // A hash never fails.
	}
	return d.Sum64()
}

// checkMember: the state of a replica is that of its applied index, cursors and
// outbox included (DESIGN 2.6, invariant 6).
func (h *history) checkMember(m *member) {
	if m.n.Range(h.id).Replica().Lost() != nil || h.s.rewritten || m.l.recovery.retired(m, h.id) {
		return // A lost replica answers nobody.
	}
	machine := m.n.Range(h.id).Machine
	index := machine.AppliedState().Index
	if index > uint64(len(h.log)) {
		h.fail(ErrReplicaState, "node %d is at index %d, the log ends at %d", m.id, index, len(h.log))
		return
	}
	want := h.m
	if index < uint64(len(h.log)) {
		want = newModel()
		for _, e := range h.log[:index] {
			if !e.effective {
				continue
			}
			if err := want.group(e.data); err != nil {
				h.s.fail(err)
				return
			}
		}
	}
	for _, differs := range []string{
		diff("cursor", want.cursors, machine.Progress(geo.SourceRange{Origin: h.l.far.name, Range: h.id}, cursor.EveryAccount).Cursors()),
		diff("head", want.heads, first(machine.Heads())),
		diff("stop", want.stops, machine.Stops()),
		diff("gate", want.gates, machine.Gates()),
		diff("image", want.images, h.images(m)),
		diff("row", want.rows(), h.rows(m)),
		h.outbox(m, want),
	} {
		if differs != "" {
			h.fail(ErrReplicaState, "node %d at index %d: %s", m.id, index, differs)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// outbox compares the outbox with the model's numbers.
func (h *history) outbox(m *member, want *model) string {
	machine := m.n.Range(h.id).Machine
	var records int64
	for st, head := range want.heads {
		records += int64(head.Seq - want.trimmed[st])
		kept, err := machine.Outbox(st, want.trimmed[st]+1, 1<<30)
		if err != nil {
			return err.Error()
		}
		if geo.Seq(len(kept)) != head.Seq-want.trimmed[st] {
			return fmt.Sprintf("outbox of %s holds %d records from #%d on, want up to #%d", st, len(kept), want.trimmed[st]+1, head.Seq)
		}
	}
	if b, err := machine.Backlog(); err != nil || b.Records != records {
		return fmt.Sprintf("backlog of %d records, want %d (%v)", b.Records, records, err)
	}
	return ""
}
