package snapshot

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/room"
	"antipode/stamp/state"
)

// The record of what is kept stays what docs/format/snapshot.md shows, and any other bytes are none.
func TestKept(t *testing.T) {
	want := kept{
		of:     identity{id: 4, source: 9, from: 1, to: 3, term: 8, last: geo.EntryID{Term: 7, Index: 258}},
		chunks: 48, at: state.Position{Tables: 2, Spans: 1, Lower: []byte("b"), Last: []byte("az"), Bytes: 5},
	}
	b := want.encode()
	require.Equal(t, "0104000000"+"0900000000000000"+"0100000000000000"+"0300000000000000"+"0800000000000000"+"0201000000000000"+
		"0700000000000000"+"3000000000000000"+"0500000000000000"+"02000000"+"01000000"+"0162"+"02617a"+"e23d2115", hex.EncodeToString(b))
	got, ok := parseKept(b)
	require.True(t, ok)
	require.Equal(t, want, got)
	for i := range b {
		_, ok := parseKept(b[:i])
		require.False(t, ok)
		flipped := bytes.Clone(b)
		flipped[i] ^= 4
		_, ok = parseKept(flipped)
		require.False(t, ok)
	}
}

// here is a Node with one range: as much as Accept and what follows need.
type here struct {
	Node
	r       *ranges.Range
	fetched map[extent.Ref]bool
}

func (h here) Range(geo.RangeID) *ranges.Range { return h.r }
func (here) Accepts(geo.NodeID, Header) error  { return nil }
func (here) Wake()                             {}
func (here) Later(func() error)                {}
func (h here) Fetch(_ context.Context, ref extent.Ref, _ geo.NodeID) error {
	h.fetched[ref] = true
	return nil
}

type noChunks struct{}

func (noChunks) Sync(context.Context) error { return nil }

// Pin implements Chunks.
func (noChunks) Pin() func() { return func() {} }

// receiver is the receiving end of a node in memory.
type receiver struct {
	m     *Manager
	s     *state.Store
	fs    *vfs.MemFS
	disk  *disk
	clock *clock.Manual
	end   context.CancelFunc
	// fetched are the chunks that Stage asked for.
	fetched map[extent.Ref]bool
}

// valueVersion is what values begin with: no later version wrote them.
const valueVersion = 1

// chunkOf is the chunk that a row of these tests names.
func chunkOf(key, value []byte) extent.Ref {
	return extent.NewRef(extent.ChunkID{1}, append(bytes.Clone(key), value[1]))
}

func newReceiver(t require.TestingT, fs *vfs.MemFS, c *clock.Manual) *receiver {
	s, err := state.Open("to", state.Options{FS: fs})
	require.NoError(t, err)
	r, err := ranges.New(ranges.Options{Range: testRange, State: s, Clock: c})
	require.NoError(t, err)
	require.NoError(t, fs.MkdirAll("snap", 0o755))
	ctx, end := context.WithCancel(context.Background())
	fetched, disk := map[extent.Ref]bool{}, &disk{}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	m := NewManager(ctx, Options{
		Room: room.New(room.Options{FS: disk, ReserveBytes: room.ReserveBytes, Changed: func(bool, string) {}, Logger: log}),
		Node: here{r: r, fetched: fetched}, FS: fs, Dir: "snap", State: s, Chunks: noChunks{}, Clock: c, Go: func(f func()) { f() },
		RowChunks: func(_ geo.RangeID, key, value []byte) ([]extent.Ref, error) {
			return []extent.Ref{chunkOf(key, value)}, nil
		},
		Logger: log,
	})
	_, err = m.Recover(testRange, nil)
	require.NoError(t, err)
	return &receiver{m: m, s: s, fs: fs, disk: disk, clock: c, end: end, fetched: fetched}
}

func (r *receiver) close(t require.TestingT) {
	r.end()
	r.m.Close()
	require.NoError(t, r.s.Close())
}

