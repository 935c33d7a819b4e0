package extent

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// Callers of Sync that come while an fdatasync runs share one more, however many
// they are, and each finds its own chunk durable.
func TestSyncIsGrouped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var syncs atomic.Int32
		gate := make(chan struct{})
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileSyncData && syncs.Add(1) == 1 {
				<-gate
			}
			return nil
		}))
		s := open(t, fs, Options{})
		source := newSource(1)
		first, _ := put(t, s, source, 100)
		var group sync.WaitGroup
		group.Go(func() { mustSync(t, s) })
		synctest.Wait() // the first fdatasync stands at the gate
		for range 32 {
			ref, data := newChunk(source, 100)
			group.Go(func() {
				require.NoError(t, s.Put(ref, data)) // does not wait for the fdatasync
				require.NoError(t, s.Sync(context.Background()))
				require.True(t, s.Durable(ref.ID))
			})
		}
		synctest.Wait()
		require.False(t, s.Durable(first.ID))
		close(gate)
		group.Wait()
		require.True(t, s.Durable(first.ID))
		require.EqualValues(t, 2, syncs.Load())
		mustSync(t, s)
		require.EqualValues(t, 2, syncs.Load(), "nothing new, so nothing to sync")
	})
}

// A caller whose context ends does not wait for an fdatasync of another.
func TestSyncEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileSyncData {
				<-gate
			}
			return nil
		}))
		s := open(t, fs, Options{})
		ref, _ := put(t, s, newSource(1), 100)
		var group sync.WaitGroup
		group.Go(func() { mustSync(t, s) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		group.Go(func() { require.ErrorIs(t, s.Sync(ctx), context.Canceled) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.False(t, s.Durable(ref.ID))
		close(gate)
		group.Wait()
	})
}

// Puts, syncs, reads and deletes from many goroutines keep every promise (under
// the race detector), while extents fill, are compacted, dropped and used again.
func TestConcurrent(t *testing.T) {
	fs := vfs.NewCrashableMem()
	opts := Options{ExtentBytesMax: 100 << 10, SliceBytes: 4 << 10, PagedBytesMin: 10 << 10}
	s := open(t, fs, opts)
	var mu sync.Mutex
	synced := map[Ref][]byte{}
	var group sync.WaitGroup
	for worker := range uint64(8) {
		group.Go(func() {
			rng, source := rand.New(rand.NewPCG(worker, 0)), newSource(worker)
			for round := range 30 {
				ref, data := newChunk(source, 1+rng.IntN(20<<10))
				twice := min(len(data), 1+round%2)
				for range twice {
					require.NoError(t, s.Put(ref, data))
				}
				requireHolds(t, s, ref, data)
				if round%5 == 4 {
					_, err := s.Compact(context.Background())
					require.NoError(t, err)
					_, _ = s.Scrub(context.Background())
				}
				if round%3 == 2 {
					require.NoError(t, s.Delete(ref.ID))
					continue
				}
				require.NoError(t, s.Sync(context.Background()))
				require.True(t, s.Durable(ref.ID))
				mu.Lock()
				synced[ref] = data
				mu.Unlock()
				_ = s.Stats()
			}
		})
	}
	group.Wait()
	s = open(t, fs.CrashClone(vfs.CrashCloneCfg{}), opts)
	for ref, data := range synced {
		require.True(t, s.Durable(ref.ID))
		requireHolds(t, s, ref, data)
	}
}

// One chunk put by many at once is written once.
func TestConcurrentPutOfOneChunk(t *testing.T) {
	s := open(t, vfs.NewMem(), Options{})
	ref, data := newChunk(newSource(1), 50<<10)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			require.NoError(t, s.Put(ref, data))
			require.NoError(t, s.Sync(context.Background()))
			require.True(t, s.Durable(ref.ID))
		})
	}
	group.Wait()
	require.Less(t, s.Stats().FileBytes, int64(2*len(data)))
}

var errDisk = errors.New("the disk is gone")

// failing returns a file system on which operations of kind fail once armed is set.
func failing(fs vfs.FS, kind errorfs.OpKind) (vfs.FS, *atomic.Bool) {
	armed := new(atomic.Bool)
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if armed.Load() && op.Kind == kind {
			return errDisk
		}
		return nil
	})), armed
}

