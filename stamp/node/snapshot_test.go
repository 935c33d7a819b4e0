package node_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/snapshot"
	"antipode/stamp/stamptest"
	"antipode/stamp/state"
)

// snapStamp is a stamp whose logs are so short that a node that was away needs a
// snapshot. A test may change what a node is opened with before it starts it.
type snapStamp struct {
	*stamp.Stamp
	t   *testing.T
	fss map[geo.NodeID]vfs.FS
	// o are the options that the nodes share.
	o Options
}

// logBytes is the log budget of a snapStamp.
const logBytes = 16 << 10

func newSnapStamp(t *testing.T, transport Transport, change func(*Options)) *snapStamp {
	t.Helper()
	s := &snapStamp{t: t, fss: map[geo.NodeID]vfs.FS{}}
	o := Options{
		Location: "north", Peers: []geo.NodeID{1, 2, 3}, Dir: "data", Clock: new(clock.Runtime), Transport: transport,
		Tick: 10 * time.Millisecond, ElectionTicks: 30, Seed: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		InSyncTimeout: 100 * time.Millisecond, LogBytesMax: logBytes, RowChunks: chunkRow, FlushEntries: 50,
		State: state.Options{LogSegmentBytes: 256 << 10}, // A file system in memory keeps what a crash would undo.
	}
	if change != nil {
		change(&o)
	}
	s.o = o
	s.Stamp = stamp.New(o, func(o *Options) { o.State.FS = s.fss[o.ID] })
	for _, id := range s.Nodes() {
		s.fss[id] = vfs.NewCrashableMem()
		s.start(id)
	}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.submit(setGate{openGate})
	return s
}

// openGate lets the account of these tests write, numbered.
var openGate = change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}

func (s *snapStamp) start(id geo.NodeID) {
	s.t.Helper()
	require.NoError(s.t, s.Start(id))
}

// submit runs a command until it took effect: elections may come in between.
func (s *snapStamp) submit(cmd ranges.Command) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		_ = stamptest.CompareHere(context.Background(), s.Stamp, testRange) // It is tried again with the command.
		return s.Submit(context.Background(), testRange, cmd) == nil
	}, electionWait, time.Millisecond)
}

// write puts rows of about 1 KiB.
func (s *snapStamp) write(from, to int, value string) {
	s.t.Helper()
	for i := from; i < to; i++ {
		s.submit(&put{p: partition(i), value: value + strings.Repeat("x", 1000)})
	}
}

// Leader waits for a leader: on a starved machine one may be deposed at any moment.
func (s *snapStamp) Leader(id geo.RangeID) *ranges.Range {
	for end := time.Now().Add(electionWait); ; <-time.After(time.Millisecond) {
		if r := s.Stamp.Leader(id); r != nil || time.Now().After(end) {
			return r
		}
	}
}

func (s *snapStamp) leader() geo.NodeID {
	for _, id := range s.Nodes() {
		if n := s.Node(id); n != nil && n.Range(testRange).Leading() {
			return id
		}
	}
	return 0
}

// follower returns a node that runs and does not lead.
func (s *snapStamp) follower() (id geo.NodeID) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		lead := s.leader()
		id = lead%3 + 1
		return lead != 0
	}, electionWait, time.Millisecond)
	return id
}

// makeLeader kills the others until id leads: one that was down while another led has too
// short a log to win.
func (s *snapStamp) makeLeader(id geo.NodeID) {
	s.t.Helper()
	var down []geo.NodeID
	require.Eventually(s.t, func() bool {
		lead := s.leader()
		if lead == id {
			return true
		}
		if lead == 0 || len(down) == 2 {
			return false
		}
		require.NoError(s.t, s.Stop(lead, true))
		if down = append(down, lead); len(down) == 2 {
			s.start(down[0])
		}
		return false
	}, 2*electionWait, time.Millisecond)
	for _, id := range down {
		if s.Node(id) == nil {
			s.start(id)
		}
	}
}

// dropLog waits until every running node trimmed its log above index.
func (s *snapStamp) dropLog(index uint64) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		for _, id := range s.Nodes() {
			if n := s.Node(id); n != nil {
				if first, err := n.Log(testRange).FirstIndex(); err != nil || first <= index {
					return false
				}
			}
		}
		return true
	}, electionWait, time.Millisecond)
}

