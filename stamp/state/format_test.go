package state

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/feature"
)

// The format is that of feature.Base, and not what the library would change it to.
func TestFormatIsPinned(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open("state", Options{FS: fs})
	require.NoError(t, err)
	require.Equal(t, pebble.FormatValueSeparation, s.db.FormatMajorVersion())
	require.NoError(t, s.Close())
}

// R4: a store in a later format is refused by that name, before anything in its folder is changed. It is no damage, for
// which it would be set aside.
func TestR4LaterFormat(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open("state", Options{FS: fs})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	m, _, err := atomicfs.LocateMarker(fs, "state", formatMarker)
	require.NoError(t, err)
	require.NoError(t, m.Move("999"))
	require.NoError(t, m.Close())
	options, err := fs.Create("state/OPTIONS-999999", vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = options.Write([]byte("[Options]\n  comparer=of.a.later.version\n"))
	require.NoError(t, err)
	require.NoError(t, options.Close())
	before, err := fs.List("state")
	require.NoError(t, err)
	_, err = Open("state", Options{FS: fs})
	require.ErrorIs(t, err, feature.ErrLater)
	require.ErrorContains(t, err, "version 999")
	require.False(t, Damaged(err))
	after, err := fs.List("state")
	require.NoError(t, err)
	require.ElementsMatch(t, before, after)
}