// sourceOf is the source of a view of a store, as the leader in a term has it at an index.
func sourceOf(s *state.Store, number, term, index uint64) *source {
	typ, from, to := pb.MsgSnap, uint64(1), uint64(3)
	return &source{snap: s.NewSnapshot(), bytesMax: fragmentBytesMax, header: Header{Range: testRange, Source: number, Message: &pb.Message{
		Type: &typ, From: &from, To: &to, Term: &term, Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: &index, Term: &term}},
	}}}
}

// However streams break off, the receiver restarts or crashes, and the leader or its view changes in between: what is
// staged in the end is one view, whole, byte by byte, with the payload that its rows name. Rows of two never mix, and
// what was kept is not sent again.
func TestRowsOfTwoViewsNeverMix(t *testing.T) {
	spans := ranges.Spans(testRange)
	places := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) []byte {
		rest := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(rt, "rest")
		if rapid.Bool().Draw(rt, "of clients") {
			return append(bytes.Clone(spans[1].Lower), rest...)
		}
		return keys.Received(testRange, geo.Location(fmt.Sprintf("%x", rest)), 1)
	}), 3, 8)
	const (
		fragment = iota // the next one comes
		breaks          // the stream, and another one goes on
		restarts        // the receiver
		crashes         // the receiver
		view            // the leader takes another view, of later rows
		term            // another leader takes one of the same index
	)
	steps := rapid.SliceOfN(rapid.SampledFrom([]int{fragment, fragment, fragment, breaks, breaks, restarts, crashes, view, term}), 0, 20)
	rapid.Check(t, func(rt *rapid.T) {
		rows, todo, seed := places.Draw(rt, "keys"), steps.Draw(rt, "steps"), rapid.Uint64().Draw(rt, "seed")
		from, err := state.Open("from", state.Options{FS: vfs.NewMem()})
		require.NoError(rt, err)
		c := clock.NewManual(time.Unix(1, 0))
		to := newReceiver(rt, vfs.NewCrashableMem(), c)
		rng := rand.New(rand.NewPCG(seed, 1))
		generation := byte(0)
		write := func() {
			b := from.NewBatch()
			generation++
			for _, k := range rows {
				if rng.IntN(5) > 0 {
					require.NoError(rt, b.Set(k, append([]byte{valueVersion}, bytes.Repeat([]byte{generation}, fragmentBytesMax/2)...)))
				} else {
					require.NoError(rt, b.Delete(k))
				}
			}
			require.NoError(rt, from.Commit(b))
			require.NoError(rt, b.Close())
		}
		write()
		number, inTerm, index := uint64(1), uint64(1), uint64(1)
		src := sourceOf(from, number, inTerm, index)
		want := rowsOf(rt, from, testRange)
		var in *Incoming
		var acknowledged []byte // the last key that came of this source
		open := func() {
			var err error
			in, err = to.m.Accept(1, src.header)
			require.NoError(rt, err)
			after, keeps := in.Resume()
			require.True(rt, keeps)
			require.LessOrEqual(rt, bytes.Compare(after, acknowledged), 0, "it has what was not sent")
			require.NoError(rt, src.seek(after))
			acknowledged = after
		}
		next := func() (last bool) {
			f, err := src.next()
			require.NoError(rt, err)
			require.NoError(rt, in.Send(context.Background(), f))
			acknowledged = bytes.Clone(src.last)
			return f.Last
		}
		open()
		whole := false
		for _, step := range todo {
			switch step {
			case fragment:
				if !whole {
					whole = next()
				}
				continue
			case breaks:
				in.Close()
				c.Advance(keptMax / 40)
				to.m.StepArrived(c.Mono())
				had := acknowledged
				open()
				require.Equal(rt, had, acknowledged, "it kept all that came")
			case restarts:
				in.Close()
				to.close(rt)
				to = newReceiver(rt, to.fs, c)
				open()
			case crashes:
				clone := to.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(100), RNG: rng})
				in.Close()
				to.close(rt)
				to = newReceiver(rt, clone, c)
				open()
			case view, term:
				in.Close()
				require.NoError(rt, src.close())
				write()
				number++
				if step == term {
					inTerm++
				} else {
					index++
				}
				src, want, acknowledged = sourceOf(from, number, inTerm, index), rowsOf(rt, from, testRange), nil
				open()
			}
			whole = false
		}
		for !whole {
			whole = next()
		}
		require.NoError(rt, in.Stage(context.Background(), func() {}))
		require.NoError(rt, to.s.Ingest(in.staging))
		require.Equal(rt, want, rowsOf(rt, to.s, testRange))
		for _, span := range spans {
			it, err := to.s.Scan(span.Lower, span.Upper)
			require.NoError(rt, err)
			for it.Next() {
				require.True(rt, to.fetched[chunkOf(it.Key(), it.Value())], "a row without its payload (R3)")
			}
			require.NoError(rt, it.Close())
		}
		in.Close()
		to.close(rt)
		require.NoError(rt, errors.Join(src.close(), from.Close()))
	})
}