// same waits until three replicas are in sync and stand at one index, and requires that
// they hold the same bytes there.
func (s *snapStamp) same() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		lead := s.Leader(testRange)
		if lead == nil || lead.InSync() < 3 {
			return false
		}
		var want []string
		var at change.AppliedState
		for i, id := range s.Nodes() {
			n := s.Node(id)
			if n == nil {
				return false // It restarts.
			}
			snap := n.State().NewSnapshot()
			applied, err := ranges.AppliedIn(snap, testRange)
			rows, rowsErr := rowsIn(snap, testRange)
			if err = errors.Join(err, rowsErr, snap.Close()); state.Damaged(err) || errors.Is(err, state.ErrClosed) {
				return false // The node has noticed, and rebuilds it.
			}
			require.NoError(s.t, err)
			if i == 0 {
				at, want = applied, rows
			}
			if applied != at {
				return false // On its way.
			}
			require.Empty(s.t, firstDifference(want, rows), "node %d holds other rows than node 1", id)
		}
		return true
	}, 3*electionWait, 10*time.Millisecond)
}

// firstDifference shows where two lists begin to differ, cut short; empty where they are
// the same.
func firstDifference(want, got []string) string {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	if i == len(want) && i == len(got) {
		return ""
	}
	return fmt.Sprintf("row %d of %d and %d: %.300q, %.300q", i, len(want), len(got), want[i:min(i+1, len(want))], got[i:min(i+1, len(got))])
}

// scanner is what rows are read from.
type scanner interface {
	Scan(lower, upper []byte) (kv.Iterator, error)
}

