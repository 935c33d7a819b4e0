package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openState(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open("state", Options{FS: fs, StateMemTableBytes: 64 << 10})
	require.NoError(t, err)
	return s
}

// write commits one batch.
func write(t *testing.T, s *Store, f func(b *Batch) error) {
	t.Helper()
	b := s.NewBatch()
	require.NoError(t, f(b))
	require.NoError(t, s.Commit(b))
	require.NoError(t, b.Close())
}

func set(key, value string) func(b *Batch) error {
	return func(b *Batch) error { return b.Set([]byte(key), []byte(value)) }
}

const absent = "absent"

func value(v []byte, ok bool, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case !ok:
		return absent
	}
	return string(v)
}

// requireState checks a key in the newest state and in what a crash would leave.
func requireState(t *testing.T, s *Store, key, newest, durable string) {
	t.Helper()
	require.Equal(t, newest, value(s.Get([]byte(key))), "newest")
	require.Equal(t, durable, value(s.GetDurable([]byte(key))), "durable")
}

// GetDurable shows flushed data and nothing newer, for sets, overwrites and deletions,
// and for its key alone: the applied index it reads is what a crash leaves (DESIGN
// section 4; steps).
func TestGetDurable(t *testing.T) {
	fs := vfs.NewMem()
	s := openState(t, fs)
	requireState(t, s, "k", absent, absent)
	write(t, s, set("k", "1"))
	requireState(t, s, "k", "1", absent)
	require.NoError(t, s.Flush())
	requireState(t, s, "k", "1", "1")
	write(t, s, set("k", "2"))
	write(t, s, set("k\x00", "longer"))
	requireState(t, s, "k", "2", "1")
	done, err := s.AsyncFlush()
	require.NoError(t, err)
	<-done
	requireState(t, s, "k", "2", "2")
	write(t, s, func(b *Batch) error { return b.Delete([]byte("k")) })
	requireState(t, s, "k", absent, "2")
	require.NoError(t, s.Flush())
	requireState(t, s, "k", absent, absent)
	requireState(t, s, "k\x00", "longer", "longer")
	write(t, s, set("empty", ""))
	require.NoError(t, s.Flush())
	requireState(t, s, "empty", "", "")
	require.NoError(t, s.Close())
}

// A store closed or killed without a flush loses what was not flushed, back to the
// last flush and no further (DESIGN section 4; steps).
func TestReopenWithoutFlush(t *testing.T) {
	fs := vfs.NewMem()
	s := openState(t, fs)
	write(t, s, set("applied", "1"))
	require.NoError(t, s.Flush())
	write(t, s, func(b *Batch) error {
		require.NoError(t, b.Set([]byte("applied"), []byte("2")))
		return b.Set([]byte("data"), []byte("of 2"))
	})
	require.NoError(t, s.Close())
	s = openState(t, fs)
	requireState(t, s, "applied", "1", "1")
	requireState(t, s, "data", absent, absent)
	require.NoError(t, s.Close())
}

// A key set once and then single-deleted is gone, before a flush and after, over
// reopening, and may be set once again (the outbox of DESIGN 2.4; steps).
func TestSingleDelete(t *testing.T) {
	fs := vfs.NewMem()
	s := openState(t, fs)
	drop := func(b *Batch) error { return b.SingleDelete([]byte("k")) }
	for range 3 { // Set and deletion meet in memory.
		write(t, s, set("k", "1"))
		requireState(t, s, "k", "1", absent)
		write(t, s, drop)
		requireState(t, s, "k", absent, absent)
	}
	require.NoError(t, s.Flush())
	requireState(t, s, "k", absent, absent)
	for range 3 { // The set is on disk already.
		write(t, s, set("k", "2"))
		require.NoError(t, s.Flush())
		requireState(t, s, "k", "2", "2")
		write(t, s, drop)
		requireState(t, s, "k", absent, "2")
		require.NoError(t, s.Flush())
		requireState(t, s, "k", absent, absent)
	}
	write(t, s, func(b *Batch) error { // Both in one batch.
		require.NoError(t, b.Set([]byte("k"), []byte("3")))
		return drop(b)
	})
	require.NoError(t, s.Flush())
	require.NoError(t, s.Close())
	s = openState(t, fs)
	requireState(t, s, "k", absent, absent)
	require.NoError(t, s.Close())
}

