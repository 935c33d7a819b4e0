package extent

import (
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// round plays one round of collection, in which the given chunks are named, and returns
// how many were dropped.
func round(t *testing.T, s *Store, named ...Ref) int {
	t.Helper()
	s.BeginRound(true)
	for _, ref := range named {
		require.True(t, s.Mark(ref))
	}
	s.EndRound()
	chunks, _, err := s.Sweep(1 << 20)
	require.NoError(t, err)
	return chunks
}

// R9: a chunk is dropped when two whole rounds in a row saw neither its name nor anybody
// who asked for it, and no sooner, also right after Open.
func TestSweepDropsWhatTwoRoundsLeftUnnamed(t *testing.T) {
	fs, source := vfs.NewMem(), newSource(1)
	s := open(t, fs, Options{})
	named, data := put(t, s, source, 1000)
	orphan, _ := put(t, s, source, 2000)
	mustSync(t, s)
	require.Zero(t, round(t, s, named), "it was put before the first round")
	require.Equal(t, 1, round(t, s, named))
	_, err := s.Read(orphan, 0, make([]byte, 10))
	require.ErrorIs(t, err, ErrNotFound)
	requireHolds(t, s, named, data)

	require.NoError(t, s.Close())
	s = open(t, fs, Options{})
	require.Zero(t, round(t, s, named), "the orphan is back, seen for the first time")
	require.Equal(t, 1, round(t, s, named))
	require.Equal(t, []Ref{named}, s.Refs())
}

// R9: a caller that learned that a chunk is here may name it. Each touch pins it for its round
// and the next.
func TestSweepLeavesWhatWasAskedFor(t *testing.T) {
	for _, c := range []struct {
		name  string
		touch func(t *testing.T, s *Store, ref Ref, data []byte)
	}{
		{"Durable", func(t *testing.T, s *Store, ref Ref, _ []byte) { require.True(t, s.Durable(ref.ID)) }},
		{"Put", func(t *testing.T, s *Store, ref Ref, data []byte) { require.NoError(t, s.Put(ref, data)) }},
		{"Lacks", func(t *testing.T, s *Store, ref Ref, _ []byte) {
			lacks, err := s.Lacks([]Ref{ref})
			require.NoError(t, err)
			require.Equal(t, []bool{false}, lacks)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, vfs.NewMem(), Options{})
			ref, data := put(t, s, newSource(1), 1000)
			mustSync(t, s)
			for range 5 {
				require.Zero(t, round(t, s))
				c.touch(t, s, ref, data)
			}
			s.BeginRound(true)
			c.touch(t, s, ref, data)
			s.EndRound()
			chunks, _, err := s.Sweep(10)
			require.NoError(t, err)
			require.Zero(t, chunks)
			require.Zero(t, round(t, s))
			require.Equal(t, 1, round(t, s))
		})
	}
}

// A round that was not ended proves nothing: two whole ones must follow.
func TestSweepNeedsWholeRounds(t *testing.T) {
	s := open(t, vfs.NewMem(), Options{})
	put(t, s, newSource(1), 1000)
	mustSync(t, s)
	require.Zero(t, round(t, s))
	s.BeginRound(true)
	chunks, _, err := s.Sweep(10)
	require.NoError(t, err)
	require.Zero(t, chunks, "a round under way")
	require.Zero(t, round(t, s), "the round before was left")
	require.Equal(t, 1, round(t, s))
}

// A copy that Compact makes counts for what the old one did: it lives on if it is named,
// and is no younger.
func TestCompactKeepsRounds(t *testing.T) {
	s := open(t, vfs.NewMem(), Options{ExtentBytesMax: 8 << 10, SparesMax: -1})
	source := newSource(1)
	var refs []Ref
	for range 7 {
		ref, _ := put(t, s, source, 1000)
		refs = append(refs, ref)
	}
	put(t, s, source, 8000) // Seals the first extent.
	mustSync(t, s)
	require.Zero(t, round(t, s, refs...))
	for _, ref := range refs[2:] {
		require.NoError(t, s.Delete(ref.ID))
	}
	s.BeginRound(true)
	require.True(t, s.Mark(refs[0]))
	copied, err := s.Compact(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2000, copied)
	s.EndRound()
	chunks, _, err := s.Sweep(10) // The large one was put before the first round.
	require.NoError(t, err)
	require.Equal(t, 1, chunks)
	require.Equal(t, 1, round(t, s, refs[0]), "refs[1], named in the first round alone")
	require.Equal(t, []Ref{refs[0]}, s.Refs())
}

