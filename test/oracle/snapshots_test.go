package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// taking plays a key that was written once before a snapshot was taken of it, a second time meanwhile, and a third time after,
// which was answered at time 15.
func taking(t *testing.T) (*Oracle, *Snapshots) {
	t.Helper()
	o := New()
	s := NewSnapshots(o)
	acked(o, o.Insert("k"), 5)
	acked(o, o.Merge("k"), 10)
	take := s.Take("k")
	acked(o, o.Merge("k"), 15)
	require.NoError(t, take.Acked("x", 15))
	acked(o, o.Merge("k"), 20)
	return o, s
}

// readAt is a read of the snapshot while nothing else happens.
func readAt(s *Snapshots, r Read, sync geo.Timestamp) error {
	may, must := s.Standing("k", "x", sync)
	return s.Read("k", "x", r, may, must)
}

// A snapshot shows what the key was at some moment between its request and its answer, and the same each time.
func TestSnapshotContent(t *testing.T) {
	for name, tt := range map[string]struct {
		reads []Read
		want  error
	}{
		"before the write beside it": {[]Read{present(2, 1), present(2, 1)}, nil},
		"after it":                   {[]Read{present(3, 1), present(3, 1)}, nil},
		"earlier":                    {[]Read{present(1, 1)}, ErrChanged},
		"later":                      {[]Read{present(4, 1)}, ErrChanged},
		"never written":              {[]Read{present(9, 9)}, ErrChanged},
		"first this, then that":      {[]Read{present(2, 1), present(3, 1)}, ErrChanged},
		"another tag":                {[]Read{{State: State{Present: true, Last: 2, Base: 1}, ETag: "other"}}, ErrChanged},
		"not there":                  {[]Read{{}}, ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := taking(t)
			var err error
			for _, r := range tt.reads {
				require.NoError(t, err)
				err = readAt(s, r, Now)
			}
			require.ErrorIs(t, err, tt.want)
		})
	}
}

// What was deleted by itself, or with its key, is gone, at the secondary once the sync time has passed the deletion; what a
// deletion without an answer left may be there or not, until that is known.
func TestSnapshotDeletion(t *testing.T) {
	there := present(2, 1)
	_, s := taking(t)
	require.NoError(t, readAt(s, Read{}, 14), "it has not arrived")
	require.ErrorIs(t, readAt(s, Read{}, 15), ErrLost)

	d := s.Delete("k", "x")
	require.NoError(t, readAt(s, there, Now))
	require.NoError(t, readAt(s, Read{}, Now))
	d.Kept()
	require.ErrorIs(t, readAt(s, Read{}, Now), ErrLost)
	s.Delete("k", "x").Acked(30)
	require.ErrorIs(t, readAt(s, there, Now), ErrBack)
	require.NoError(t, readAt(s, Read{}, Now))
	require.NoError(t, readAt(s, there, 29))
	require.ErrorIs(t, readAt(s, there, 30), ErrBack)

	_, s = taking(t)
	s.Remove("k")
	require.NoError(t, readAt(s, Read{}, Now))
	s.NotRemoved("k")
	require.ErrorIs(t, readAt(s, Read{}, Now), ErrLost)
	require.ErrorIs(t, s.Delete("k", "x").NotThere(30), ErrLost)

	_, s = taking(t)
	s.Remove("k")
	require.NoError(t, s.Delete("k", "x").NotThere(30), "it was removed with its key")
	_, s = taking(t)
	s.Remove("k")
	s.Removed("k", 30)
	require.ErrorIs(t, readAt(s, there, Now), ErrBack)
}

// What is there when nobody does anything is known for good: after a removal without an answer too.
func TestSnapshotsResolved(t *testing.T) {
	_, s := taking(t)
	s.Remove("k")
	s.Resolved("k", map[string]bool{"x": true}, 40)
	require.ErrorIs(t, readAt(s, Read{}, Now), ErrLost)
	_, s = taking(t)
	s.Remove("k")
	s.Resolved("k", nil, 40)
	require.ErrorIs(t, readAt(s, present(2, 1), Now), ErrBack)
}

// A snapshot taken while its key is removed may be there or not. One without an answer may be listed, once.
func TestSnapshotsUnsure(t *testing.T) {
	_, s := taking(t)
	s.Remove("k")
	take := s.Take("k")
	s.Removed("k", 30)
	require.NoError(t, take.Acked("y", 30))
	may, must := s.Standing("k", "y", Now)
	require.True(t, may)
	require.False(t, must)
	require.ErrorIs(t, s.Take("k").Acked("y", 30), ErrChanged, "an id twice")

	require.ErrorIs(t, s.Adopt("k", "z", 31), ErrInvented)
	s.Take("k").Lost()
	require.NoError(t, s.Adopt("k", "z", 31))
	require.ErrorIs(t, s.Adopt("k", "zz", 31), ErrInvented)
	require.NoError(t, s.Read("k", "z", present(4, 1), true, false))
	require.ErrorIs(t, s.Read("k", "z", present(3, 1), true, false), ErrChanged)
}

// The key of a snapshot that is answered not to be there must not have been there all the time.
func TestSnapshotOfNothing(t *testing.T) {
	o, s := taking(t)
	require.ErrorIs(t, s.Take("k").NotThere(), ErrLost)
	require.NoError(t, s.Take("other").NotThere())
	take := s.Take("k")
	o.Lost("k", o.Delete("k"))
	require.NoError(t, take.NotThere())
}

// Deleted snapshots are remembered, not all of them for ever.
func TestSnapshotsForgotten(t *testing.T) {
	o := New()
	s := NewSnapshots(o)
	acked(o, o.Insert("k"), 5)
	for i := range geo.Timestamp(2 * goneMax) {
		id := string(rune('A' + i))
		require.NoError(t, s.Take("k").Acked(id, 10+i))
		s.Delete("k", id).Acked(100)
	}
	ids, left := s.Known("k")
	require.Len(t, ids, goneMax)
	require.Zero(t, left)
	require.Equal(t, string(rune('A'+goneMax)), ids[0])
}