// rowsIn is all that a store holds of a range.
func rowsIn(r scanner, id geo.RangeID) (out []string, err error) {
	for _, span := range ranges.Spans(id) {
		it, err := r.Scan(span.Lower, span.Upper)
		if err != nil {
			return nil, err
		}
		for it.Next() {
			out = append(out, fmt.Sprintf("%x=%x", it.Key(), it.Value()))
		}
		if err := it.Close(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func rowsOf(t require.TestingT, r scanner, id geo.RangeID) []string {
	out, err := rowsIn(r, id)
	require.NoError(t, err)
	return out
}

// chunkRow is how rows of these tests name chunks.
func chunkRow(_, value []byte) ([]extent.Ref, error) {
	if len(value) != 25 || value[0] != 'C' {
		return nil, nil
	}
	ref := extent.Ref{Length: binary.LittleEndian.Uint32(value[17:]), CRC: binary.LittleEndian.Uint32(value[21:])}
	copy(ref.ID[:], value[1:])
	return []extent.Ref{ref}, nil
}

// putChunk is a command that writes a row that names a chunk.
type putChunk struct {
	i   int
	ref extent.Ref
}

func (c putChunk) Evaluate(tx *ranges.Tx) error {
	v := append([]byte{'C'}, c.ref.ID[:]...)
	v = binary.LittleEndian.AppendUint32(v, c.ref.Length)
	v = binary.LittleEndian.AppendUint32(v, c.ref.CRC)
	return tx.Change(partition(c.i), change.Record{
		CommitTime: tx.Timestamp(0), Partition: partition(c.i).Append(nil),
		Ops: []change.Op{{Row: []byte("c"), Value: v}}, Chunks: []extent.Ref{c.ref},
	})
}

// trim is a command that deletes acknowledged records of all streams but the last few.
type trim struct{ m *ranges.Machine }

func (c trim) Evaluate(tx *ranges.Tx) error {
	heads, _ := c.m.Heads()
	for s, h := range heads {
		if err := tx.Trim(s, h.Seq/2); err != nil {
			return err
		}
	}
	return nil
}

// receivedClosed is a command that takes a closed record of the other location.
type receivedClosed struct{ t geo.Timestamp }

func (c receivedClosed) Evaluate(tx *ranges.Tx) error {
	tx.TakeClosed(&change.Closed{Origin: "south", Range: testRange, T: c.t, Full: true, Heads: []change.StreamHead{
		{Account: "far", Epoch: geo.Epoch{Number: 1, Location: "south"}, Lane: 3, Seq: geo.Seq(c.t)},
	}})
	return nil
}

// A node that is away for longer than the log reaches back returns by a snapshot, while
// writes go on: it holds the leader's bytes at the same index, is in sync, and its log did
// not grow beyond the budget on the others meanwhile. As a leader it goes on where the old
// one was: heads, cursors, outbox and gates are there, and it ships.
// It holds invariant 6.
//
// Capability: Storage on a node: Range snapshots, log within a budget.
func TestLaggardReturnsBySnapshot(t *testing.T) {
	s := newSnapStamp(t, memtransport.New(), nil)
	s.write(0, 20, "a")
	away := s.follower()
	require.NoError(t, s.Stop(away, false))
	s.write(10, 150, "b")
	s.submit(trim{s.Leader(testRange).Machine})
	s.submit(receivedClosed{7})
	at := s.Leader(testRange).Machine.AppliedState().Index
	s.write(0, 40, "c")
	s.dropLog(at)
	for _, id := range s.Nodes() {
		if n := s.Node(id); n != nil {
			require.Less(t, n.LogBytes(testRange), uint64(4*logBytes), "node %d", id)
		}
	}
	var load sync.WaitGroup
	var ended atomic.Bool
	for w := range 4 {
		load.Go(func() {
			for i := 0; !ended.Load(); i++ { // Each is awaited: one given up may commit after heads are read.
				_ = s.Submit(context.Background(), testRange, &put{p: partition(200 + 10*w + i%10), value: fmt.Sprint(i)})
			}
		})
	}
	s.start(away)
	require.Eventually(t, func() bool { r := s.Leader(testRange); return r != nil && r.InSync() == 3 }, 3*electionWait, time.Millisecond)
	ended.Store(true)
	load.Wait()
	s.same()
	first, err := s.Node(away).Log(testRange).FirstIndex()
	require.NoError(t, err)
	require.Greater(t, first, at, "it came by the log")
	requireNothingStaged(t, s, away)

	old := s.Leader(testRange).Machine
	heads, _ := old.Heads()
	cursors, trimmed := old.Progress(geo.SourceRange{Origin: "south", Range: testRange}, cursor.EveryAccount).Behind(), map[geo.Stream]geo.Seq{}
	for st := range heads {
		trimmed[st] = old.Trimmed(st)
	}
	require.NotEmpty(t, cursors)
	s.makeLeader(away)
	m := s.Node(away).Range(testRange).Machine
	now, _ := m.Heads()
	require.Equal(t, heads, now)
	require.Equal(t, cursors, m.Progress(geo.SourceRange{Origin: "south", Range: testRange}, cursor.EveryAccount).Behind())
	for st, h := range heads {
		require.Equal(t, trimmed[st], m.Trimmed(st))
		records, err := m.Outbox(st, trimmed[st]+1, 1<<30)
		require.NoError(t, err)
		require.Len(t, records, int(h.Seq-trimmed[st]), "outbox of %s", st)
	}
	s.write(0, 5, "d")
	later, _ := m.Heads()
	require.NotEqual(t, heads, later)
	s.same()
}

func requireNothingStaged(t *testing.T, s *snapStamp, id geo.NodeID) {
	t.Helper()
	require.Eventually(t, func() bool {
		list, err := s.fss[id].List("data/" + Name("north", id) + "/snap")
		return err == nil && len(list) == 0
	}, electionWait, time.Millisecond)
}

// R3: a replica that gets a snapshot does not count before it has the payload that the state names. While
// no peer returns the payload, its applied index stays and it is not in sync. With the payload it is.
//
// Capability: Storage on a node: Range snapshots, log within a budget.
func TestSnapshotWaitsForPayload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := &stingy{Transport: memtransport.New()}
		s := newSnapStamp(t, transport, nil)
		away := s.follower()
		s.write(0, 5, "a")
		require.NoError(t, s.Stop(away, true))
		var refs []extent.Ref
		for i := range 20 {
			data := []byte(fmt.Sprintf("payload %d", i))
			ref := extent.NewRef(extent.ChunkID{byte(i + 1)}, data)
			require.NoError(t, s.PutChunk(context.Background(), ref, data))
			s.submit(putChunk{i, ref})
			refs = append(refs, ref)
		}
		at := s.Leader(testRange).Machine.AppliedState().Index
		s.write(0, 100, "b")
		s.dropLog(at)
		transport.refuse.Store(true)
		s.start(away)
		require.Eventually(t, func() bool { return transport.refused.Load() > 2 }, 3*electionWait, time.Millisecond)
		require.Less(t, s.Node(away).Range(testRange).Machine.AppliedState().Index, at)
		require.Less(t, s.Leader(testRange).InSync(), 3)
		transport.refuse.Store(false)
		s.same()
		for _, ref := range refs {
			require.True(t, s.Node(away).Extents().Durable(ref.ID))
		}
	})
}

