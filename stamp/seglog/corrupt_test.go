package seglog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/seglog/logtest"
	"antipode/stamp/state"
)

// disk is the files of a log, to be damaged and put back.
type disk map[string][]byte

func readDisk(t require.TestingT, fs vfs.FS) disk {
	d := disk{}
	names, err := fs.List(testDir)
	require.NoError(t, err)
	for _, name := range names {
		f, err := fs.Open(testDir + "/" + name)
		require.NoError(t, err)
		info, err := f.Stat()
		require.NoError(t, err)
		b := make([]byte, info.Size())
		require.NoError(t, readFull(f, b, 0))
		require.NoError(t, f.Close())
		d[name] = b
	}
	return d
}

func (d disk) fs(t require.TestingT) *vfs.MemFS {
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll(testDir, 0o755))
	for name, b := range d {
		f, err := fs.Create(testDir+"/"+name, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.Write(slices.Clone(b))
		require.NoError(t, errors.Join(err, f.Close()))
	}
	return fs
}

// damaged is the disk with one file changed, sharing the others.
func (d disk) damaged(name string, change func(b []byte)) disk {
	out := disk{}
	for n, b := range d {
		out[n] = b
	}
	out[name] = slices.Clone(d[name])
	change(out[name])
	return out
}

// makeDisk returns the disk of a log of a few segments and the states it had; the
// last marks name at least states[marked].
func makeDisk(t *testing.T, seed uint64, closed bool) (d disk, states []string, marked int) {
	mem := vfs.NewMem()
	l := mustOpen(t, mem)
	s := newStory(t, l, rand.New(rand.NewPCG(seed, 5)))
	for range 60 {
		require.NoError(t, s.commit(true))
	}
	marked = s.synced - 1 // The write of each commit carries the mark of the one before.
	if closed {
		require.NoError(t, l.Close())
		marked = s.synced
	}
	d = readDisk(t, mem)
	require.NoError(t, l.Close())
	return d, s.states, marked
}

// Whatever byte of whatever segment is damaged, the log is refused by name, or it reads
// as it was at the last mark or later; never altered, never shorter, never a panic
// (R4, invariant 5; a byte flipped, a page zeroed or filled, over all segments).
//
// Capability: Storage on a node: One flipped bit in log, state or extents.
func TestFlipAnywhere(t *testing.T) {
	for _, closed := range []bool{false, true} {
		d, states, marked := makeDisk(t, 1, closed)
		rng := rand.New(rand.NewPCG(1, 2))
		refused, read := 0, 0
		try := func(what string, d disk) {
			l, err := open(d.fs(t), rng.Uint64())
			if err != nil {
				require.ErrorIs(t, err, state.ErrLogCorrupt, what)
				refused++
				return
			}
			got, err := logState(l)
			require.NoError(t, err)
			require.Contains(t, states[marked:], got, what)
			require.NoError(t, l.Close())
			read++
		}
		for name, b := range d {
			flips := 150
			if testing.Short() {
				flips = 20
			}
			for range flips {
				at, bit := rng.IntN(len(b)), byte(1)<<rng.IntN(8)
				if rng.IntN(3) == 0 {
					at = at / pageBytes * pageBytes // Headers.
					at += rng.IntN(headerBytes)
				}
				try(fmt.Sprintf("%s bit %08b at %d", name, bit, at), d.damaged(name, func(b []byte) { b[at] ^= bit }))
			}
			for at := 0; at < len(b); at += pageBytes {
				try(fmt.Sprintf("%s page at %d zeroed", name, at), d.damaged(name, func(b []byte) { clear(b[at:][:pageBytes]) }))
				try(fmt.Sprintf("%s page at %d filled", name, at), d.damaged(name, func(b []byte) {
					for i := range pageBytes {
						b[at+i] = byte(rng.Uint32())
					}
				}))
			}
		}
		require.Greater(t, refused, 100)
		require.Greater(t, read, 10, "free space never came up")
	}
}

