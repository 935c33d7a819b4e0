package extent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/rawtest"
)

func newRNG(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// put chunk with its bytes, and whether a Sync after it returned.
type kept struct {
	data   []byte
	synced bool
}

// crashRun writes, syncs, deletes and crashes; each crash loses a random part of
// what was not synced, from nothing to everything.
type crashRun struct {
	t      *testing.T
	rng    *rand.Rand
	source *rand.ChaCha8
	opts   Options
	fs     *rawtest.Disk
	s      *Store
	chunks map[Ref]kept
	dead   map[Ref][]byte
	// directs counts the writes past the page cache.
	directs int
}

// crashed is the disk after a crash that keeps a part of what was not synced.
func crashed(t require.TestingT, d *rawtest.Disk, percent int, rng *rand.Rand) *rawtest.Disk {
	after, err := d.Crash(percent, rng)
	require.NoError(t, err)
	return after
}

func (c *crashRun) step() {
	switch n := c.rng.IntN(10); {
	case n < 6:
		ref, data := put(c.t, c.s, c.source, 1+c.rng.IntN(12<<10))
		c.chunks[ref] = kept{data: data}
	case n < 8:
		mustSync(c.t, c.s)
		for ref, k := range c.chunks {
			c.chunks[ref] = kept{k.data, true}
		}
	case n == 8:
		_, err := c.s.Compact(context.Background())
		require.NoError(c.t, err)
		_, err = c.s.Scrub(context.Background())
		require.True(c.t, err == nil || errors.Is(err, io.EOF), "%v", err)
	default:
		refs := slices.SortedFunc(maps.Keys(c.chunks), func(a, b Ref) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		if len(refs) == 0 {
			return
		}
		ref := refs[c.rng.IntN(len(refs))]
		require.NoError(c.t, c.s.Delete(ref.ID))
		c.dead[ref] = c.chunks[ref].data
		delete(c.chunks, ref)
	}
}

func (c *crashRun) crash() {
	percent := []int{0, 20, 50, 80, 100}[c.rng.IntN(5)]
	after := crashed(c.t, c.fs, percent, c.rng)
	require.NoError(c.t, c.s.Close())
	c.directs += c.fs.Directs
	c.fs = after
	c.s = open(c.t, c.fs, c.opts)
}

// check holds the reopened store against what the writer knows, and then takes what
// it found for the new truth.
func (c *crashRun) check() {
	t := c.t
	for ref, k := range c.chunks {
		if k.synced {
			require.True(t, c.s.Durable(ref.ID), "synced chunk %s is not durable", ref)
			requireHolds(t, c.s, ref, k.data)
		}
	}
	survivors := map[Ref]kept{}
	for _, ref := range c.s.Refs() {
		data := c.chunks[ref].data
		if data == nil {
			data = c.dead[ref]
		}
		require.NotNil(t, data, "chunk %s was never put", ref)
		requireHolds(t, c.s, ref, data)
		require.True(t, c.s.Durable(ref.ID))
		survivors[ref] = kept{data, true}
	}
	require.Zero(t, c.s.Stats().Damaged)
	require.Zero(t, c.s.Stats().LostBytes)
	c.chunks = survivors
}

// Every chunk for which Sync returned is intact and readable after any crash of the
// file system, and what Open shows is durable: it survives the next crash too,
// though that one loses all that is not synced (R3). Chunks of pages are written past the
// page cache, as on Linux, into room that was taken ahead, and torn by sectors; or through
// it, where the disk refuses that.
// It holds invariant 6.
//
// Capability: Storage on a node: Extents with O_DIRECT, page-aligned buffers, recycled files.
func TestSyncedChunksSurviveCrashes(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 10
	}
	directs := 0
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := newRNG(seed)
			c := crashRun{
				t: t, rng: rng, source: newSource(seed), fs: rawtest.New(),
				opts: Options{
					SliceBytes: 512 << rng.IntN(4), ExtentBytesMax: 64 << 10, PagedBytesMin: 2 << 10 << rng.IntN(4),
					GarbagePercent: 1 + rng.IntN(60), Rand: newSource(seed + 1000),
				},
				chunks: map[Ref]kept{}, dead: map[Ref][]byte{},
			}
			c.fs.Refuses = seed%4 == 3
			c.s = open(t, c.fs, c.opts)
			for range 8 {
				for range rng.IntN(25) {
					c.step()
				}
				c.crash()
				c.check()
			}
			directs += c.directs
			require.True(t, !c.fs.Refuses || c.directs == 0)
		})
	}
	require.Greater(t, directs, 10*int(seeds))
}

