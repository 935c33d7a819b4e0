package receive

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/bus"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

// WaitsFor is what a record with outcome Wait waits for.
type WaitsFor byte

// The causes. WaitsForOther stands for those of a later version, and for the next group, which keeps more of what the
// record overwrites (R16).
const (
	WaitsForOther      WaitsFor = iota
	WaitsForGate                // the gate of its account here, which is closed, or of an earlier epoch
	WaitsForGeneration          // its table, container or queue in the catalog here
	WaitsForPayload             // chunks
	WaitsForClock               // the clock here to reach its commit time
	// WaitsForGap is of outcome Gap: an earlier record, which is pulled.
	WaitsForGap
)

// String returns the cause as a word.
func (w WaitsFor) String() string {
	switch w {
	case WaitsForGate:
		return "gate"
	case WaitsForGeneration:
		return "generation"
	case WaitsForPayload:
		return "payload"
	case WaitsForClock:
		return "clock"
	case WaitsForGap:
		return "gap"
	case WaitsForOther:
	}
	return "other"
}

// StreamView is a stream with something that was received and is not applied.
type StreamView struct {
	// Seq is the record that waits, and For what it waits for; Since is for how long it has. Seq is 0 if
	// none is known to wait.
	Seq   geo.Seq
	For   WaitsFor
	Since time.Duration
	// Pulling reports that its records were requested from the source. PullErr is the error of the last
	// request, nil if it was answered.
	Pulling bool
	PullErr error
}

// Trouble is something that fails, for how long, and its last error. The zero value is none.
type Trouble struct {
	Err   error
	Since time.Duration
}

// RangeView is what a receiver knows of a source range beside what is committed.
type RangeView struct {
	// Contact is how long ago a message of the range came off the bus; Known is false before the first.
	Contact time.Duration
	Known   bool
	// Committing is for how long the commit under way has lasted, zero if there is none. Failing is the
	// failure of commits since the last success, or that closed records are of a later version.
	Committing time.Duration
	Failing    Trouble
	// Ahead: see Receiver.Ahead.
	Ahead bool
	// Streams are those of one account that hold something back.
	Streams map[geo.Stream]StreamView
	// Bus is the failure of the bus to answer, Calls that of calls to the source other than for chunks, and
	// Chunks that of those; of all ranges.
	Bus, Calls, Chunks Trouble
}

// View returns what is known of a source range and of an account's streams in it. It may be called
// concurrently with Step.
func (r *Receiver) View(id geo.RangeID, a geo.Account) RangeView {
	out := r.seen.view(id, a)
	out.Ahead = r.Ahead(id)
	return out
}

// observer sees the calls of a receiver to its bus, source and applier, and remembers what fails and what
// waits. It decides nothing. Its memory is an entry for each stream that waits or is pulled.
type observer struct {
	clock clock.Clock

	mu     sync.Mutex
	ranges map[geo.RangeID]*observed
	bus    failing
	calls  failing
	chunks failing
}

// observed is what is known of one range.
type observed struct {
	contact time.Duration
	known   bool
	// committing is since when a commit is under way.
	committing time.Duration
	busy       bool
	failing    failing
	later      failing // see laterClosed
	streams    map[geo.Stream]observedStream
}

type observedStream struct {
	seq     geo.Seq
	why     WaitsFor
	since   time.Duration
	pulling bool
	pullErr error
}

// failing is since when something fails, and its last error.
type failing struct {
	err   error
	since time.Duration
}

func (f *failing) ended(err error, now time.Duration) {
	if err != nil && f.err == nil {
		f.since = now
	}
	f.err = err
}

func (f *failing) trouble(now time.Duration) Trouble {
	if f.err == nil {
		return Trouble{}
	}
	return Trouble{f.err, now - f.since}
}

// observe puts an observer between a receiver and what its options name.
func observe(o *Options) *observer {
	v := &observer{clock: o.Clock, ranges: map[geo.RangeID]*observed{}}
	for _, id := range o.Ranges {
		v.ranges[id] = &observed{streams: map[geo.Stream]observedStream{}}
	}
	o.Consumer, o.Source, o.Applier = observedConsumer{o.Consumer, v}, observedSource{o.Source, v}, observedApplier{o.Applier, v}
	return v
}

func (v *observer) view(id geo.RangeID, a geo.Account) RangeView {
	now := v.clock.Mono()
	v.mu.Lock()
	defer v.mu.Unlock()
	out := RangeView{Bus: v.bus.trouble(now), Calls: v.calls.trouble(now), Chunks: v.chunks.trouble(now), Streams: map[geo.Stream]StreamView{}}
	of := v.ranges[id]
	if of == nil {
		return out
	}
	out.Known, out.Contact, out.Failing = of.known, now-of.contact, of.failing.trouble(now)
	if of.failing.err == nil {
		out.Failing = of.later.trouble(now)
	}
	if of.busy {
		out.Committing = now - of.committing
	}
	for st, s := range of.streams {
		if st.Account == a {
			out.Streams[st] = StreamView{Seq: s.seq, For: s.why, Since: now - s.since, Pulling: s.pulling, PullErr: s.pullErr}
		}
	}
	return out
}