// R9: nothing is dropped while a pin is held, also not by a sweep that had begun before. What was unnamed meanwhile goes
// once the last pin is released.
func TestR9PinStopsTheSweep(t *testing.T) {
	s := open(t, vfs.NewMem(), Options{})
	source := newSource(1)
	for range 3 {
		put(t, s, source, 1000)
	}
	mustSync(t, s)
	require.Zero(t, round(t, s))
	s.BeginRound(true)
	s.EndRound()
	chunks, _, err := s.Sweep(1)
	require.NoError(t, err)
	require.Equal(t, 1, chunks)

	first, second := s.Pin(), s.Pin()
	chunks, _, err = s.Sweep(10)
	require.NoError(t, err)
	require.Zero(t, chunks, "the sweep goes on under a pin")
	first()
	first()
	for range 3 {
		require.Zero(t, round(t, s), "one pin is left")
	}
	require.Len(t, s.Refs(), 2)
	second()
	found, _ := s.nextUnnamed(nil, 10) // Where Sweep is between this and the drop.
	require.Len(t, found, 2)
	third := s.Pin()
	for _, ref := range found {
		dropped, err := s.drop(ref.ID, s.unnamed)
		require.NoError(t, err)
		require.False(t, dropped, "a sweep under way drops nothing once Pin has returned")
	}
	third()
	require.Equal(t, 2, round(t, s))
}

// unnamedRound plays a round in which nothing is named, and returns how many chunks were dropped.
func unnamedRound(t *testing.T, s *Store, full bool) int {
	t.Helper()
	s.BeginRound(full)
	s.EndRound()
	chunks, _, err := s.Sweep(10)
	require.NoError(t, err)
	return chunks
}

// R9: a chunk that nothing has named yet outlasts any number of rounds that are not full, as an upload does; one that was
// named, by whatever way, does not, wherever Compact has moved it.
func TestSweepKeepsUploadsLonger(t *testing.T) {
	for name, by := range map[string]func(t *testing.T, s *Store, ref Ref) *Store{
		"marked":    func(t *testing.T, s *Store, ref Ref) *Store { require.True(t, s.Mark(ref)); return s },
		"asked for": func(t *testing.T, s *Store, ref Ref) *Store { require.True(t, s.Name(ref.ID)); return s },
		"compacted": func(t *testing.T, s *Store, ref Ref) *Store {
			require.True(t, s.Name(ref.ID))
			s.mu.Lock()
			e, c := s.find(ref.ID)
			s.move(move{entry{e, *c}, entry{e, cell{id: ref.ID, offset: c.offset, length: c.length, crc: c.crc, sliceBytes: c.sliceBytes, unit: c.unit}}})
			s.mu.Unlock()
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, vfs.NewMem(), Options{})
			ref, _ := put(t, s, newSource(1), 1000)
			mustSync(t, s)
			for range 5 {
				require.Zero(t, unnamedRound(t, s, false), "an upload")
			}
			s = by(t, s, ref)
			require.Zero(t, unnamedRound(t, s, false), "touched in the round before")
			require.Equal(t, 1, unnamedRound(t, s, false))
		})
	}
	s := open(t, vfs.NewMem(), Options{})
	ref, _ := put(t, s, newSource(1), 1000)
	mustSync(t, s)
	require.True(t, s.Durable(ref.ID))
	for _, full := range []bool{true, false, false, true} {
		require.Zero(t, unnamedRound(t, s, full))
		require.True(t, s.Durable(ref.ID))
	}
	for _, full := range []bool{true, false, false} {
		require.Zero(t, unnamedRound(t, s, full), "it was asked for since the full round before")
	}
	require.Equal(t, 1, unnamedRound(t, s, true))
}