// R4: a spare that still has its place in the chain is not scrubbed, since nothing in it is wanted; damage there, of its header
// too, costs no replica. That of a segment with an entry that is wanted does.
func TestR4DamagedSpareIsAsGone(t *testing.T) {
	mem := vfs.NewMem()
	l := mustOpen(t, mem)
	s := newStory(t, l, rand.New(rand.NewPCG(3, 5)))
	for len(l.spares) == 0 || l.spares[len(l.spares)-1].number != l.chain[0].number-1 {
		require.NoError(t, s.commit(true))
	}
	want, err := logState(l)
	require.NoError(t, err)
	spare, wanted := l.spares[len(l.spares)-1].path, l.chain[0].path
	d := readDisk(t, mem)
	require.NoError(t, l.Close())
	for _, at := range []int{0, pageBytes, pageBytes + 100, 3 * pageBytes} {
		flip := func(b []byte) { b[at] ^= 1 }
		other, err := open(d.damaged(filepath.Base(spare), flip).fs(t), 1)
		require.NoError(t, err, at)
		got, err := logState(other)
		require.NoError(t, err)
		require.Equal(t, want, got, at)
		require.NoError(t, verifyAll(other))
		require.NoError(t, other.Close())
		_, err = open(d.damaged(filepath.Base(wanted), flip).fs(t), 1)
		require.ErrorIs(t, err, state.ErrLogCorrupt, at)
	}
}

// R4: where nothing of the newest segment is known to be durable, the one before it is no spare: damage of its header is named.
func TestR4DamagedHeaderBelowTheNewestSegment(t *testing.T) {
	mem := vfs.NewMem()
	l := mustOpen(t, mem)
	s := newStory(t, l, rand.New(rand.NewPCG(4, 5)))
	for len(l.chain) < 3 {
		require.NoError(t, s.commit(true))
	}
	sc, err := scan(l.active())
	require.NoError(t, err)
	begun := int(sc.frames[0].offset + sc.frames[0].size())
	newest, before := filepath.Base(l.active().path), filepath.Base(l.chain[len(l.chain)-2].path)
	d := readDisk(t, mem).damaged(newest, func(b []byte) { clear(b[begun:]) })
	require.NoError(t, l.Close())
	other, err := open(d.fs(t), 1)
	require.NoError(t, err)
	require.NoError(t, other.Close())
	_, err = open(d.damaged(before, func(b []byte) { b[0] ^= 1 }).fs(t), 1)
	require.ErrorIs(t, err, state.ErrLogCorrupt)
	require.ErrorContains(t, err, before+" at 0: not the segment that was continued")
}

// Damage that comes while the log is open is found when it is read, and when it would
// be copied forward; it is never returned (invariant 5).
func TestDamageWhileOpen(t *testing.T) {
	mem := vfs.NewMem()
	l := mustOpen(t, mem)
	g := logtest.Range(t, l, 4)
	big := logtest.Entries(1, 1, 30, 200<<10) // More than stays in memory.
	logtest.Commit(t, l, true, func(b state.LogBatch) error { return g.Append(b, big) })
	s := *l.ranges[4].slot(1)
	f := l.segments[s.segment].file
	var one [1]byte
	require.NoError(t, readFull(f, one[:], int64(s.offset)+1000))
	_, err := f.WriteAt([]byte{one[0] ^ 1}, int64(s.offset)+1000)
	require.NoError(t, err)
	_, err = g.Entries(1, 3, 1<<30)
	require.ErrorIs(t, err, state.ErrLogCorrupt)
	got, err := g.Entries(2, 4, 1<<30)
	require.NoError(t, err)
	require.Len(t, got, 2)

	other := logtest.Range(t, l, 5)
	for i := range uint64(2000) {
		b := l.NewBatch()
		require.NoError(t, other.Append(b, logtest.Entries(1+i, 1, 1, 40<<10)))
		if i > 2 {
			require.NoError(t, other.Trim(b, i-1))
		}
		if err = b.Commit(true); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, state.ErrLogCorrupt)
	require.ErrorIs(t, err, ErrFailed)
	require.NoError(t, l.Close())
}