// contact takes that a range had nothing to send.
func (v *observer) contact(id geo.RangeID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if of := v.ranges[id]; of != nil {
		of.contact, of.known = v.clock.Mono(), true
	}
}

// observedConsumer sees which ranges the bus has messages of.
type observedConsumer struct {
	bus.Consumer
	v *observer
}

// Poll implements bus.Consumer.
func (c observedConsumer) Poll(limit int) ([]bus.Message, error) {
	list, err := c.Consumer.Poll(limit)
	now := c.v.clock.Mono()
	c.v.mu.Lock()
	defer c.v.mu.Unlock()
	c.v.bus.ended(err, now)
	for _, m := range list {
		id, err := strconv.ParseUint(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:], 10, 32)
		if of := c.v.ranges[geo.RangeID(id)]; err == nil && of != nil {
			of.contact, of.known = now, true
		}
	}
	return list, err
}

// observedApplier sees what is committed, and what waits.
type observedApplier struct {
	Applier
	v *observer
}

// Apply implements Applier.
func (a observedApplier) Apply(b *Batch, done func(error)) {
	of := a.v.ranges[b.Source.Range]
	a.v.mu.Lock()
	of.busy, of.committing = true, a.v.clock.Mono()
	a.v.mu.Unlock()
	a.Applier.Apply(b, func(err error) {
		a.v.mu.Lock()
		of.busy = false
		of.applied(b, err, a.v.clock.Mono())
		a.v.mu.Unlock()
		done(err)
	})
}

// Rebase implements Applier. The base was fetched alone: its stream is not pulled.
func (a observedApplier) Rebase(r Rebase, done func(error)) {
	a.v.mu.Lock()
	delete(a.v.ranges[r.Stream.Range].streams, r.Stream)
	a.v.mu.Unlock()
	a.Applier.Rebase(r, done)
}

// applied takes the outcomes of a batch.
func (of *observed) applied(b *Batch, err error, now time.Duration) {
	of.failing.ended(err, now)
	if err != nil {
		return
	}
	for _, rec := range b.Records {
		st := rec.Record.Stream()
		s, known := of.streams[st]
		switch rec.Outcome {
		case Gap:
			of.wait(st, s, rec.Record.Seq, WaitsForGap, now)
		case Wait:
			of.wait(st, s, rec.Record.Seq, rec.For, now)
		case Applied, Duplicate:
			if known && rec.Record.Seq >= s.seq {
				delete(of.streams, st)
			}
		default: // It is dropped, for good or to be pulled.
			delete(of.streams, st)
		}
	}
}

// wait keeps the record of a stream that is waited for. The first one counts: those behind it wait for it, in its batch
// with its cause, in later ones as a gap.
func (of *observed) wait(st geo.Stream, s observedStream, n geo.Seq, why WaitsFor, now time.Duration) {
	if s.seq != 0 && s.seq < n && (s.why == why || why == WaitsForGap) {
		return
	}
	if s.seq == 0 || s.why != why {
		s.since = now
	}
	s.seq, s.why = n, why
	of.streams[st] = s
}

// observedSource sees which calls to the source fail.
type observedSource struct {
	Source
	v *observer
}

func (s observedSource) ended(err error) {
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	s.v.calls.ended(err, s.v.clock.Mono())
}

// Records implements Source.
func (s observedSource) Records(st geo.Stream, from geo.Seq, bytesMax int, done func([][]byte, error)) {
	s.pulls(st, nil, true)
	s.Source.Records(st, from, bytesMax, func(records [][]byte, err error) {
		s.ended(err)
		s.pulls(st, err, false)
		done(records, err)
	})
}

// pulls keeps that a stream is pulled, until it has applied what was pulled.
func (s observedSource) pulls(st geo.Stream, err error, begins bool) {
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	of := s.v.ranges[st.Range]
	if of == nil {
		return
	}
	at, known := of.streams[st]
	switch {
	case begins && !known:
		at.since = s.v.clock.Mono()
		at.pulling = true
	case begins:
		at.pulling = true
	case !known:
		return // It was applied meanwhile.
	default:
		at.pullErr = err
	}
	of.streams[st] = at
}

// Closed implements Source.
func (s observedSource) Closed(r geo.RangeID, done func(*change.Closed, error)) {
	s.Source.Closed(r, func(c *change.Closed, err error) {
		s.ended(err)
		done(c, err)
	})
}

// Acknowledge implements Source.
func (s observedSource) Acknowledge(r geo.RangeID, cursors map[geo.Stream]Cursor, full bool, done func([]Mismatch, error)) {
	s.Source.Acknowledge(r, cursors, full, func(m []Mismatch, err error) {
		s.ended(err)
		done(m, err)
	})
}

// Chunk implements Source.
func (s observedSource) Chunk(ref extent.Ref, done func([]byte, error)) {
	s.Source.Chunk(ref, func(data []byte, err error) {
		s.v.mu.Lock()
		s.v.chunks.ended(err, s.v.clock.Mono())
		s.v.mu.Unlock()
		done(data, err)
	})
}
