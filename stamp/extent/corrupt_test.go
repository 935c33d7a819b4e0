package extent

import (
	"bytes"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/feature"
)

// threeChunks is a store that was closed: chunks a, b, c in one extent.
type threeChunks struct {
	fs   *vfs.MemFS
	refs [3]Ref
	data [3][]byte
	offs [3]int64
	path string
	// room is what each chunk takes, head what is before its payload.
	room, head int64
}

// layouts are the options that put a chunk of 3000 bytes among the small ones and among
// those of whole pages.
var layouts = map[string]Options{"small": {SliceBytes: 512}, "paged": {SliceBytes: 512, PagedBytesMin: 1000}}

// eachLayout runs a test with three chunks of either layout.
func eachLayout(t *testing.T, test func(t *testing.T, fresh func() threeChunks)) {
	for name, opts := range layouts {
		t.Run(name, func(t *testing.T) { test(t, func() threeChunks { return newThreeChunks(t, opts) }) })
	}
}

func newThreeChunks(t *testing.T, opts Options) threeChunks {
	t.Helper()
	c := threeChunks{fs: vfs.NewMem(), room: chunkRoom(3000, opts)}
	c.head = c.room - roundUp(3000+recordBytes, map[bool]int64{false: recordBytes, true: pageBytes}[opts.PagedBytesMin > 0])
	source := newSource(7)
	opts.Rand = newSource(8)
	s := open(t, c.fs, opts)
	for i := range c.refs {
		c.refs[i], c.data[i] = put(t, s, source, 3000)
		c.path, c.offs[i] = place(t, s, c.refs[i])
	}
	require.NoError(t, s.Close())
	return c
}

// A bit flipped anywhere in a synced chunk gives ErrCorrupt for that chunk or no
// harm at all, never other bytes; its neighbours stay readable. The flip is tried
// under an open store and across a restart.
// It holds invariant 5.
//
// Capability: Storage on a node: One flipped bit in log, state or extents.
func TestFlipAnywhere(t *testing.T) { eachLayout(t, testFlipAnywhere) }

func testFlipAnywhere(t *testing.T, fresh func() threeChunks) {
	ref := fresh()
	from, size := ref.offs[1], ref.room
	payload := from + ref.head
	corrupt := 0
	for off := from; off < from+size; off += 7 {
		for _, restart := range []bool{false, true} {
			c := fresh()
			s := open(t, c.fs, Options{})
			if restart {
				require.NoError(t, s.Close())
			}
			flip(t, c.fs, c.path, off)
			if restart {
				s = open(t, c.fs, Options{})
			}
			requireHolds(t, s, c.refs[0], c.data[0])
			requireHolds(t, s, c.refs[2], c.data[2])
			got := make([]byte, 3000)
			n, err := s.Read(c.refs[1], 0, got)
			require.True(t, bytes.Equal(c.data[1][:n], got[:n]), "wrong data after a flip at %d", off)
			inSlices := off >= from+recordBytes && off < from+recordBytes+6*crcBytes || off >= payload && off < payload+3000
			inHeader := restart && off < from+recordBytes
			if !inSlices && !inHeader {
				require.NoError(t, err, "flip at %d", off)
			} else {
				require.ErrorIs(t, err, ErrCorrupt, "flip at %d", off)
				require.Equal(t, 1, s.Stats().Damaged)
				corrupt++
			}
			require.NoError(t, s.Close())
		}
	}
	require.Greater(t, corrupt, 100)
}

// A flipped slice spoils its chunk also for the stream, which returns only what was checked
// before it; from then on the chunk is not durable, Put repairs it, and the repair outlives
// restarts though the old copy is still in its extent.
func TestCorruptChunkIsRepairedByPut(t *testing.T) { eachLayout(t, testCorruptChunkIsRepairedByPut) }

func testCorruptChunkIsRepairedByPut(t *testing.T, fresh func() threeChunks) {
	c := fresh()
	s := open(t, c.fs, Options{})
	flip(t, c.fs, c.path, c.offs[1]+c.head+2*512)
	require.True(t, s.Durable(c.refs[1].ID))
	got, err := io.ReadAll(s.NewReader(c.refs[1], 0, -1))
	require.ErrorIs(t, err, ErrCorrupt)
	require.Equal(t, c.data[1][:1024], got)
	requireCorrupt(t, s, c.refs[1])

	require.NoError(t, s.Put(c.refs[1], c.data[1]))
	requireHolds(t, s, c.refs[1], c.data[1])
	require.Zero(t, s.Stats().Damaged)
	mustSync(t, s)
	require.True(t, s.Durable(c.refs[1].ID))
	for range 2 {
		require.NoError(t, s.Close())
		s = open(t, c.fs, Options{})
		requireHolds(t, s, c.refs[1], c.data[1])
	}
}

// The extent of a damaged chunk is dropped when the repair is durable, not before:
// not by the Sync during which the repair was put either.
func TestRepairFreesTheOldExtent(t *testing.T) {
	c := newThreeChunks(t, layouts["small"])
	var during func()
	s := open(t, beforeSyncData(c.fs, &during), Options{SparesMax: -1})
	flip(t, c.fs, c.path, c.offs[1]+recordBytes)
	requireCorrupt(t, s, c.refs[1])
	require.NoError(t, s.Delete(c.refs[0].ID))
	require.NoError(t, s.Delete(c.refs[2].ID))
	put(t, s, newSource(1), 100)
	during = func() { require.NoError(t, s.Put(c.refs[1], c.data[1])) }
	mustSync(t, s)
	require.False(t, s.Durable(c.refs[1].ID))
	require.Contains(t, dump(t, c.fs), "000001.ext")
	mustSync(t, s)
	require.True(t, s.Durable(c.refs[1].ID))
	require.NotContains(t, dump(t, c.fs), "000001.ext")
	requireHolds(t, s, c.refs[1], c.data[1])
}