// A batch that was not committed leaves nothing; a snapshot and an iterator see one
// moment and their bounds alone, whatever is written meanwhile (invariant of kv).
func TestSnapshotSeesOneMoment(t *testing.T) {
	s := openState(t, vfs.NewMem())
	b := s.NewBatch()
	require.NoError(t, b.Set([]byte("a"), []byte("never")))
	require.NoError(t, b.Close())
	for _, k := range []string{"a", "b", "c", "d"} {
		write(t, s, set(k, "1"))
	}
	snap := s.NewSnapshot()
	it, err := s.Scan([]byte("b"), []byte("d"))
	require.NoError(t, err)
	write(t, s, set("b", "2"))
	write(t, s, set("bb", "2"))
	require.NoError(t, s.Flush())

	require.Equal(t, "1", value(snap.Get([]byte("b"))))
	require.Equal(t, absent, value(snap.Get([]byte("bb"))))
	var got []string
	for it.Next() {
		got = append(got, string(it.Key())+string(it.Value()))
	}
	require.Equal(t, []string{"b1", "c1"}, got)
	require.True(t, it.SeekGE([]byte("bb")))
	require.Equal(t, "c", string(it.Key()))
	require.False(t, it.Next())
	require.False(t, it.SeekGE([]byte("cc")))
	require.NoError(t, it.Close())

	it, err = snap.Scan([]byte("b"), []byte("z"))
	require.NoError(t, err)
	require.True(t, it.SeekGE([]byte("bb")))
	require.Equal(t, "c", string(it.Key()))
	require.True(t, it.Next())
	require.Equal(t, "d", string(it.Key()))
	require.NoError(t, it.Close())
	require.NoError(t, snap.Close())
	require.NoError(t, s.Close())
}

// Read-only opening needs a store that is there, shows its durable state, and changes
// no file.
func TestReadOnly(t *testing.T) {
	fs := vfs.NewMem()
	_, err := Open("state", Options{FS: fs, ReadOnly: true})
	require.Error(t, err)
	s := openState(t, fs)
	write(t, s, set("k", "1"))
	require.NoError(t, s.Flush())
	require.NoError(t, s.Close())
	before, err := fs.List("state")
	require.NoError(t, err)

	shared := NewShared(1<<20, 100)
	s, err = Open("state", Options{FS: fs, ReadOnly: true, Shared: shared})
	require.NoError(t, err)
	requireState(t, s, "k", "1", "1")
	b := s.NewBatch()
	require.NoError(t, b.Set([]byte("k"), []byte("2")))
	require.Error(t, s.Commit(b))
	require.NoError(t, b.Close())
	require.NoError(t, s.Close())
	shared.Close()
	after, err := fs.List("state")
	require.NoError(t, err)
	require.ElementsMatch(t, before, after)
}

// history is a made-up log: entry i sets the applied index, some rows and one outbox
// record, and deletes the outbox record of entry i-outboxLag. It is the same at every
// replay, as apply is.
type history struct{ seed uint64 }

const (
	outboxLag = 7
	rowCount  = 40
)

func (h history) ops(i uint64) (rows map[string]string, deleted string) {
	rng := rand.New(rand.NewPCG(h.seed, i))
	rows = map[string]string{}
	for range 3 {
		rows[fmt.Sprintf("row%02d", rng.IntN(rowCount))] = fmt.Sprintf("%d:%0*d", i, rng.IntN(2000), 0)
	}
	return rows, fmt.Sprintf("row%02d", rng.IntN(rowCount))
}

func outboxKey(i uint64) []byte { return binary.BigEndian.AppendUint64([]byte("outbox"), i) }

func (h history) apply(b *Batch, i uint64) error {
	rows, deleted := h.ops(i)
	for k, v := range rows {
		if err := b.Set([]byte(k), []byte(v)); err != nil {
			return err
		}
	}
	if err := b.Delete([]byte(deleted)); err != nil {
		return err
	}
	if err := b.Set(outboxKey(i), []byte("record")); err != nil {
		return err
	}
	if i > outboxLag {
		if err := b.SingleDelete(outboxKey(i - outboxLag)); err != nil {
			return err
		}
	}
	return b.Set([]byte("applied"), binary.BigEndian.AppendUint64(nil, i))
}

// stateAt is what the store must hold after entry i, and nothing else.
func (h history) stateAt(i uint64) map[string]string {
	m := map[string]string{}
	for n := uint64(1); n <= i; n++ {
		rows, deleted := h.ops(n)
		for k, v := range rows {
			m[k] = v
		}
		delete(m, deleted)
		if n+outboxLag > i {
			m[string(outboxKey(n))] = "record"
		}
		m["applied"] = string(binary.BigEndian.AppendUint64(nil, n))
	}
	return m
}