// The first failed write or fsync takes the store out of service for good, though
// the disk recovers: every later Put and Sync returns that failure, reads go on, no
// chunk of the failed group is called durable, and a restart shows what was synced.
func TestFailureTakesOutOfService(t *testing.T) {
	for name, kind := range map[string]errorfs.OpKind{
		"write": errorfs.OpFileWriteAt, "fdatasync": errorfs.OpFileSyncData,
		"create": errorfs.OpOpen, "fsync of a new file": errorfs.OpFileSync,
	} {
		t.Run(name, func(t *testing.T) {
			mem, source := vfs.NewCrashableMem(), newSource(1)
			fs, armed := failing(mem, kind)
			s := open(t, fs, Options{ExtentBytesMax: 10 << 10})
			a, dataA := put(t, s, source, 4<<10)
			mustSync(t, s)
			armed.Store(true)
			b, dataB := newChunk(source, 9<<10) // needs the next extent
			err := s.Put(b, dataB)
			if err == nil {
				err = s.Sync(context.Background())
			}
			require.ErrorIs(t, err, ErrFailed)
			require.ErrorIs(t, err, errDisk)
			armed.Store(false)

			c, dataC := newChunk(source, 100)
			require.ErrorIs(t, s.Put(c, dataC), errDisk)
			require.ErrorIs(t, s.Put(a, dataA), errDisk)
			require.ErrorIs(t, s.Sync(context.Background()), errDisk)
			require.True(t, s.Durable(a.ID))
			require.False(t, s.Durable(b.ID))
			requireHolds(t, s, a, dataA)
			require.NoError(t, s.Delete(a.ID))
			require.ErrorIs(t, s.Close(), ErrFailed)

			s = open(t, mem.CrashClone(vfs.CrashCloneCfg{}), Options{})
			require.True(t, s.Durable(a.ID))
			requireHolds(t, s, a, dataA)
			require.False(t, s.Durable(b.ID))
		})
	}
}

// A failed unlink is reported once and takes the store out of service; the chunk is
// dead all the same.
func TestFailedUnlink(t *testing.T) {
	fs, armed := failing(vfs.NewMem(), errorfs.OpRemove)
	s := open(t, fs, Options{ExtentBytesMax: 5 << 10, SparesMax: -1})
	source := newSource(1)
	a, _ := put(t, s, source, 4<<10)
	put(t, s, source, 4<<10)
	armed.Store(true)
	require.ErrorIs(t, s.Delete(a.ID), ErrFailed)
	_, err := s.Read(a, 0, make([]byte, 1))
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorIs(t, s.Sync(context.Background()), ErrFailed)
}

// A slice that cannot be read is damage of its chunk, not of the store.
func TestFailedRead(t *testing.T) {
	fs, armed := failing(vfs.NewMem(), errorfs.OpFileReadAt)
	s := open(t, fs, Options{})
	ref, data := put(t, s, newSource(1), 100)
	mustSync(t, s)
	armed.Store(true)
	_, err := s.Read(ref, 0, make([]byte, 1))
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorIs(t, err, errDisk)
	require.False(t, s.Durable(ref.ID))
	require.NoError(t, s.Put(ref, data))
	armed.Store(false)
	requireHolds(t, s, ref, data)
}

// A disk that does not answer fails Open, which then has removed nothing and holds
// no file.
func TestOpenFails(t *testing.T) {
	kinds := []errorfs.OpKind{
		errorfs.OpList, errorfs.OpOpen, errorfs.OpFileReadAt, errorfs.OpFileStat, errorfs.OpFileSyncData,
		errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpOpenDir, errorfs.OpMkdirAll,
	}
	for _, kind := range kinds {
		mem := vfs.NewCrashableMem()
		s := open(t, mem, Options{})
		ref, data := put(t, s, newSource(1), 5000)
		killed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRNG(1)})
		fs, armed := failing(killed, kind)
		armed.Store(true)
		_, err := Open(fs, testDir, Options{})
		require.ErrorIs(t, err, errDisk, "kind %d", kind)
		requireHolds(t, open(t, killed, Options{}), ref, data)
	}
}