// Lacks answers for each chunk whether Put and Sync would have to write: what is durable, whole and the same is not
// lacked. The question does not count as a name: what was put for a change to come keeps the time of an upload.
func TestLacks(t *testing.T) {
	fs := vfs.NewMem()
	s, source := open(t, fs, Options{}), newSource(1)
	here, _ := put(t, s, source, 1000)
	broken, data := put(t, s, source, 1000)
	mustSync(t, s)
	unsynced, _ := put(t, s, source, 1000)
	never, _ := newChunk(source, 1000)
	longer, other := here, here
	longer.Length++
	other.CRC++
	path, at := place(t, s, broken)
	flip(t, fs, path, at+3*recordBytes)
	requireCorrupt(t, s, broken)
	lacks := func(refs ...Ref) []bool {
		t.Helper()
		lacks, err := s.Lacks(refs)
		require.NoError(t, err)
		return lacks
	}
	require.Equal(t, []bool{false, true, true, true, true, true, false}, lacks(here, broken, unsynced, never, longer, other, here))
	require.Empty(t, lacks())
	require.NoError(t, s.Put(broken, data))
	require.Equal(t, []bool{true}, lacks(broken))
	mustSync(t, s)
	require.Equal(t, []bool{false, false}, lacks(broken, unsynced))
	for range 5 {
		require.Zero(t, unnamedRound(t, s, false), "an upload")
	}

	refs := slices.Repeat([]Ref{never}, 4*holdSteps)
	require.LessOrEqual(t, s.longest(func() { require.Len(t, lacks(refs...), len(refs)) }), holdMoves)

	failed := errors.New("disk is gone")
	require.ErrorIs(t, s.fail(failed), ErrFailed)
	_, err := s.Lacks([]Ref{here})
	require.ErrorIs(t, err, failed)

	s = open(t, vfs.NewMem(), Options{})
	require.NoError(t, s.Close())
	_, err = s.Lacks([]Ref{here})
	require.ErrorIs(t, err, ErrClosed)
}

// R9: whether a chunk that was here at Open was ever named is not known. It stays until the next full round, as what the other
// location has sent and what is not applied yet; one that was put since stays as long as any.
func TestSweepKeepsWhatWasHereAtOpen(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, fs, Options{})
	source := newSource(1)
	old, _ := put(t, s, source, 1000)
	named, _ := put(t, s, source, 1000)
	mustSync(t, s)
	require.True(t, s.Name(old.ID))
	require.NoError(t, s.Close())
	s = open(t, fs, Options{})
	put(t, s, source, 1000)
	mustSync(t, s)
	require.True(t, s.Mark(named))
	require.Zero(t, unnamedRound(t, s, false))
	require.Equal(t, 1, unnamedRound(t, s, false), "what was named since")
	for range 3 {
		require.Zero(t, unnamedRound(t, s, false))
	}
	require.Equal(t, 1, unnamedRound(t, s, true))
	require.NotContains(t, s.Refs(), old)
	require.Zero(t, unnamedRound(t, s, false))
	require.Equal(t, 1, unnamedRound(t, s, true))
}

// R9: what a read holds stays, whatever the rounds find, until the last read of it ends; the others go.
func TestR9HoldKeepsWhatIsRead(t *testing.T) {
	s := open(t, vfs.NewMem(), Options{})
	read, _ := put(t, s, newSource(1), 1000)
	other, _ := put(t, s, newSource(2), 1000)
	mustSync(t, s)
	first, second := s.Hold([]Ref{read}), s.Hold([]Ref{other, read})
	for range 3 {
		require.Zero(t, unnamedRound(t, s, true))
	}
	require.Zero(t, s.Stats().Releases)
	second()
	second()
	require.EqualValues(t, 1, s.Stats().Releases)
	require.Equal(t, 1, unnamedRound(t, s, true))
	require.Equal(t, []Ref{read}, s.Refs())
	first()
	require.EqualValues(t, 2, s.Stats().Releases)
	require.Equal(t, 1, unnamedRound(t, s, true))
	require.Empty(t, s.held)
	s.Hold([]Ref{read})()
	require.EqualValues(t, 2, s.Stats().Releases, "no sweep left anything for it")
}
