package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// acked plays a write that was acknowledged at time at.
func acked(o *Oracle, v Version, at geo.Timestamp) Version {
	o.Acked("k", v, tag(v), at)
	return v
}

func tag(v Version) string { return string(rune('a' + v)) }

func present(last, base Version) Read {
	return Read{State: State{Present: true, Last: last, Base: base}, ETag: tag(last)}
}

// The oracle finds a primary read good exactly when acknowledged writes and some
// outcome of the unanswered one explain it: each row plays a short history and
// names the reads that pass and the complaint about those that do not.
func TestResolve(t *testing.T) {
	tests := []struct {
		name  string
		write func(o *Oracle)
		good  []Read
		bad   map[Read]error
	}{
		{
			name:  "acknowledged insert",
			write: func(o *Oracle) { acked(o, o.Insert("k"), 10) },
			good:  []Read{present(1, 1)},
			bad: map[Read]error{
				{}:            ErrLost,
				present(2, 2): ErrInvented,
				{State: State{Present: true, Last: 1, Base: 1}, ETag: "other"}: ErrTag,
			},
		},
		{
			name: "merge with a lost answer",
			write: func(o *Oracle) {
				acked(o, o.Insert("k"), 10)
				o.Lost("k", o.Merge("k"))
			},
			good: []Read{present(1, 1), present(2, 1)},
			bad:  map[Read]error{{}: ErrLost, present(2, 2): ErrInvented},
		},
		{
			name: "delete with a lost answer",
			write: func(o *Oracle) {
				acked(o, o.Insert("k"), 10)
				o.Lost("k", o.Delete("k"))
			},
			good: []Read{present(1, 1), {}},
			bad:  map[Read]error{present(2, 2): ErrInvented},
		},
		{
			name: "refused merge",
			write: func(o *Oracle) {
				acked(o, o.Insert("k"), 10)
				o.Refused("k", o.Merge("k"))
			},
			good: []Read{present(1, 1)},
			bad:  map[Read]error{present(2, 1): ErrInvented, {}: ErrLost},
		},
		{
			name: "old value after an acknowledged delete and insert",
			write: func(o *Oracle) {
				acked(o, o.Insert("k"), 10)
				acked(o, o.Delete("k"), 20)
				acked(o, o.Insert("k"), 30)
			},
			good: []Read{present(3, 3)},
			bad:  map[Read]error{present(1, 1): ErrLost, {}: ErrLost},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range tt.good {
				o := New()
				tt.write(o)
				require.NoError(t, o.Resolve("k", r, 99), "%v", r)
				require.NoError(t, o.Final("k", r), "a resolved outcome stays: %v", r)
			}
			for r, want := range tt.bad {
				o := New()
				tt.write(o)
				require.ErrorIs(t, o.Resolve("k", r, 99), want, "%v", r)
			}
		})
	}
}

// What a restart has shown to be gone must not come back: a lost write that a
// read after the restart did not find is refused from then on.
func TestResolveIsFinal(t *testing.T) {
	o := New()
	acked(o, o.Insert("k"), 10)
	o.Lost("k", o.Merge("k"))
	_, _, ok := o.Current("k")
	require.False(t, ok, "a key with an unanswered write takes no other")

	require.NoError(t, o.Resolve("k", present(1, 1), 99))
	require.ErrorIs(t, o.Resolve("k", present(2, 1), 99), ErrInvented)
	require.ErrorIs(t, o.AtLeast("k", 0, present(2, 1)), ErrInvented)
	s, etag, ok := o.Current("k")
	require.True(t, ok)
	require.Equal(t, State{Present: true, Last: 1, Base: 1}, s)
	require.Equal(t, tag(1), etag)
}

// At a sync time the secondary must show the last write committed at or before
// it, or a later one; a value that a newer one at or below it replaced is wrong.
func TestAtLeast(t *testing.T) {
	o := New()
	acked(o, o.Insert("k"), 10)
	acked(o, o.Merge("k"), 20)
	acked(o, o.Delete("k"), 30)
	o.Lost("k", o.Insert("k"))

	require.Equal(t, Version(0), o.Floor("k", 9))
	require.Equal(t, Version(2), o.Floor("k", 29))
	require.Equal(t, Version(3), o.Floor("k", 30))
	require.Equal(t, Version(0), o.Floor("unknown", 30))

	require.NoError(t, o.AtLeast("k", 0, Read{}), "nothing has arrived yet")
	require.NoError(t, o.AtLeast("k", 1, present(1, 1)))
	require.NoError(t, o.AtLeast("k", 1, present(2, 1)), "a newer one has arrived")
	require.NoError(t, o.AtLeast("k", 2, Read{}), "the delete has arrived")
	require.NoError(t, o.AtLeast("k", 2, present(4, 4)), "the unanswered insert has arrived")
	require.ErrorIs(t, o.AtLeast("k", 2, present(1, 1)), ErrBehind)
	require.ErrorIs(t, o.AtLeast("k", 3, present(2, 1)), ErrBehind)
	require.ErrorIs(t, o.AtLeast("k", 1, present(3, 3)), ErrInvented, "version 3 was a delete")
	require.ErrorIs(t, o.AtLeast("k", 1, present(2, 2)), ErrInvented, "half a merge")
	require.ErrorIs(t, o.AtLeast("k", 1, present(9, 9)), ErrInvented)
	require.ErrorIs(t, o.AtLeast("other", 0, present(1, 1)), ErrInvented)

	n, newest := o.Acks()
	require.Equal(t, 3, n)
	require.Equal(t, geo.Timestamp(30), newest)
	require.Equal(t, []string{"k"}, o.Keys())
}

// A secondary that lost an insert below its sync time answers absent, which is
// behind, whatever came before the insert.
func TestAtLeastAbsent(t *testing.T) {
	o := New()
	acked(o, o.Insert("k"), 10)
	acked(o, o.Delete("k"), 20)
	acked(o, o.Insert("k"), 30)
	require.ErrorIs(t, o.AtLeast("k", 3, Read{}), ErrBehind)
	require.NoError(t, o.AtLeast("k", 2, Read{}))
}
