package verify

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
)

// Bounds of Sessions.
const (
	// sessionsMax is how many sessions are open at once. A snapshot keeps the store from freeing what
	// was replaced since.
	sessionsMax = 16
	// idleMax is how long a session lives without a question.
	idleMax = time.Minute
	// scanWait is how long an answer waits for the end of a scan.
	scanWait = time.Second
)

// Stamp is the stamp of a location, as far as this process reaches it.
type Stamp interface {
	// Snapshot returns a state of a range in which everything acknowledged before the call is seen, and
	// the payload chunks of the node that has this state; nil for payload that cannot be examined here.
	// ranges.ErrNotLeader, or kv.ErrBusy: it cannot be read in this process.
	Snapshot(ctx context.Context, r geo.RangeID) (kv.Snapshot, Chunks, error)
}

// Options configures Sessions.
type Options struct {
	Stamp Stamp
	Clock clock.Clock
	// RowChunks returns the payload chunks that a row names. Nil: no row names any.
	RowChunks func(key, value []byte) ([]extent.Ref, error)
	// Wait waits for a time, or until ctx ends. Nil means clock.Wait.
	Wait func(ctx context.Context, d time.Duration) error
}

// Sessions answers questions about snapshots of this location. Methods may be called concurrently.
type Sessions struct {
	o Options

	mu   sync.Mutex
	open map[uint64]*session
}

// NewSessions returns Sessions without a session.
func NewSessions(o Options) *Sessions {
	if o.Wait == nil {
		o.Wait = clock.Wait
	}
	return &Sessions{o: o, open: map[uint64]*session{}}
}

// session is a snapshot of a range and the scan that runs over it.
type session struct {
	of     *Sessions
	id     uint64
	rng    geo.RangeID
	snap   kv.Snapshot
	chunks Chunks
	idle   *time.Timer
	// ctx ends with the session; scans counts the goroutine of its scan.
	ctx    context.Context //nolint:containedctx // Ends the scan of the session, which runs between two questions.
	cancel context.CancelFunc
	scans  sync.WaitGroup

	mu       sync.Mutex
	prefixes [][]byte
	scan     *scanning // nil before the first
}

// scanning is a scan that runs or has ended.
type scanning struct {
	number uint64
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	at      progress
	result  []byte
	err     error
	damages []Damage
	damaged uint64
}

// errSessions: too many sessions are open.
var errSessions = fmt.Errorf("verify: %d comparisons run at this location: %w", sessionsMax, kv.ErrBusy)

// Serve answers an encoded question about a range.
func (s *Sessions) Serve(ctx context.Context, r geo.RangeID, question []byte) ([]byte, error) {
	var q Question
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, fmt.Errorf("%w: %w", errQuestion, err)
	}
	a, err := s.Ask(ctx, r, &q)
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

// Holds reports whether an encoded question is about a session of this process.
func (s *Sessions) Holds(question []byte) bool {
	var q Question
	return json.Unmarshal(question, &q) == nil && s.find(q.Session) != nil
}

func (s *Sessions) find(id uint64) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id]
}

// Ask answers a question about a range.
func (s *Sessions) Ask(ctx context.Context, r geo.RangeID, q *Question) (*Answer, error) {
	if q.Op == OpOpen {
		return s.begin(ctx, r, q)
	}
	if q.Op == OpClose {
		return &Answer{}, s.end(q.Session)
	}
	if q.Op == OpRead {
		return s.read(ctx, r, q)
	}
	if q.Op == OpPage {
		return s.page(ctx, r, q)
	}
	found := s.find(q.Session)
	if found == nil || found.rng != r {
		return &Answer{Gone: true}, nil
	}
	found.idle.Reset(idleMax)
	switch q.Op {
	case OpName:
		return &Answer{}, found.name(q)
	case OpScan:
		return found.ask(ctx, q)
	}
	return nil, errQuestion
}

// begin opens a session.
func (s *Sessions) begin(ctx context.Context, r geo.RangeID, q *Question) (_ *Answer, err error) {
	if s.full() {
		return nil, errSessions
	}
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	snap, chunks, err := s.o.Stamp.Snapshot(ctx, r)
	if err != nil {
		return nil, err
	}
	heads, err := headsIn(snap, r, q)
	if err != nil {
		return nil, errors.Join(err, snap.Close())
	}
	n := &session{of: s, id: binary.BigEndian.Uint64(random[:]) | 1, rng: r, snap: snap, chunks: chunks}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	s.mu.Lock()
	if len(s.open) >= sessionsMax {
		s.mu.Unlock()
		n.cancel()
		return nil, errors.Join(errSessions, snap.Close())
	}
	n.idle = time.AfterFunc(idleMax, func() { _ = s.end(n.id) }) // The snapshot was only read.
	s.open[n.id] = n
	s.mu.Unlock()
	return &Answer{Session: n.id, Heads: heads}, nil
}

