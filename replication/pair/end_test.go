package pair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/link"
	"antipode/replication/pair/wire"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
	"antipode/stamp/skew"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memEnd is a location in memory.
type memEnd struct {
	mu     sync.Mutex
	outbox map[geo.Stream][][]byte
	// closed makes the full closed record; each call may see more.
	closed func() *change.Closed
	acked  map[geo.Stream]geo.Head
	forked map[geo.Stream]bool
	// trimmed are the streams that a full set of cursors has to name.
	trimmed  []geo.Stream
	received map[geo.SourceRange]geo.Timestamp
	chunks   map[extent.Ref][]byte
	clock    skew.Own
	err      error // of every call, where set
}

func newMemEnd() *memEnd {
	return &memEnd{
		outbox: map[geo.Stream][][]byte{}, acked: map[geo.Stream]geo.Head{}, forked: map[geo.Stream]bool{}, chunks: map[extent.Ref][]byte{},
		closed: func() *change.Closed { return &change.Closed{Origin: "north", Range: 3, Full: true, T: 7} },
	}
}

func (m *memEnd) Records(_ context.Context, s geo.Stream, from geo.Seq, bytesMax int) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out [][]byte
	size := 0
	for n := int(from) - 1; n >= 0 && n < len(m.outbox[s]); n++ {
		size += len(m.outbox[s][n])
		if len(out) > 0 && size > bytesMax {
			break
		}
		out = append(out, m.outbox[s][n])
	}
	return out, m.err
}

func (m *memEnd) Closed(context.Context, geo.RangeID) (*change.Closed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed(), m.err
}

func (m *memEnd) Rest(_ context.Context, _ geo.RangeID, look bool) (geo.Incarnation, geo.Timestamp, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil || !look {
		return 0, 0, m.err
	}
	return 1, 2, nil
}

func (m *memEnd) Acknowledge(_ context.Context, _ geo.RangeID, a ship.Acknowledgement) ([]ship.Mismatch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	named := map[geo.Stream]bool{}
	var mismatches []ship.Mismatch
	for _, c := range a.Cursors {
		named[c.Stream] = true
		if m.forked[c.Stream] {
			mismatches = append(mismatches, ship.Mismatch{Stream: c.Stream, Reason: change.StopForked, Here: c.Head, Stopped: true})
		} else if c.Head.Seq > m.acked[c.Stream].Seq {
			m.acked[c.Stream] = c.Head
		}
	}
	for _, s := range m.trimmed {
		if a.Full && !named[s] && s.Compare(a.After) > 0 && (a.UpTo == geo.Stream{} || s.Compare(a.UpTo) <= 0) {
			mismatches = append(mismatches, ship.Mismatch{Stream: s, Reason: change.StopLost, Here: geo.Head{Seq: 7}})
		}
	}
	slices.SortFunc(mismatches, func(a, b ship.Mismatch) int { return a.Stream.Compare(b.Stream) })
	return mismatches, m.err
}

func (m *memEnd) Received(_ context.Context, src geo.SourceRange) (geo.Timestamp, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.received[src], m.err
}

func (m *memEnd) Clock(context.Context) (skew.Own, error) { return m.clock, nil }

func (m *memEnd) ReadChunk(_ context.Context, ref extent.Ref, p []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.chunks[ref] == nil {
		return extent.ErrNotFound
	}
	copy(p, m.chunks[ref])
	return m.err
}

func (m *memEnd) PutChunk(_ context.Context, ref extent.Ref, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chunks[ref] = append([]byte(nil), data...)
	return m.err
}

func (m *memEnd) MissingChunks(_ context.Context, refs []extent.Ref) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	missing := make([]bool, len(refs))
	for i, ref := range refs {
		missing[i] = m.chunks[ref] == nil
	}
	return missing, m.err
}

// Verify answers with the question and its range.
func (m *memEnd) Verify(_ context.Context, r geo.RangeID, question []byte) ([]byte, error) {
	return fmt.Appendf(nil, "r%d %s", r, question), m.err
}