// What broke off and is not gone on with is removed after a while, also when the node restarted meanwhile; a fragment
// that is damaged leaves nothing, nor does a sender that cannot go on. A view that was closed serves who has all rows.
func TestKeptIsRemoved(t *testing.T) {
	from, err := state.Open("from", state.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	b := from.NewBatch()
	for i := range 3 {
		require.NoError(t, b.Set(fmt.Appendf(bytes.Clone(ranges.Spans(testRange)[1].Lower), "%d", i), make([]byte, fragmentBytesMax)))
	}
	require.NoError(t, from.Commit(b))
	require.NoError(t, b.Close())
	c := clock.NewManual(time.Unix(1, 0))
	to := newReceiver(t, vfs.NewCrashableMem(), c)
	src := sourceOf(from, 1, 1, 1)
	send := func(change func(*Fragment)) (after []byte) {
		in, err := to.m.Accept(1, src.header)
		require.NoError(t, err)
		defer in.Close()
		after, _ = in.Resume()
		require.NoError(t, src.seek(after))
		f, err := src.next()
		require.NoError(t, err)
		change(&f)
		_ = in.Send(context.Background(), f) // The tests damage some.
		return after
	}
	staged := func() bool {
		list, err := to.fs.List("snap")
		require.NoError(t, err)
		return len(list) > 0
	}
	asIs := func(*Fragment) {}
	require.Empty(t, send(asIs))
	require.True(t, staged())
	require.NotEmpty(t, send(func(f *Fragment) { f.Rows[3]++ }))
	require.False(t, staged(), "nothing is left of a damaged one")

	require.Empty(t, send(asIs))
	c.Advance(keptMax - 1)
	to.m.StepArrived(c.Mono())
	require.True(t, staged())
	require.NotEmpty(t, send(asIs), "it went on")
	to.close(t)
	to = newReceiver(t, to.fs, c)
	c.Advance(keptMax - 1)
	to.m.StepArrived(c.Mono())
	require.True(t, staged())
	c.Advance(1)
	to.m.StepArrived(c.Mono())
	require.False(t, staged())

	for _, left := range []uint64{room.ReserveBytes / 2, room.ReserveBytes/2 - 1} {
		require.Empty(t, send(asIs))
		to.disk.left, to.disk.size = left, 1<<40
		to.m.o.Room.Check()
		to.m.StepArrived(c.Mono())
		require.Equal(t, left >= room.ReserveBytes/2, staged(), "a disk that takes no snapshot gets back what one took")
		require.NoError(t, to.m.RemoveStaged(testRange))
	}
	to.disk.left = full
	to.m.o.Room.Check()

	src.header.Source = 0
	require.Empty(t, send(asIs))
	require.False(t, staged(), "the sender cannot go on")

	require.NoError(t, src.seek(nil))
	for last := false; !last; {
		f, err := src.next()
		require.NoError(t, err)
		last = f.Last
	}
	require.NoError(t, src.close())
	require.NoError(t, src.seek(bytes.Clone(src.last)))
	f, err := src.next()
	require.NoError(t, err)
	require.True(t, f.Last)
	require.Empty(t, f.Rows)
	require.ErrorIs(t, src.seek(nil), errRowsGone)
	require.ErrorIs(t, src.seek(src.last[:len(src.last)-1]), errRowsGone)
	to.close(t)
	require.NoError(t, from.Close())
}
