package node_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/scrub"
)

// collectAll makes the scrubber collect all the time.
func collectAll(o *Options) {
	eager(o)
	o.CollectGrace = 30 * time.Millisecond
}

// deleteRow is a command that deletes the row of putChunk.
type deleteRow struct{ i int }

func (c deleteRow) Evaluate(tx *ranges.Tx) error {
	return tx.Change(partition(c.i), change.Record{
		CommitTime: tx.Timestamp(0), Partition: partition(c.i).Append(nil), Ops: []change.Op{{Row: []byte("c"), Delete: true}},
	})
}

// trimAll is a command that deletes all records of the outbox.
type trimAll struct{ m *ranges.Machine }

func (c trimAll) Evaluate(tx *ranges.Tx) error {
	heads, _ := c.m.Heads()
	for s, h := range heads {
		if err := tx.Trim(s, h.Seq); err != nil {
			return err
		}
	}
	return nil
}

// held counts the chunks that a node holds of those given.
func held(n *Node, refs []extent.Ref) (k int) {
	for _, have := range n.Extents().Refs() {
		for _, ref := range refs {
			if have == ref {
				k++
			}
		}
	}
	return k
}

// holds reports whether any node holds a chunk.
func (s *snapStamp) holds(ref extent.Ref) bool {
	for _, id := range s.Nodes() {
		if held(s.Node(id), []extent.Ref{ref}) > 0 {
			return true
		}
	}
	return false
}

// rounds waits until a node has done some more rounds of collection. It puts a chunk that nothing names,
// which is dropped at the end of the second round.
func (s *snapStamp) rounds(id geo.NodeID, times int) {
	s.t.Helper()
	for range times {
		data := []byte("a chunk that nothing names")
		ref := extent.NewRef(extent.ChunkID{0xff, byte(id)}, data)
		require.NoError(s.t, s.Node(id).PutChunk(context.Background(), ref, data))
		require.NoError(s.t, s.Node(id).SyncChunks(context.Background()))
		require.Eventually(s.t, func() bool { return held(s.Node(id), []extent.Ref{ref}) == 0 }, electionWait, time.Millisecond)
	}
}

// R9: chunks of uploads that failed are dropped on every node. Those that rows name stay,
// over restarts, and so do those that only the outbox names, until the other location has
// acknowledged them.
//
// Capability: Storage on a node: Scrub, repair from a peer, orphan chunks, compaction.
func TestCollectDropsOrphansOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), collectAll)
		named := s.putChunks(0, 10)
		gone := s.putChunks(10, 20)
		for i := 10; i < 20; i++ {
			s.submit(deleteRow{i})
		}
		s.write(100, 160, "a") // Flushes, and trims the log.
		s.dropLog(35)
		for _, id := range s.Nodes() {
			s.rounds(id, 2)
			require.Equal(t, 10, held(s.Node(id), named))
			require.Equal(t, 10, held(s.Node(id), gone), "the outbox names them")
		}
		s.submit(trimAll{s.Leader(testRange).Machine})
		s.write(160, 250, "b")
		for _, id := range s.Nodes() {
			require.Eventually(t, func() bool { return held(s.Node(id), gone) == 0 }, electionWait, time.Millisecond, "node %d", id)
		}
		id := s.follower()
		require.NoError(t, s.Stop(id, false))
		s.start(id)
		for _, id := range s.Nodes() {
			s.rounds(id, 2)
			require.True(t, intact(s.Node(id), named))
			require.Zero(t, s.Node(id).Scrubber().Stats().Missing)
		}
	})
}

// R9: the walk reads the spans whose rows may name chunks, and the outbox, and nothing else: what is outside names
// nothing, whatever it looks like.
//
// Capability: Storage on a node: Scrub, repair from a peer, orphan chunks, compaction.
func TestCollectReadsWhereNamesMayBe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), func(o *Options) {
			collectAll(o)
			o.ChunkSpans = func(geo.Service) []geo.Span {
				return []geo.Span{{Start: string(partition(0).Append(nil)), End: string(partition(10).Append(nil))}}
			}
		})
		within, outside := s.putChunks(0, 10), s.putChunks(10, 20)
		s.write(100, 160, "a") // Flushes, and trims the log.
		s.dropLog(25)
		for _, id := range s.Nodes() {
			s.rounds(id, 2)
			require.Equal(t, 10, held(s.Node(id), outside), "the outbox names them")
		}
		s.submit(trimAll{s.Leader(testRange).Machine})
		s.write(160, 250, "b")
		for _, id := range s.Nodes() {
			require.Eventually(t, func() bool { return held(s.Node(id), outside) == 0 }, electionWait, time.Millisecond, "node %d", id)
			require.True(t, intact(s.Node(id), within))
		}
	})
}