// callBytesMax is what a call carries each way.
const callBytesMax = 4 << 20

var errLost = errors.New("the answer was lost")

// wireCalls is Caller and Handlers: a wire that refuses what is too long, and may lose answers.
type wireCalls struct {
	handlers map[string]func(ctx context.Context, body []byte) ([]byte, error)
	mu       sync.Mutex
	lose     func() bool
	calls    int
	longest  int
}

func newWire() *wireCalls {
	return &wireCalls{
		handlers: map[string]func(ctx context.Context, body []byte) ([]byte, error){}, lose: func() bool { return false },
	}
}

func (w *wireCalls) Handle(method string, f func(ctx context.Context, body []byte) ([]byte, error)) {
	w.handlers[method] = f
}

func (w *wireCalls) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	out, err := w.handlers[method](ctx, append([]byte(nil), body...))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	w.longest = max(w.longest, len(body), len(out))
	if len(body) > callBytesMax || len(out) > callBytesMax {
		return nil, fmt.Errorf("%s: %d bytes out, %d back", method, len(body), len(out))
	}
	if err == nil && w.lose() {
		return nil, errLost
	}
	return out, err
}

// remoteOf serves e and returns it as the other location calls it.
func remoteOf(t *testing.T, e End) (End, *wireCalls) {
	t.Helper()
	l := link.New()
	t.Cleanup(l.Close)
	w := newWire()
	Serve(w, l, e)
	return NewRemote(w), w
}

func testStream(account string, lane geo.Lane) geo.Stream {
	return geo.Stream{Account: geo.Account(account), Epoch: geo.Epoch{Number: 2, Location: "north"}, Range: 3, Lane: lane}
}

func testRecord(t *testing.T, st geo.Stream, seq geo.Seq, size int) []byte {
	t.Helper()
	value := make([]byte, size)
	r := rand.New(rand.NewPCG(uint64(seq), uint64(size)))
	for i := range value {
		value[i] = byte(r.Uint32())
	}
	b, err := change.AppendRecord(nil, &change.Record{
		Epoch: st.Epoch, Range: st.Range, Lane: st.Lane, Account: st.Account, Seq: seq, Ops: []change.Op{{Row: []byte{1}, Value: value}},
	})
	require.NoError(t, err)
	return b
}

// A location says the same over calls as it says directly: also records that are too
// long for a call, alone and behind others, and asked for with any bound.
func TestRemoteRecords(t *testing.T) {
	near := newMemEnd()
	far, w := remoteOf(t, near)
	st := testStream("acct", 31)
	for i, size := range []int{10, 300 << 10, 5 << 20, 20, 2 << 20, 30} {
		near.outbox[st] = append(near.outbox[st], testRecord(t, st, geo.Seq(i+1), size))
	}
	for from := geo.Seq(1); from <= 8; from++ {
		for _, bytesMax := range []int{1, 256 << 10, 1 << 20} {
			want, err := near.Records(t.Context(), st, from, bytesMax)
			require.NoError(t, err)
			got, err := far.Records(t.Context(), st, from, bytesMax)
			require.NoError(t, err)
			require.Len(t, got, len(want), "from %d", from)
			for i := range want {
				require.Equal(t, want[i], got[i])
			}
		}
	}
	require.LessOrEqual(t, w.longest, partMax+1<<10)
}