// A copy whose header is lost does not displace a whole copy of the same chunk,
// whichever of the two is the later one.
func TestDamagedCopyDoesNotDisplaceAWholeOne(t *testing.T) {
	for victim := range 2 {
		c := newThreeChunks(t, layouts["small"])
		s := open(t, c.fs, Options{})
		e, at := s.find(c.refs[1].ID)
		s.setDamaged(entry{e, *at})
		require.NoError(t, s.Put(c.refs[1], c.data[1]))
		path, off := place(t, s, c.refs[1])
		require.NotEqual(t, c.path, path)
		require.NoError(t, s.Close())
		paths, offs := []string{c.path, path}, []int64{c.offs[1], off}
		flip(t, c.fs, paths[victim], offs[victim]+5)
		s = open(t, c.fs, Options{})
		requireHolds(t, s, c.refs[1], c.data[1])
		require.Equal(t, 3, s.Stats().Chunks)
		require.NoError(t, s.Close())
	}
}

// A file header that is lost costs no chunk: the records name the incarnation.
func TestFileHeaderLost(t *testing.T) { eachLayout(t, testFileHeaderLost) }

func testFileHeaderLost(t *testing.T, fresh func() threeChunks) {
	c := fresh()
	wipe(t, c.fs, c.path, 0, pageBytes)
	s := open(t, c.fs, Options{})
	for i := range c.refs {
		requireHolds(t, s, c.refs[i], c.data[i])
		require.True(t, s.Durable(c.refs[i].ID))
	}
}

// A chunk of which header and trailer are lost is ErrNotFound, its bytes are
// counted, and its extent is kept when the rest of it is dead.
func TestChunkLostWithoutName(t *testing.T) { eachLayout(t, testChunkLostWithoutName) }

func testChunkLostWithoutName(t *testing.T, fresh func() threeChunks) {
	c := fresh()
	size := c.room
	wipe(t, c.fs, c.path, c.offs[1], c.offs[1]+size)
	s := open(t, c.fs, Options{})
	requireHolds(t, s, c.refs[0], c.data[0])
	requireHolds(t, s, c.refs[2], c.data[2])
	_, err := s.Read(c.refs[1], 0, make([]byte, 1))
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, size, s.Stats().LostBytes)
	require.NoError(t, s.Delete(c.refs[0].ID))
	require.NoError(t, s.Delete(c.refs[2].ID))
	require.Contains(t, dump(t, c.fs), "000001.ext")
}

// A file of a newer format is refused, not scanned.
func TestNewerFormat(t *testing.T) {
	c := newThreeChunks(t, layouts["small"])
	b, err := c.fs.UnsafeGetFileDataBuffer(c.path)
	require.NoError(t, err)
	b[atVersion]++
	sealRecord(b[:recordBytes])
	before := dump(t, c.fs)
	_, err = Open(c.fs, testDir, Options{})
	require.ErrorIs(t, err, ErrFormat)
	require.Equal(t, before, dump(t, c.fs))
}

// A payload that is itself the image of an extent is not taken for one, even when
// the header before it is lost.
func TestPayloadImitatesRecords(t *testing.T) {
	c := newThreeChunks(t, layouts["small"])
	image := []byte(dump(t, c.fs)["000001.ext"])
	fs := vfs.NewMem()
	s := open(t, fs, Options{SliceBytes: 32 << 10})
	// In the first chunk the image lies where its records place themselves.
	from := pageBytes + headBytes(uint32(len(image)), 32<<10, recordBytes)
	var refs []Ref
	for shift := range int64(5) {
		payload := append(make([]byte, shift*recordBytes), image[from:]...)
		ref := NewRef(ChunkID{byte(shift)}, payload)
		require.NoError(t, s.Put(ref, payload))
		refs = append(refs, ref)
	}
	require.NoError(t, s.Close())
	wipe(t, fs, "extents/000001.ext", pageBytes, pageBytes+recordBytes)
	s = open(t, fs, Options{})
	require.Equal(t, refs, s.Refs())
	requireCorrupt(t, s, refs[0])
}

// A record of a kind that this version does not know, whole and of the file's present life, is of a later version: the
// store is refused and left as it is. Taken for damage, a file of nothing else would be removed.
//
// Capability: Two locations: Two versions at once.
func TestLaterRecord(t *testing.T) {
	for what, c := range map[string]struct {
		change func(b []byte)
		later  bool
	}{
		"whole":                  {sealRecord, true},
		"damaged":                {func([]byte) {}, false},
		"of a former life":       {func(b []byte) { b[atIncarnation]++; sealRecord(b) }, false},
		"a known kind, no sense": {func(b []byte) { b[0]--; b[atUnit]++; sealRecord(b) }, false},
	} {
		three := newThreeChunks(t, layouts["small"])
		b, err := three.fs.UnsafeGetFileDataBuffer(three.path)
		require.NoError(t, err)
		rec := b[three.offs[1]:][:recordBytes]
		rec[0]++
		c.change(rec)
		before := dump(t, three.fs)
		s, err := Open(three.fs, testDir, Options{})
		if c.later {
			require.ErrorIs(t, err, ErrFormat, what)
			require.ErrorIs(t, err, feature.ErrLater, what)
			require.Equal(t, before, dump(t, three.fs), what)
			continue
		}
		require.NoError(t, err, what)
		require.NoError(t, s.Close())
	}
}
