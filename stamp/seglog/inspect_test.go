package seglog

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/state"
)

type inspected struct {
	segments []Segment
	// newest is the data of the newest record of an index of a range.
	newest  map[geo.RangeID]map[uint64]string
	records int
}

func (i *inspected) damaged() bool {
	for _, s := range i.segments {
		if s.HeaderDamaged || len(s.Damage) > 0 || s.Use == UseUnlinked {
			return true
		}
	}
	return false
}

func inspectAll(t require.TestingT, fs vfs.FS) *inspected {
	out := &inspected{newest: map[geo.RangeID]map[uint64]string{}}
	require.NoError(t, Inspect(fs, testDir, func(s Segment) error {
		out.segments = append(out.segments, s)
		return nil
	}, func(r Record) error {
		out.records++
		if r.Kind == RecordEntry || r.Kind == RecordCopy {
			if out.newest[r.Range] == nil {
				out.newest[r.Range] = map[uint64]string{}
			}
			out.newest[r.Range][r.Index] = fmt.Sprintf("%d %s %x", r.Term, r.EntryType, r.Data)
		}
		return nil
	}))
	return out
}

// Inspect shows every entry that an open log has, as it has it, and finds nothing
// damaged in an intact one, closed or not; and it changes no byte.
func TestInspectShowsTheLog(t *testing.T) {
	for _, closed := range []bool{false, true} {
		d, _, _ := makeDisk(t, 7, closed)
		fs := d.fs(t)
		seen := inspectAll(t, fs)
		require.False(t, seen.damaged())
		require.Equal(t, d, readDisk(t, fs))
		l, err := Open(testDir, state.Options{FS: fs, ReadOnly: true})
		require.NoError(t, err)
		for _, id := range testRanges() {
			g, err := l.Range(id, nil)
			require.NoError(t, err)
			first, err := g.FirstIndex()
			require.NoError(t, err)
			last, err := g.LastIndex()
			require.NoError(t, err)
			entries, err := g.Entries(first, last+1, 1<<40)
			require.NoError(t, err)
			for _, e := range entries {
				require.Equal(t, fmt.Sprintf("%d %s %x", e.GetTerm(), e.GetType(), e.Data), seen.newest[id][e.GetIndex()], "range %d index %d", id, e.GetIndex())
			}
		}
		require.NoError(t, l.Close())
	}
}

// Whatever byte is damaged, Inspect neither panics nor fails, shows what lies in other
// frames, and names damage wherever Open refuses the log for it.
func TestInspectDamage(t *testing.T) {
	d, _, _ := makeDisk(t, 1, true)
	whole := inspectAll(t, d.fs(t))
	rng := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for name, b := range d {
		for range 60 {
			at, bit := rng.IntN(len(b)), byte(1)<<rng.IntN(8)
			if rng.IntN(3) == 0 {
				at = at/pageBytes*pageBytes + rng.IntN(headerBytes)
			}
			fs := d.damaged(name, func(b []byte) { b[at] ^= bit }).fs(t)
			seen := inspectAll(t, fs)
			l, err := Open(testDir, state.Options{FS: fs, ReadOnly: true})
			if err == nil {
				require.NoError(t, l.Close())
				continue
			}
			refused++
			require.True(t, seen.damaged(), "%s bit %08b at %d: %v", name, bit, at, err)
			require.Greater(t, seen.records, whole.records/2, "%s bit %08b at %d", name, bit, at)
		}
	}
	require.Greater(t, refused, 20)
}