// R6: the clock of a node arrives as its node answered it.
func TestR6RemoteClock(t *testing.T) {
	near := newMemEnd()
	far, _ := remoteOf(t, near)
	for _, want := range []skew.Own{{Wall: 17}, {Wall: -3, Unsure: true, Leapt: -time.Hour}, {Leapt: 20 * 365 * 24 * time.Hour}} {
		near.clock = want
		got, err := far.Clock(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// partless is a caller that is answered with parts of a record that have no bytes.
type partless struct{ calls int }

var errAskedOn = errors.New("asked again and again")

func (p *partless) Call(context.Context, string, []byte) ([]byte, error) {
	if p.calls++; p.calls > 3 {
		return nil, errAskedOn
	}
	return proto.Marshal(&wire.RecordsAnswer{Length: 10})
}

// R15: parts of a record that bring nothing are refused: the caller would ask for the next one for ever.
func TestR15RecordsInEmptyParts(t *testing.T) {
	c := &partless{}
	_, err := NewRemote(c).Records(t.Context(), testStream("acct", 1), 1, 100)
	require.ErrorIs(t, err, ErrMalformed)
	require.Equal(t, 1, c.calls)
}

// R16: a range that is recovered with loss between two pages is asked again: pages of different incarnations promise
// nothing together. The heads of the first may have been lost since.
//
// Capability: Two locations: Disks of a location that were set back cannot make Last Sync Time wrong (R12, R16).
func TestR16RemoteClosedOfOneIncarnation(t *testing.T) {
	near := newMemEnd()
	far, _ := remoteOf(t, near)
	asked := 0
	near.closed = func() *change.Closed {
		asked++
		c := &change.Closed{Origin: "north", Range: 3, Full: true, T: 7, Incarnation: min(2, geo.Incarnation(asked))}
		for i := range 400 {
			for lane := range geo.Lane(geo.LaneCount) {
				st := testStream(fmt.Sprintf("account%d", i), lane)
				c.Heads = append(c.Heads, change.StreamHead{Account: st.Account, Epoch: st.Epoch, Lane: lane, Seq: 1})
			}
		}
		return c
	}
	_, err := far.Closed(t.Context(), 3)
	require.ErrorIs(t, err, ErrMalformed)
	require.Equal(t, 2, asked)
	c, err := far.Closed(t.Context(), 3)
	require.NoError(t, err)
	require.Equal(t, geo.Incarnation(2), c.Incarnation)
}

// A full closed record of any number of streams comes whole, in pages of a bounded size.
// Commits between two pages move its heads and never its T: what is promised as of T is
// never above the heads.
func TestRemoteClosed(t *testing.T) {
	for _, accounts := range []int{0, 1, 400} {
		near := newMemEnd()
		far, w := remoteOf(t, near)
		now := geo.Timestamp(1000)
		near.closed = func() *change.Closed {
			now++
			c := &change.Closed{Origin: "north", Range: 3, Full: true, T: now}
			for i := range accounts {
				for lane := range geo.Lane(geo.LaneCount) {
					st := testStream(fmt.Sprintf("account%d", i), lane)
					c.Heads = append(c.Heads, change.StreamHead{Account: st.Account, Epoch: st.Epoch, Lane: lane, Seq: geo.Seq(now)})
				}
			}
			return c
		}
		got, err := far.Closed(t.Context(), 3)
		require.NoError(t, err)
		require.Equal(t, geo.Timestamp(1001), got.T)
		require.True(t, got.Full)
		require.Equal(t, geo.Location("north"), got.Origin)
		seen := map[geo.Stream]bool{}
		for _, h := range got.Heads {
			seen[got.Stream(h)] = true
			require.GreaterOrEqual(t, h.Seq, geo.Seq(got.T))
		}
		require.Len(t, got.Heads, accounts*geo.LaneCount)
		require.Len(t, seen, accounts*geo.LaneCount)
		require.Less(t, w.longest, 1<<20)
	}
}

// Cursors of any number are reported, in calls of a bounded size, and forks come back as a
// receiver wants them (R16).
func TestRemoteAcknowledge(t *testing.T) {
	near := newMemEnd()
	far, w := remoteOf(t, near)
	l := link.New()
	defer l.Close()
	cursors := map[geo.Stream]receive.Cursor{}
	for i := range 1000 {
		for lane := range geo.Lane(geo.LaneCount) {
			cursors[testStream(fmt.Sprintf("account%d", i), lane)] = receive.Cursor{Head: geo.Head{Seq: geo.Seq(i), Hash: geo.Hash(lane)}}
		}
	}
	forked := testStream("account77", 5)
	near.forked[forked] = true
	done := make(chan error, 1)
	var mismatches []receive.Mismatch
	NewSource(l, far, clock.System{}).Acknowledge(3, cursors, true, func(v []receive.Mismatch, err error) {
		mismatches = v
		done <- err
	})
	require.NoError(t, <-done)
	require.Equal(t, []receive.Mismatch{{Stream: forked, Reason: change.StopForked, There: cursors[forked].Head, Stopped: true}}, mismatches)
	require.Less(t, w.longest, 1<<20)
	delete(cursors, forked)
	for st, h := range cursors {
		if h.Seq > 0 {
			require.Equal(t, h.Head, near.acked[st])
		}
	}
}

// A full set of cursors and its mismatches of any number go over in pages of a bounded size: each
// stream that the caller has lost (R16) is named once, in order, whatever pages it lies between.
func TestRemoteAcknowledgeFull(t *testing.T) {
	near := newMemEnd()
	far, w := remoteOf(t, near)
	a := ship.Acknowledgement{Full: true}
	for i := range 1200 {
		for lane := range geo.Lane(geo.LaneCount) {
			st := testStream(fmt.Sprintf("account%d", i), lane)
			switch {
			case i < 400 || lane%2 == 0: // 400 accounts are lost, and half of the others.
				near.trimmed = append(near.trimmed, st)
			default:
				a.Cursors = append(a.Cursors, ship.StreamCursor{Stream: st, Head: geo.Head{Seq: 9}})
			}
		}
	}
	mismatches, err := far.Acknowledge(t.Context(), 3, a)
	require.NoError(t, err)
	slices.SortFunc(near.trimmed, geo.Stream.Compare)
	require.Len(t, mismatches, len(near.trimmed))
	for i, v := range mismatches {
		require.Equal(t, ship.Mismatch{Stream: near.trimmed[i], Reason: change.StopLost, Here: geo.Head{Seq: 7}}, v)
	}
	require.Less(t, w.longest, 1<<20)
	require.Len(t, near.acked, len(a.Cursors))
}

// An answer that is lost changes nothing: asked again, each call has the effect that it
// would have had at once.
func TestRemoteLostAnswers(t *testing.T) {
	near, twin := newMemEnd(), newMemEnd()
	far, w := remoteOf(t, near)
	r := rand.New(rand.NewPCG(1, 2))
	w.lose = func() bool { return r.IntN(3) > 0 }
	again := func(f func() error) {
		for err := errLost; err != nil; {
			if err = f(); err != nil {
				require.ErrorIs(t, err, errLost)
			}
		}
	}
	st := testStream("acct", 1)
	near.outbox[st] = [][]byte{testRecord(t, st, 1, 5<<20)}
	for i := range 50 {
		data := []byte(fmt.Sprintf("chunk %d", i))
		ref := extent.NewRef(extent.ChunkID{byte(i)}, data)
		cursor := []ship.StreamCursor{{Stream: testStream("acct", geo.Lane(i%geo.LaneCount)), Head: geo.Head{Seq: geo.Seq(r.IntN(100))}}}
		again(func() error { return far.PutChunk(t.Context(), ref, data) })
		again(func() error {
			_, err := far.Acknowledge(t.Context(), 3, ship.Acknowledgement{Cursors: cursor})
			return err
		})
		require.NoError(t, twin.PutChunk(t.Context(), ref, data))
		_, err := twin.Acknowledge(t.Context(), 3, ship.Acknowledgement{Cursors: cursor})
		require.NoError(t, err)
		got := make([]byte, len(data))
		again(func() error { return far.ReadChunk(t.Context(), ref, got) })
		require.Equal(t, data, got)
	}
	again(func() error {
		got, err := far.Records(t.Context(), st, 1, 10)
		if err == nil {
			require.Equal(t, near.outbox[st], got)
		}
		return err
	})
	require.Equal(t, twin.chunks, near.chunks)
	require.Equal(t, twin.acked, near.acked)
}

// The greatest time that a location has committed of a range comes over calls, also one that uses all
// bits, and 0 for a range of which nothing was received.
func TestRemoteReceived(t *testing.T) {
	near := newMemEnd()
	far, _ := remoteOf(t, near)
	src := geo.SourceRange{Origin: "north", Range: 3}
	near.received = map[geo.SourceRange]geo.Timestamp{src: 1<<63 + 1}
	got, err := far.Received(t.Context(), src)
	require.NoError(t, err)
	require.Equal(t, geo.Timestamp(1<<63+1), got)
	got, err = far.Received(t.Context(), geo.SourceRange{Origin: "north", Range: 4})
	require.NoError(t, err)
	require.Zero(t, got)
	near.err = errLost
	_, err = far.Received(t.Context(), src)
	require.ErrorIs(t, err, errLost)
}

// Chunks go over calls up to their bound; a longer one is refused before it is sent.
func TestRemoteChunkBounds(t *testing.T) {
	near := newMemEnd()
	far, w := remoteOf(t, near)
	data := make([]byte, chunkMax)
	ref := extent.NewRef(extent.ChunkID{1}, data)
	require.NoError(t, far.PutChunk(t.Context(), ref, data))
	got := make([]byte, len(data))
	require.NoError(t, far.ReadChunk(t.Context(), ref, got))
	calls := w.calls
	data = append(data, 1)
	require.ErrorContains(t, far.PutChunk(t.Context(), extent.NewRef(extent.ChunkID{2}, data), data), "does not fit a call")
	require.Equal(t, calls, w.calls)
}

// A process where a range is not led sends its caller on, or answers that it does not lead;
// a cut link answers nobody.
func TestServeElsewhere(t *testing.T) {
	there := errors.New("node 2 is to be asked")
	hook := map[geo.RangeID]error{3: there}
	noShipper := func(geo.RangeID) *ship.Shipper { return nil }
	l := link.New()
	defer l.Close()
	w := newWire()
	Serve(w, l, NewEnd(idleStamp{}, noShipper, func(r geo.RangeID) error { return hook[r] }))
	far := NewRemote(w)
	ask := func(id geo.RangeID) []error {
		st := testStream("acct", 1)
		st.Range = id
		_, err1 := far.Records(t.Context(), st, 1, 10)
		_, err2 := far.Closed(t.Context(), id)
		_, err3 := far.Acknowledge(t.Context(), id, ship.Acknowledgement{Cursors: []ship.StreamCursor{{Stream: st}}})
		_, err4 := far.Received(t.Context(), geo.SourceRange{Origin: "north", Range: id})
		return []error{err1, err2, err3, err4}
	}
	for _, err := range ask(3) {
		require.ErrorIs(t, err, there)
	}
	for _, err := range ask(4) {
		require.ErrorIs(t, err, ranges.ErrNotLeader)
	}
	l.Cut()
	for _, err := range ask(3) {
		require.ErrorIs(t, err, link.ErrCut)
	}
}

// idleStamp leads nothing.
type idleStamp struct{ Stamp }

func (idleStamp) Leader(geo.RangeID) *ranges.Range { return nil }

// A question of package verify arrives with its range, and its answer, or error, comes back.
func TestRemoteVerify(t *testing.T) {
	near := newMemEnd()
	far, _ := remoteOf(t, near)
	got, err := far.Verify(t.Context(), 4, []byte("{}"))
	require.NoError(t, err)
	require.Equal(t, "r4 {}", string(got))
	near.err = errors.New("no leader")
	_, err = far.Verify(t.Context(), 4, nil)
	require.ErrorContains(t, err, "no leader")
}
