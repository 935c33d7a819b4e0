package outbox

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/state"
)

// counter is a kv.Reader that counts what is read through it.
type counter struct {
	kv.Reader
	keys, bytes int
}

func (c *counter) Get(key []byte) ([]byte, bool, error) {
	v, ok, err := c.Reader.Get(key)
	c.keys, c.bytes = c.keys+1, c.bytes+len(v)
	return v, ok, err
}

func (c *counter) Scan(lower, upper []byte) (kv.Iterator, error) {
	it, err := c.Reader.Scan(lower, upper)
	return &countedIterator{it, c}, err
}

type countedIterator struct {
	kv.Iterator
	c *counter
}

func (i *countedIterator) Next() bool {
	i.c.keys++
	return i.Iterator.Next()
}

func (i *countedIterator) SeekGE(key []byte) bool {
	i.c.keys++
	return i.Iterator.SeekGE(key)
}

func (i *countedIterator) Value() []byte {
	v := i.Iterator.Value()
	i.c.bytes += len(v)
	return v
}

func laneStream(lane int) geo.Stream {
	return geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: testRange, Lane: geo.Lane(lane)}
}

// fill puts n records into the outbox of a store, and makes all of it durable.
func fill(t require.TestingT, store *state.Store, n int) {
	o, err := Open(testRange, store)
	require.NoError(t, err)
	value := make([]byte, 40)
	for i := 0; i < n; {
		b := store.NewBatch()
		for end := min(n, i+10_000); i < end; i++ {
			s := laneStream(i % geo.LaneCount)
			rec := change.Record{
				Epoch: s.Epoch, Range: s.Range, Lane: s.Lane, Service: geo.Table, Account: s.Account,
				Seq: o.Head(s).Seq + 1, Prev: o.Head(s).Hash, CommitTime: geo.Timestamp(i + 1),
				Partition: []byte("p"), Ops: []change.Op{{Row: []byte("r"), Value: value}},
			}
			encoded, err := change.AppendRecord(nil, &rec)
			require.NoError(t, err)
			_, err = o.ApplyRecord(&rec, encoded)
			require.NoError(t, err)
		}
		require.NoError(t, o.Finish(b))
		require.NoError(t, store.Commit(b))
		require.NoError(t, b.Close())
	}
	require.NoError(t, store.Flush())
}

// Opening an outbox reads two rows for each stream, two of the range and no record, however many records wait; what
// it then reports to wait is right.
//
// Capability: Two locations: The outbox has no memory for a record, opens without reading one, and trims 10,000 rows
// at most.
func TestOpenReadsNoRecord(t *testing.T) {
	for _, n := range []int{32, 100_000} {
		store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
		require.NoError(t, err)
		fill(t, store, n)
		c := &counter{Reader: store}
		o, err := Open(testRange, c)
		require.NoError(t, err)
		require.Equal(t, 2+(geo.LaneCount+1)+1, c.keys, "%d records", n)
		require.Equal(t, 33*geo.LaneCount, c.bytes, "%d records", n)
		b, oldest := o.Backlog()
		require.EqualValues(t, n, b.Records)
		require.Len(t, oldest, geo.LaneCount)
		at, err := Oldest(store, oldest)
		require.NoError(t, err)
		require.EqualValues(t, 1, at)
		var bytes int64
		require.NoError(t, keys.Each(store, keys.OutboxAll(testRange), func(_, v []byte) error {
			bytes += int64(len(v) - 16)
			return nil
		}))
		require.Equal(t, bytes, b.Bytes)
		require.NoError(t, store.Close())
	}
}