func (s *Sessions) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) >= sessionsMax
}

// end ends a session. It is no error if there is none.
func (s *Sessions) end(id uint64) error {
	s.mu.Lock()
	n := s.open[id]
	delete(s.open, id)
	s.mu.Unlock()
	if n == nil {
		return nil
	}
	n.idle.Stop()
	n.mu.Lock()
	n.cancel() // No scan begins after this.
	n.mu.Unlock()
	n.scans.Wait()
	return n.snap.Close()
}

// Close ends all sessions: a node that stops waits for its snapshots. Others may be opened afterwards.
func (s *Sessions) Close() error {
	s.mu.Lock()
	ids := make([]uint64, 0, len(s.open))
	for id := range s.open {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	var errs []error
	for _, id := range ids {
		errs = append(errs, s.end(id))
	}
	return errors.Join(errs...)
}

// name adds prefixes.
func (n *session) name(q *Question) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case q.From < 0 || q.From > len(n.prefixes) || n.scan != nil:
		return errQuestion
	case q.From+len(q.Prefixes) > prefixesMax:
		return fmt.Errorf("verify: more than %d containers", prefixesMax)
	}
	n.prefixes = append(n.prefixes[:q.From:q.From], q.Prefixes...)
	return nil
}

// ask begins a scan where its number is new, and answers how far it is.
func (n *session) ask(ctx context.Context, q *Question) (*Answer, error) {
	if err := q.Scan.check(); err != nil {
		return nil, err
	}
	sc := n.start(q.Scan)
	if sc == nil {
		return &Answer{Gone: true}, nil
	}
	if sc.number != q.Scan.Number {
		return nil, errQuestion
	}
	wait := time.NewTimer(scanWait)
	defer wait.Stop()
	select {
	case <-sc.done:
	case <-wait.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return sc.answer(q.Offset), nil
}

// start returns the scan that a question names, or the present one if that is later; nil if the
// session has ended.
func (n *session) start(scan *Scan) *scanning {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.ctx.Err() != nil:
		return nil
	case n.scan != nil && n.scan.number >= scan.Number:
		return n.scan
	case n.scan != nil:
		n.scan.cancel()
		n.scans.Wait() // It looks at its context after each MiB.
	}
	ctx, cancel := context.WithCancel(n.ctx)
	sc := &scanning{number: scan.Number, cancel: cancel, done: make(chan struct{})}
	w := n.walk(scan, sc)
	n.scan = sc
	n.scans.Go(func() {
		defer cancel()
		result, err := w.run(ctx)
		sc.mu.Lock()
		sc.result, sc.err, sc.damages, sc.damaged = result, err, w.damages, w.damaged
		sc.mu.Unlock()
		close(sc.done)
	})
	return sc
}

func (n *session) walk(scan *Scan, sc *scanning) *walk {
	o := &n.of.o
	rate := scan.BytesPerSecond
	if rate == 0 {
		rate = bytesPerSecond
	}
	return &walk{
		scan: scan, from: n.snap, prefixes: n.prefixes, rowChunks: o.RowChunks, chunks: n.chunks, latest: n.latest,
		pace:   &pace{clock: o.Clock, wait: o.Wait, rate: rate, began: o.Clock.Mono()},
		report: func(p progress) { sc.mu.Lock(); sc.at = p; sc.mu.Unlock() },
	}
}

// latest reads a row in the newest state of the range.
func (n *session) latest(ctx context.Context, key []byte) (value []byte, ok bool, err error) {
	snap, _, err := n.of.o.Stamp.Snapshot(ctx, n.rng)
	if err != nil {
		return nil, false, err
	}
	value, ok, err = snap.Get(key)
	return value, ok, errors.Join(err, snap.Close())
}

// answer returns how far the scan is, and a part of its result.
func (sc *scanning) answer(offset uint64) *Answer {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	a := &Answer{Rows: sc.at.rows, Bytes: sc.at.bytes, Chunks: sc.at.chunks, ChunkBytes: sc.at.chunkBytes}
	select {
	case <-sc.done:
	default:
		return a
	}
	if a.Done = true; sc.err != nil {
		a.Failed = sc.err.Error()
		return a
	}
	a.Total = uint64(len(sc.result))
	from := min(offset, a.Total)
	a.Result = sc.result[from:min(from+resultPerCall, a.Total)]
	a.Damaged = sc.damaged
	if offset == 0 {
		a.Damages = sc.damages[:min(len(sc.damages), damagesPerCall)]
	}
	return a
}