// R9: a chunk that only the log names stays, however long it takes until the state that
// names it is durable: here it never is, and a crash brings the log back.
//
// Capability: Storage on a node: Scrub, repair from a peer, orphan chunks, compaction.
func TestCollectKeepsWhatTheLogNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), func(o *Options) {
			o.FlushEntries = 1 << 30
			o.LogBytesMax = 1 << 30
		})
		refs := s.putChunks(0, 10)
		for _, id := range s.Nodes() {
			w := newWalk(t, s.Node(id))
			w.unsettled = true
			for range 3 {
				w.round()
			}
			durable, err := s.Node(id).Range(testRange).Machine.DurableIndex()
			require.NoError(t, err)
			require.Zero(t, durable)
			require.Equal(t, 10, held(s.Node(id), refs))
		}
	})
}

// R9: what was overwritten is dropped though nothing else is written that would flush the state or trim the logs, but not
// before the other location has acknowledged the records that name it.
func TestCollectAsksForFlushAndTrim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), func(o *Options) {
			collectAll(o)
			o.FlushEntries = 1 << 30
			o.LogBytesMax = 1 << 30
		})
		gone := s.putChunks(0, 5)
		for i := range 5 {
			s.submit(deleteRow{i})
		}
		named := s.putChunks(5, 10)
		for _, id := range s.Nodes() {
			require.Eventually(t, func() bool {
				durable, err := s.Node(id).Range(testRange).Machine.DurableIndex()
				return err == nil && durable >= 15
			}, electionWait, time.Millisecond)
			s.rounds(id, 3)
			require.Equal(t, 5, held(s.Node(id), gone), "the outbox names them")
		}
		s.submit(trimAll{s.Leader(testRange).Machine})
		for _, id := range s.Nodes() {
			require.Eventually(t, func() bool { return held(s.Node(id), gone) == 0 }, electionWait, time.Millisecond, "node %d", id)
			require.True(t, intact(s.Node(id), named))
		}
	})
}

// R3, R9: slow uploads race with a collector that never pauses. Each upload is committed with its payload
// on all nodes, or refused. What was committed stays readable, and no row is ever without its chunk.
func TestCollectBesideUploads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), func(o *Options) {
			collectAll(o)
			o.CollectGrace = 2 * time.Millisecond
		})
		ctx := context.Background()
		var mu sync.Mutex
		var committed []extent.Ref
		refused := 0
		const last = 7
		var clients sync.WaitGroup
		for c := range 10 {
			clients.Go(func() {
				for i := range last + 1 {
					data := fmt.Appendf(nil, "upload %d of client %d", i, c)
					ref := extent.NewRef(extent.ChunkID{byte(i), byte(c), 9}, data)
					if err := s.PutChunk(ctx, ref, data); err != nil {
						t.Errorf("put: %v", err)
						return
					}
					for wait := time.Duration(c*i) * 5 * time.Millisecond; wait > 0 || i == last && s.holds(ref); wait -= time.Millisecond {
						time.Sleep(time.Millisecond) // The client takes its time: the last one too much.
					}
					err := s.Submit(ctx, testRange, putChunk{10*c + i, ref})
					mu.Lock()
					if err == nil {
						committed = append(committed, ref)
					} else {
						refused++
					}
					mu.Unlock()
				}
			})
		}
		clients.Wait()
		require.NotEmpty(t, committed)
		require.GreaterOrEqual(t, refused, 10, "a chunk that was dropped everywhere was named")
		for _, id := range s.Nodes() {
			n := s.Node(id)
			at := s.Leader(testRange).Machine.AppliedState().Index
			require.Eventually(t, func() bool { return n.Range(testRange).Machine.AppliedState().Index >= at }, electionWait, time.Millisecond)
			require.True(t, intact(n, committed), "node %d", id)
			require.Zero(t, n.Scrubber().Stats().Missing, "node %d", id)
		}
	})
}