// R18: the heads alone give what waits, of all and of each copy, payload included. A scan of the rows
// finds the same, after any records and trims and with restarts between (property, against a scan).
func TestR18BacklogIsWhatRowsHold(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := &rig{t: t, fs: vfs.NewMem()}
		r.open()
		for range 200 {
			s := laneStream(rng.IntN(2))
			s.Account = [...]geo.Account{"acct", "other"}[rng.IntN(2)]
			s.Epoch.Number += geo.EpochNumber(rng.IntN(2))
			trimmed, head := r.o.Ends(s)
			switch k := rng.IntN(10); {
			case k == 0:
				require.NoError(t, r.store.Flush())
				require.NoError(t, r.store.Close())
				r.open()
			case k < 4:
				n := trimmed.Seq + geo.Seq(rng.IntN(int(head.Seq-trimmed.Seq)+1))
				require.NoError(t, r.trim(s, n))
			default:
				rec := change.Record{
					Epoch: s.Epoch, Range: s.Range, Lane: s.Lane, Service: geo.Table, Account: s.Account,
					Seq: head.Seq + 1, Prev: head.Hash, CommitTime: 9, Partition: []byte("p"),
					Ops:    []change.Op{{Row: []byte("r"), Value: make([]byte, rng.IntN(300))}},
					Chunks: make([]extent.Ref, rng.IntN(3)),
				}
				for i := range rec.Chunks {
					rec.Chunks[i] = extent.Ref{ID: extent.ChunkID{byte(i)}, Length: 1 + uint32(rng.IntN(1<<20))}
				}
				encoded, err := change.AppendRecord(nil, &rec)
				require.NoError(t, err)
				require.NoError(t, r.apply(func(Writer) error {
					_, err := r.o.ApplyRecord(&rec, encoded)
					return err
				}))
			}
			requireScanned(t, r)
		}
		require.NoError(t, r.store.Close())
	}
}

// requireScanned compares what an outbox reports to wait with a scan of its rows.
func requireScanned(t *testing.T, r *rig) {
	var all Backlog
	of := map[Copy]Backlog{}
	streams := map[geo.Stream]bool{}
	require.NoError(t, keys.EachStream(r.store, keys.OutboxAll(testRange), func(s geo.Stream, v []byte) error {
		_, encoded, err := change.ParseOutboxRow(v)
		require.NoError(t, err)
		rec, err := change.ParseRecord(encoded)
		require.NoError(t, err)
		b := of[copyOf(s)]
		for _, to := range []*Backlog{&all, &b} {
			to.Records++
			to.Bytes += int64(len(encoded))
			for _, ref := range rec.Chunks {
				to.Payload += int64(ref.Length)
			}
		}
		of[copyOf(s)], streams[s] = b, true
		return nil
	}))
	got, oldest := r.o.Backlog()
	require.Equal(t, all, got)
	require.Len(t, oldest, len(streams))
	require.Equal(t, of, r.o.Backlogs())
	firsts := 0
	for a, list := range r.o.Firsts() {
		require.Contains(t, of, a)
		firsts += len(list)
	}
	require.Equal(t, len(streams), firsts)
	requireIndexed(t, r.o)
}

// requireIndexed compares the streams of each account with a walk over all.
func requireIndexed(t *testing.T, o *Outbox) {
	t.Helper()
	want := map[geo.Account]map[geo.Stream]struct{}{}
	for s := range o.heads {
		if want[s.Account] == nil {
			want[s.Account] = map[geo.Stream]struct{}{}
		}
		want[s.Account][s] = struct{}{}
	}
	require.Equal(t, want, o.accounts)
	for a, streams := range want {
		require.Len(t, o.Of(a), len(streams))
	}
	require.Empty(t, o.Of("nobody"))
}

// BenchmarkOpen opens outboxes of different length: the time does not depend on it.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
			require.NoError(b, err)
			defer func() { require.NoError(b, store.Close()) }()
			fill(b, store, n)
			for b.Loop() {
				_, err := Open(testRange, store)
				require.NoError(b, err)
			}
		})
	}
}

