package state

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// filledRows is how many rows each table of filledState has. For each block that is damaged Pebble searches the bit that was
// flipped, in a time that grows with the square of the block's length.
const filledRows = 60

// filledState returns a store of a few tables, some of whose rows are deleted.
func filledState(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s := openState(t, fs)
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 3 {
		write(t, s, func(b *Batch) error {
			for i := range filledRows {
				v := make([]byte, 100)
				for j := range v {
					v[j] = byte(rng.Uint32())
				}
				if err := b.Set(fmt.Appendf(nil, "k%04d", i*3+round), v); err != nil {
					return err
				}
			}
			return b.Delete(fmt.Appendf(nil, "k%04d", round))
		})
		require.NoError(t, s.Flush())
	}
	return s
}

func verifyAll(t *testing.T, s *Store) error {
	t.Helper()
	tables, err := s.Files()
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	var errs []error
	for _, table := range tables {
		errs = append(errs, s.Verify(table))
	}
	return errors.Join(errs...)
}

// One flipped bit anywhere in a table is found by reading the tables alone, whatever the
// caches hold, and a whole table is not called damaged.
func TestVerifyTableFindsFlips(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, slow under the race detector")
	}
	fs := vfs.NewMem()
	s := filledState(t, fs)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, verifyAll(t, s))
	tables, err := s.Files()
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, table := range tables {
		b, err := fs.UnsafeGetFileDataBuffer(table.Path)
		require.NoError(t, err)
		require.EqualValues(t, table.Bytes, len(b))
		for range 100 {
			at, bit := rng.IntN(len(b)), byte(1)<<rng.IntN(8)
			b[at] ^= bit
			require.ErrorIs(t, s.Verify(table), ErrDamaged, "%s, bit %08b of byte %d of %d", table.Path, bit, at, len(b))
			b[at] ^= bit
			require.NoError(t, s.Verify(table))
		}
	}
	require.NoError(t, s.Failed(), "scrubbing reports and changes nothing")
}

// A table that was compacted away while it was looked at is no damage; one that is gone
// but still wanted is.
func TestVerifyTableThatIsGone(t *testing.T) {
	fs := vfs.NewMem()
	s := filledState(t, fs)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, s.Verify(File{Path: "state/999999.sst"}))
	tables, err := s.Files()
	require.NoError(t, err)
	require.NoError(t, fs.Remove(tables[0].Path))
	require.ErrorIs(t, s.Verify(tables[0]), ErrDamaged)
}

// A read that comes upon a flipped bit returns an error and never the row, and takes the
// store out of service; the process goes on.
func TestReadOfDamagedTable(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, slow under the race detector")
	}
	fs := vfs.NewMem()
	s := filledState(t, fs)
	require.NoError(t, s.Close())
	names, err := fs.List("state")
	require.NoError(t, err)
	for _, name := range names {
		if len(name) == len("000001.sst") && name[len(name)-4:] == ".sst" {
			b, err := fs.UnsafeGetFileDataBuffer("state/" + name)
			require.NoError(t, err)
			b[len(b)/3] ^= 1
		}
	}
	s = openState(t, fs)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, s.Failed())
	failed := 0
	for i := range 3 * filledRows {
		if _, _, err := s.Get(fmt.Appendf(nil, "k%04d", i)); err != nil {
			failed++
		}
	}
	require.NotZero(t, failed)
	require.ErrorIs(t, s.Failed(), ErrDamaged)
}

// A flush that fails takes the store out of service.
func TestFailedFlush(t *testing.T) {
	var broken atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpFileSync {
			return errorfs.ErrInjected
		}
		return nil
	}))
	s := openState(t, fs)
	write(t, s, set("k", "v"))
	broken.Store(true)
	done, err := s.AsyncFlush()
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Failed() != nil }, 10*time.Second, time.Millisecond)
	require.NotErrorIs(t, s.Failed(), ErrDamaged)
	broken.Store(false)
	<-done
	require.NoError(t, s.Close())
}

// A store that was marked is not opened again, but for looking at it.
func TestMarkDamaged(t *testing.T) {
	fs := vfs.NewMem()
	s := filledState(t, fs)
	require.NoError(t, CheckDamaged(fs, "state"))
	require.NoError(t, MarkDamaged(fs, "state", errors.New("a bit turned")))
	require.NoError(t, s.Close())
	_, err := Open("state", Options{FS: fs})
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "a bit turned")
	s, err = Open("state", Options{FS: fs, ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