// R3, R9: a chunk that nothing named for two rounds, and that a change names which is proposed after the
// walk over the logs and before the sweep, stays on every node: the node that was asked for it has
// pinned it. Each node's collector is stepped by hand; the chunk was put long before.
func TestChangeBetweenWalkAndSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, ref, each := walkedStamp(t)
		s.submit(putChunk{1, ref})
		at := s.Leader(testRange).Machine.AppliedState().Index
		each(func(w *walk) {
			require.Eventually(t, func() bool { return w.n.Range(testRange).Machine.AppliedState().Index >= at }, electionWait, time.Millisecond)
			w.until(func() bool { return w.swept })
			require.Equal(t, 1, held(w.n, []extent.Ref{ref}), "node %d", w.n.ID())
		})
		data := []byte("another one")
		other := extent.NewRef(extent.ChunkID{8}, data)
		require.NoError(t, s.PutChunk(context.Background(), other, data))
		each((*walk).round)
		each((*walk).round)
		each(func(w *walk) {
			require.Equal(t, 1, held(w.n, []extent.Ref{ref, other}), "node %d: one is named", w.n.ID())
		})
	})
}

// walk is a second collector of a node, stepped by hand. The first one begins later.
type walk struct {
	t *testing.T
	n *Node
	*extent.Store
	scrubber *scrub.Scrubber
	clock    *clock.Manual
	names    scrub.Node
	// unsettled: nothing is flushed or trimmed for the rounds.
	unsettled bool
	// rows: the walk is behind the logs. swept: it ended.
	rows, swept bool
}

func newWalk(t *testing.T, n *Node) *walk {
	w := &walk{t: t, n: n, Store: n.Extents(), clock: clock.NewManual(time.Unix(0, 0))}
	o := n.ScrubOptions()
	o.Chunks, o.Rows, o.Clock, o.Stores, o.Grace = w, w, w.clock, nil, time.Millisecond
	w.names, o.Node = o.Node, settling{o.Node, w}
	var err error
	w.scrubber, err = scrub.New(o)
	require.NoError(t, err)
	return w
}

// settling is the node of a walk.
type settling struct {
	scrub.Node
	w *walk
}

func (s settling) Settle(ctx context.Context) error {
	if s.w.unsettled {
		return nil
	}
	return s.Node.Settle(ctx)
}

// ScanDurable implements scrub.Rows.
func (w *walk) ScanDurable(lower, upper []byte) (kv.Iterator, error) {
	w.rows = true
	return w.n.State().ScanDurable(lower, upper)
}

// BeginRound implements scrub.Chunks.
func (w *walk) BeginRound(full bool) {
	w.rows, w.swept = false, false
	w.Store.BeginRound(full)
}

// Sweep implements scrub.Chunks.
func (w *walk) Sweep(limit int) (int, int64, error) {
	chunks, bytes, err := w.Store.Sweep(limit)
	w.swept = chunks == 0
	return chunks, bytes, err
}

func (w *walk) until(reached func() bool) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { _, ok := w.names.NamesComplete(); return ok }, electionWait, time.Millisecond)
	for !reached() {
		w.clock.Advance(w.scrubber.Step(w.t.Context()))
	}
}

// round does a whole round.
func (w *walk) round() {
	w.until(func() bool { return !w.swept })
	w.until(func() bool { return w.swept })
}

// A replica that was lost and rebuilt names other chunks than before: a walk over the names that began
// before it does not count, even if nothing is missing at its end.
func TestNamesOfARebuiltReplica(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), nil)
		s.write(0, 20, "a")
		s.same()
		id := s.follower()
		n := s.Node(id)
		names := n.ScrubOptions().Node
		complete := func() (version uint64) {
			t.Helper()
			require.Eventually(t, func() (ok bool) {
				version, ok = names.NamesComplete()
				return ok
			}, electionWait, time.Millisecond)
			return version
		}
		before := complete()
		old := s.replicaOf(id)
		require.NoError(t, n.Work(t.Context(), func() (refusal, failure error) {
			n.Range(testRange).Replica().Lose(errors.New("a test says so"))
			return nil, nil
		}))
		require.Eventually(t, func() bool { return s.replicaOf(id) > old }, 3*electionWait, time.Millisecond)
		s.same()
		require.Greater(t, complete(), before)
	})
}