// stingy is a transport whose peers return no chunks while refuse is set.
type stingy struct {
	*memtransport.Transport
	refuse  atomic.Bool
	refused atomic.Int64
}

func (t *stingy) Peer(from, to geo.NodeID) ChunkPeer {
	if t.refuse.Load() {
		t.refused.Add(1)
		return nil
	}
	return t.Transport.Peer(from, to)
}

// R9: while a snapshot is on its way its sender drops nothing, though only the view of its state may name a chunk that the
// peer has still to fetch: here rounds find no names at all. Afterwards the collection goes on.
func TestR9SnapshotPinsPayload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := &collecting{Transport: memtransport.New(), t: t}
		s := newSnapStamp(t, transport, nil)
		away := s.follower()
		s.write(0, 5, "a")
		require.NoError(t, s.Stop(away, true))
		refs := s.putChunks(0, 5)
		at := s.Leader(testRange).Machine.AppliedState().Index
		s.write(10, 110, "b")
		s.dropLog(at)
		transport.s.Store(s)
		s.start(away)
		s.same()
		require.True(t, intact(s.Node(away), refs))
		require.NotZero(t, transport.sender.Load())
		sender := s.Node(geo.NodeID(transport.sender.Load())).Extents()
		require.Eventually(t, func() bool { return sender.Stats().Releases > 0 }, electionWait, time.Millisecond)
	})
}

// collecting is a transport under which the sender of a snapshot collects when the first chunk is fetched from it.
type collecting struct {
	*memtransport.Transport
	t      *testing.T
	s      atomic.Pointer[snapStamp]
	once   sync.Once
	sender atomic.Uint64
}

func (c *collecting) Peer(from, to geo.NodeID) ChunkPeer {
	if peer := c.Transport.Peer(from, to); peer != nil {
		return collectingPeer{peer, c, to}
	}
	return nil
}

type collectingPeer struct {
	ChunkPeer
	c  *collecting
	of geo.NodeID
}

func (p collectingPeer) ReadChunk(ref extent.Ref, off int64, b []byte) (int, error) {
	if s := p.c.s.Load(); s != nil {
		p.c.once.Do(func() {
			store := s.Node(p.of).Extents()
			for range 3 {
				store.BeginRound(true)
				store.EndRound()
			}
			chunks, _, err := store.Sweep(100)
			assert.NoError(p.c.t, err)
			assert.Zero(p.c.t, chunks, "the peer has still to fetch them")
			p.c.sender.Store(uint64(p.of))
		})
	}
	return p.ChunkPeer.ReadChunk(ref, off, b)
}

// A transfer that is cut anywhere starts again and succeeds; the cut ones leave nothing behind.
func TestInterruptedSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := &cutting{Transport: memtransport.New()}
		s := newSnapStamp(t, transport, nil)
		away := s.follower()
		require.NoError(t, s.Stop(away, true))
		s.write(0, 60, "a")
		at := s.Leader(testRange).Machine.AppliedState().Index
		s.write(0, 60, "b")
		s.dropLog(at)
		transport.cuts.Store(3)
		s.start(away)
		s.same()
		require.LessOrEqual(t, transport.cuts.Load(), int64(0), "cuts that never came")
		requireNothingStaged(t, s, away)
	})
}

// cutting is a transport that ends the first streams: before their first fragment, after
// it, damaged, or before their end.
type cutting struct {
	*memtransport.Transport
	cuts atomic.Int64
}

var errCut = errors.New("cut")

func (t *cutting) Snapshot(from, to geo.NodeID, h snapshot.Header) (snapshot.Stream, error) {
	s, err := t.Transport.Snapshot(from, to, h)
	if err != nil {
		return nil, err
	}
	return &cutStream{s, t.cuts.Add(-1) + 1}, nil
}