// A long run of rows is deleted as a range and a short one row by row: both leave what a scan of
// the rows expects, also where the one follows the other, and across a restart.
//
// Capability: Two locations: The outbox has no memory for a record, opens without reading one, and trims 10,000 rows
// at most.
func TestTrimOfLongAndShortRuns(t *testing.T) {
	r := &rig{t: t, fs: vfs.NewMem()}
	r.open()
	defer func() { require.NoError(t, r.store.Close()) }()
	fill(t, r.store, 4*rangeRowsMin*geo.LaneCount)
	var err error
	r.o, err = Open(testRange, r.store)
	require.NoError(t, err)
	s := laneStream(5)
	for _, n := range []geo.Seq{7, 7 + rangeRowsMin - 1, 7 + 2*rangeRowsMin, 4*rangeRowsMin - 3, 4 * rangeRowsMin} {
		require.NoError(t, r.trim(s, n))
		if n == 4*rangeRowsMin-3 {
			require.NoError(t, r.store.Flush())
			require.NoError(t, r.store.Close())
			r.open()
		}
		found, err := Read(r.store, testRange, s, n+1, 1<<30)
		require.NoError(t, err)
		require.Len(t, found, 4*rangeRowsMin-int(n))
		rows := 0
		require.NoError(t, keys.EachStream(r.store, keys.OutboxAll(testRange), func(at geo.Stream, _ []byte) error {
			if at == s {
				rows++
			}
			return nil
		}))
		require.Equal(t, len(found), rows, "after a trim to %d", n)
		other, err := Read(r.store, testRange, laneStream(6), 1, 1<<30)
		require.NoError(t, err)
		require.Len(t, other, 4*rangeRowsMin, "the next stream stays whole")
	}
}

// BenchmarkTrim deletes the most rows that a group may: of one stream, and of all.
func BenchmarkTrim(b *testing.B) {
	for _, lanes := range []int{1, geo.LaneCount} {
		b.Run(fmt.Sprintf("streams=%d", lanes), func(b *testing.B) { benchmarkTrim(b, lanes) })
	}
}

func benchmarkTrim(b *testing.B, lanes int) {
	store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
	require.NoError(b, err)
	defer func() { require.NoError(b, store.Close()) }()
	for b.Loop() {
		b.StopTimer()
		fill(b, store, TrimRowsMax*geo.LaneCount/lanes)
		o, err := Open(testRange, store)
		require.NoError(b, err)
		b.StartTimer()
		batch := store.NewBatch()
		for lane := range lanes {
			s := laneStream(lane)
			_, head := o.Ends(s)
			require.NoError(b, o.ApplyTrim(batch, s, head))
		}
		require.NoError(b, store.Commit(batch))
		require.NoError(b, batch.Close())
	}
	b.ReportMetric(float64(b.N)*TrimRowsMax/b.Elapsed().Seconds(), "rows/s")
}

// Records that are numbered and trimmed in one batch leave no row, and those behind them do.
func TestTrimOfRecordsOfTheSameBatch(t *testing.T) {
	r := &rig{t: t, fs: vfs.NewMem()}
	r.open()
	s := laneStream(1)
	require.NoError(t, r.apply(func(w Writer) error {
		var at change.OutboxHead
		for n := range geo.Seq(5) {
			_, head := r.o.Ends(s)
			rec := change.Record{
				Epoch: s.Epoch, Range: s.Range, Lane: s.Lane, Service: geo.Table, Account: s.Account,
				Seq: n + 1, Prev: head.Hash, CommitTime: 9, Partition: []byte("p"),
			}
			encoded, err := change.AppendRecord(nil, &rec)
			require.NoError(t, err)
			_, err = r.o.ApplyRecord(&rec, encoded)
			require.NoError(t, err)
			if n == 2 {
				_, at = r.o.Ends(s)
			}
		}
		return r.o.ApplyTrim(w, s, at)
	}))
	requireScanned(t, r)
	rows, err := Read(r.store, testRange, s, 4, 1<<20)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	for n := range geo.Seq(3) {
		_, found, err := r.store.Get(keys.Outbox(testRange, s, n+1))
		require.NoError(t, err)
		require.False(t, found)
	}
	require.NoError(t, r.store.Close())
}