// The end of the log cut at any page: above the last mark it is a torn tail, left out
// silently; at or below it the log is refused (R4; every cut).
// It holds invariant 5.
func TestTornTail(t *testing.T) {
	mem := vfs.NewMem()
	l := mustOpen(t, mem)
	s := newStory(t, l, rand.New(rand.NewPCG(3, 5)))
	for l.active().synced < 6*pageBytes {
		require.NoError(t, s.commit(true))
	}
	number := l.active().number
	before := len(s.states)
	// What follows is written and not synced, as one frame after the other.
	for range 3 {
		require.NoError(t, s.commit(false))
		require.NoError(t, l.write())
	}
	require.Equal(t, number, l.active().number, "the segment was changed: choose another seed")
	mark, end := l.active().synced, l.active().end
	d := readDisk(t, mem)
	require.NoError(t, l.Close())
	name := segmentName(number)
	for cut := int64(0); cut <= end; cut += pageBytes {
		l, err := open(d.damaged(name, func(b []byte) { clear(b[cut:]) }).fs(t), 1)
		if err != nil {
			require.ErrorIs(t, err, state.ErrLogCorrupt)
			continue
		}
		got, err := logState(l)
		require.NoError(t, err)
		require.Contains(t, s.states, got, "cut at %d", cut)
		if cut >= mark {
			require.Contains(t, s.states[before-1:], got, "cut at %d, mark at %d", cut, mark)
		}
		require.NoError(t, l.Close())

		// The same with what follows left in place: the marks behind the damage show it.
		l, err = open(d.damaged(name, func(b []byte) { clear(b[cut:min(cut+pageBytes, end)]) }).fs(t), 1)
		if cut < mark {
			require.ErrorIs(t, err, state.ErrLogCorrupt, "page lost at %d, mark at %d", cut, mark)
			continue
		}
		require.NoError(t, err)
		got, err = logState(l)
		require.NoError(t, err)
		require.Contains(t, s.states[before-1:], got)
		require.NoError(t, l.Close())
	}
}

// A segment that is missing, or an older copy of one put back, is found wherever
// something in it was wanted.
func TestMissingSegment(t *testing.T) {
	d, states, marked := makeDisk(t, 4, true)
	names := make([]string, 0, len(d))
	for name := range d {
		names = append(names, name)
	}
	slices.Sort(names)
	refused := 0
	for i, name := range names[:len(names)-1] {
		gone := disk{}
		for n, b := range d {
			if n != name {
				gone[n] = b
			}
		}
		for what, d := range map[string]disk{
			"missing":  gone,
			"replaced": d.damaged(name, func(b []byte) { copy(b, d[names[i+1]]) }),
		} {
			l, err := open(d.fs(t), 1)
			if err != nil {
				require.ErrorIs(t, err, state.ErrLogCorrupt, what)
				refused++
				continue
			}
			got, err := logState(l)
			require.NoError(t, err)
			require.Contains(t, states[marked:], got, "%s %s", name, what)
			require.NoError(t, l.Close())
		}
	}
	require.Positive(t, refused)
}

// What a former use of a segment left behind is never taken for records: wherever the
// new use ends, what is found is a state that the log had (each page of the old use
// stands behind the new end; over all cuts).
func TestLeftovers(t *testing.T) {
	mem := vfs.NewMem()
	l := mustOpen(t, mem)
	s := newStory(t, l, rand.New(rand.NewPCG(9, 5)))
	recycled := func() bool {
		a := l.active()
		f, ok := decodeFrameHeader(make([]byte, headerBytes), a.number, 0)
		for at := a.end; at < a.size && !ok; at += pageBytes {
			b := make([]byte, headerBytes)
			require.NoError(t, readFull(a.file, b, at))
			for n := range a.number {
				if f, ok = decodeFrameHeader(b, n, at); ok {
					break
				}
			}
		}
		return ok && f.inc != a.inc && a.end > 4*pageBytes
	}
	for i := 0; i < 40 || !recycled(); i++ {
		require.Less(t, i, 2000, "no segment was recycled")
		require.NoError(t, s.commit(true))
	}
	a := l.active()
	d := readDisk(t, mem)
	require.NoError(t, l.Close())
	// The first synced frames only, and behind them what the file held before: the
	// pages of the new use are replaced by copies of the old use's.
	old := d[segmentName(a.number)][a.end:]
	for cut := int64(pageBytes); cut < a.end; cut += pageBytes {
		l, err := open(d.damaged(segmentName(a.number), func(b []byte) {
			for at := cut; at < a.end; at += pageBytes {
				copy(b[at:at+pageBytes], old)
			}
		}).fs(t), 1)
		if err != nil {
			require.ErrorIs(t, err, state.ErrLogCorrupt)
			continue
		}
		got, err := logState(l)
		require.NoError(t, err)
		require.Contains(t, s.states, got)
		require.NoError(t, l.Close())
	}
}