func dump(t *testing.T, s *Store) map[string]string {
	t.Helper()
	it, err := s.Scan(nil, nil)
	require.NoError(t, err)
	m := map[string]string{}
	for it.Next() {
		m[string(it.Key())] = string(it.Value())
	}
	require.NoError(t, it.Close())
	return m
}

func appliedIndex(v []byte, ok bool, err error) uint64 {
	if err != nil || !ok {
		return 0
	}
	return binary.BigEndian.Uint64(v)
}

// After a crash the state is exactly the state as of one applied index: at least what
// GetDurable had shown, at most what was applied; replay from there makes it whole
// again, outbox and single deletions included (invariant 6; over seeds, three crashes
// each).
func TestStateCrash(t *testing.T) {
	for _, percent := range []int{0, 50} {
		for seed := range uint64(6) {
			crashState(t, percent, history{seed}, rand.New(rand.NewPCG(seed, uint64(percent))))
		}
	}
}

func crashState(t *testing.T, percent int, h history, rng *rand.Rand) {
	fs := vfs.NewCrashableMem()
	var applied uint64
	for range 3 {
		s := openState(t, fs)
		target := applied + 50 + rng.Uint64N(100)
		for i := appliedIndex(s.Get([]byte("applied"))) + 1; i <= target; i++ {
			write(t, s, func(b *Batch) error { return h.apply(b, i) })
			if rng.IntN(40) == 0 {
				_, err := s.AsyncFlush()
				require.NoError(t, err)
			}
			if rng.IntN(60) == 0 {
				require.NoError(t, s.Flush())
			}
		}
		applied = target
		require.Equal(t, h.stateAt(applied), dump(t, s))
		durable := appliedIndex(s.GetDurable([]byte("applied")))
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
		require.NoError(t, s.Close())
		fs = crashed

		s = openState(t, fs)
		at := appliedIndex(s.Get([]byte("applied")))
		require.GreaterOrEqual(t, at, durable)
		require.LessOrEqual(t, at, applied)
		require.Equal(t, at, appliedIndex(s.GetDurable([]byte("applied"))))
		require.Equal(t, h.stateAt(at), dump(t, s))
		require.NoError(t, s.Close())
	}
}

// A store that is read after its end answers ErrClosed, and its end waits for open
// iterators and snapshots: readers hold ranges of nodes that others stop, and Pebble
// would panic (steps).
func TestReadAfterClose(t *testing.T) {
	s := openState(t, vfs.NewMem())
	write(t, s, set("k", "1"))
	it, err := s.Scan([]byte("a"), []byte("z"))
	require.NoError(t, err)
	snap := s.NewSnapshot()
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()

	require.Eventually(t, func() bool {
		_, _, err := s.Get([]byte("k"))
		return errors.Is(err, ErrClosed)
	}, 10*time.Second, time.Millisecond)
	require.False(t, it.Next(), "scans end, however much they had to go")
	require.False(t, it.SeekGE([]byte("k")))
	_, _, err = snap.Get([]byte("k"))
	require.ErrorIs(t, err, ErrClosed)
	_, err = snap.Scan([]byte("a"), []byte("z"))
	require.ErrorIs(t, err, ErrClosed)
	require.Empty(t, closed, "waits for readers")
	require.ErrorIs(t, it.Close(), ErrClosed)
	require.NoError(t, snap.Close())
	require.NoError(t, <-closed)

	_, err = s.Scan([]byte("a"), []byte("z"))
	require.ErrorIs(t, err, ErrClosed)
	_, _, err = s.GetDurable([]byte("k"))
	require.ErrorIs(t, err, ErrClosed)
	late := s.NewSnapshot()
	_, _, err = late.Get([]byte("k"))
	require.ErrorIs(t, err, ErrClosed)
	_, err = late.Scan([]byte("a"), []byte("z"))
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, late.Close())
}

// ScanDurable sees what a crash would leave: not what was set since the last flush, but
// what was deleted since.
func TestScanDurable(t *testing.T) {
	s := openState(t, vfs.NewMem())
	defer func() { require.NoError(t, s.Close()) }()
	write(t, s, set("a", "1"))
	write(t, s, set("b", "2"))
	require.NoError(t, s.Flush())
	write(t, s, set("c", "3"))
	write(t, s, func(b *Batch) error { return b.Delete([]byte("a")) })
	it, err := s.ScanDurable([]byte("a"), []byte("d"))
	require.NoError(t, err)
	var found []string
	for it.Next() {
		found = append(found, string(it.Key())+"="+string(it.Value()))
	}
	require.NoError(t, it.Close())
	require.Equal(t, []string{"a=1", "b=2"}, found)
}