// A crash between Open and the first write loses nothing that Open called durable:
// what no record vouched for was copied and synced, not only read.
func TestOpenMakesDurableWhatItFinds(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := open(t, fs, Options{})
	ref, data := put(t, s, newSource(1), 9<<10)
	killed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRNG(1)})
	s = open(t, killed, Options{SparesMax: -1})
	require.True(t, s.Durable(ref.ID))
	path, _ := place(t, s, ref)
	require.Equal(t, "extents/000002.ext", path)
	require.NotContains(t, dump(t, killed), "000001.ext")

	s = open(t, killed.CrashClone(vfs.CrashCloneCfg{}), Options{})
	require.True(t, s.Durable(ref.ID))
	requireHolds(t, s, ref, data)
}

// A restart after a clean Close copies nothing and makes no file.
func TestCleanRestartWritesNothing(t *testing.T) {
	fs, source := vfs.NewMem(), newSource(1)
	s := open(t, fs, Options{ExtentBytesMax: 20 << 10})
	for range 10 {
		put(t, s, source, 9<<10)
	}
	require.NoError(t, s.Close())
	before := dump(t, fs)
	s = open(t, fs, Options{})
	require.NoError(t, s.Close())
	require.Equal(t, before, dump(t, fs))
}

// A torn tail is left out and its chunk is ErrNotFound, wherever the tear is; the
// chunks before it stay, and the next chunk goes to a new extent.
// It holds invariant 5.
func TestTornTail(t *testing.T) {
	fs, source := vfs.NewMem(), newSource(1)
	s := open(t, fs, Options{SliceBytes: 512})
	a, dataA := put(t, s, source, 3000)
	mustSync(t, s)
	b, _ := put(t, s, source, 3000)
	_, off := place(t, s, b)
	whole := dump(t, fs)["000001.ext"]
	require.Equal(t, int64(len(whole)), off+chunkRoom(3000, Options{SliceBytes: 512}))
	for cut := off + recordBytes; cut < int64(len(whole)); cut += 61 {
		torn := vfs.NewMem()
		writeExtent(t, torn, []byte(whole[:cut]))
		s := open(t, torn, Options{})
		requireHolds(t, s, a, dataA)
		_, err := s.Read(b, 0, make([]byte, 1))
		require.ErrorIs(t, err, ErrNotFound, "cut at %d", cut)
		require.Equal(t, Stats{Chunks: 1, Bytes: 3000, Extents: 1, FileBytes: cut}, s.Stats())
		c, _ := put(t, s, source, 100)
		next, _ := place(t, s, c)
		require.Equal(t, "extents/000002.ext", next)
		require.NoError(t, s.Close())
	}
}

// A header vouches only for what an fdatasync covered: a chunk put while that ran is
// not among it, and when its bytes are then torn it is left out, not taken for sound.
//
// Capability: Storage on a node: Extents with O_DIRECT, page-aligned buffers, recycled files.
func TestHeaderVouchesOnlyForWhatWasSynced(t *testing.T) {
	mem, source := vfs.NewCrashableMem(), newSource(1)
	var during func()
	s := open(t, beforeSyncData(mem, &during), Options{})
	a, dataA := put(t, s, source, 3000)
	var b Ref
	during = func() { b, _ = put(t, s, source, 3000) }
	mustSync(t, s)
	require.True(t, s.Durable(a.ID))
	require.False(t, s.Durable(b.ID))
	path, off := place(t, s, b)
	c, dataC := put(t, s, source, 3000)
	killed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRNG(1)})
	flip(t, killed, path, off+3*recordBytes)

	s = open(t, killed, Options{})
	inOld, _ := place(t, s, a)
	require.Equal(t, path, inOld, "the header of the last chunk vouches for the first")
	requireHolds(t, s, a, dataA)
	requireHolds(t, s, c, dataC)
	require.False(t, s.Durable(b.ID))
	_, err := s.Read(b, 0, make([]byte, 1))
	require.ErrorIs(t, err, ErrNotFound)
}

// Records that another life of the file name left in its blocks are not taken for
// records of this one, whole as they are.
//
// Capability: Storage on a node: Extents with O_DIRECT, page-aligned buffers, recycled files.
func TestLeftoversOfAnotherIncarnation(t *testing.T) {
	image := func(inc, seed uint64) (string, [2]Ref) {
		fs, source := vfs.NewMem(), newSource(seed)
		s := open(t, fs, Options{Rand: newSource(inc)})
		a, _ := put(t, s, source, 3000)
		b, _ := put(t, s, source, 3000)
		require.NoError(t, s.Close())
		return dump(t, fs)["000001.ext"], [2]Ref{a, b}
	}
	now, refs := image(1, 1)
	then, old := image(2, 2)
	cut := pageBytes + chunkRoom(3000, Options{})
	fs := vfs.NewMem()
	writeExtent(t, fs, []byte(now[:cut]+then[cut:]))
	s := open(t, fs, Options{})
	require.Equal(t, []Ref{refs[0]}, s.Refs())
	require.False(t, s.Durable(old[1].ID))
}