type cutStream struct {
	snapshot.Stream
	how int64
}

func (s *cutStream) Send(ctx context.Context, p snapshot.Fragment) error {
	switch s.how {
	case 3:
		return errCut
	case 2:
		p.Rows = append([]byte(nil), p.Rows...)
		p.Rows[len(p.Rows)/2] ^= 1
	}
	return s.Stream.Send(ctx, p)
}

func (s *cutStream) Finish(ctx context.Context, progressed func()) error {
	if s.how == 1 {
		return errCut
	}
	return s.Stream.Finish(ctx, progressed)
}

// A crash at any sync of a node that installs a snapshot leaves the old replica or the
// new one: it opens, is not lost, has no leftovers, and catches up to the leader's bytes.
// It holds invariant 6.
//
// Capability: Storage on a node: Range snapshots, log within a budget.
func TestCrashWhileInstalling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), nil)
		s.write(0, 20, "a")
		away := s.follower()
		require.NoError(t, s.Stop(away, false))
		s.write(0, 60, "b")
		at := s.Leader(testRange).Machine.AppliedState().Index
		s.write(0, 60, "c")
		s.dropLog(at)
		mem := s.fss[away].(*vfs.MemFS)
		rec := &recordingFS{FS: mem, mem: mem}
		s.fss[away] = rec
		s.start(away)
		s.same()
		require.NoError(t, s.Stop(away, false))
		clones := rec.take()
		require.Greater(t, len(clones), 10)
		old, newer := 0, 0
		rng := rand.New(rand.NewPCG(1, 1))
		for len(clones) > 0 {
			i := rng.IntN(len(clones))
			clone := clones[i]
			clones = append(clones[:i], clones[i+1:]...)
			if !testing.Short() || rng.IntN(4) == 0 {
				if openCrashed(t, s, away, clone) >= at {
					newer++
				} else {
					old++
				}
			}
		}
		t.Logf("crashes before the ingest %d, after it %d", old, newer)
		if !testing.Short() {
			require.Positive(t, old)
			require.Positive(t, newer)
		}
		s.fss[away] = mem
		s.start(away)
		s.same()
	})
}

// openCrashed opens a node alone on a crashed disk and returns where it stands.
func openCrashed(t *testing.T, s *snapStamp, id geo.NodeID, fs vfs.FS) uint64 {
	t.Helper()
	o := s.o
	o.ID, o.Dir, o.State.FS, o.Transport = id, "data/"+Name("north", id), fs, memtransport.New()
	n, err := Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close(false)) }()
	r := n.Range(testRange)
	require.NoError(t, r.Replica().Lost())
	dir := "data/" + Name("north", id) + "/snap"
	list, err := fs.List(dir)
	require.NoError(t, err)
	for _, of := range list { // What is staged may be gone on with, as long as it was not about to be ingested.
		files, err := fs.List(dir + "/" + of)
		require.NoError(t, err)
		require.Contains(t, files, "kept")
		require.NotContains(t, files, "install")
	}
	_, err = n.Pass()
	require.NoError(t, err)
	return r.Machine.AppliedState().Index
}

// recordingFS clones the disk as a crash would leave it at each sync of it.
type recordingFS struct {
	vfs.FS
	mem    *vfs.MemFS
	mu     sync.Mutex
	clones []vfs.FS
}

func (fs *recordingFS) synced() {
	clone := fs.mem.CrashClone(vfs.CrashCloneCfg{})
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.clones = append(fs.clones, clone)
}

func (fs *recordingFS) take() []vfs.FS {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	out := fs.clones
	fs.clones = nil
	return out
}

func (fs *recordingFS) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return recordedFile{f, fs}, nil
}

func (fs *recordingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.wrap(fs.FS.Create(name, c))
}

func (fs *recordingFS) OpenDir(name string) (vfs.File, error) { return fs.wrap(fs.FS.OpenDir(name)) }

func (fs *recordingFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return fs.wrap(fs.FS.OpenReadWrite(name, c, o...))
}

type recordedFile struct {
	vfs.File
	fs *recordingFS
}

func (f recordedFile) Sync() error {
	err := f.File.Sync()
	f.fs.synced()
	return err
}

func (f recordedFile) SyncData() error {
	err := f.File.SyncData()
	f.fs.synced()
	return err
}
