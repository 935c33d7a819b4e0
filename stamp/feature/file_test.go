package feature

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/durable"
)

// A folder keeps the floor, and a program that knows less refuses it by that name and changes nothing. A damaged file
// lets nobody in: it may stand for any level.
//
// Capability: Two locations: Feature levels.
func TestFolder(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, durable.MkdirAll(fs, "n"))
	g := NewGate(5)
	require.NoError(t, g.CheckFolder(fs, "n"))
	require.NoError(t, g.KeepFolder(fs, "n"))
	b, err := durable.Read(fs, "n/level")
	require.NoError(t, err)
	require.Nil(t, b, "before anything was finalized a program without levels may come back")

	g.Raise(4, 3)
	require.NoError(t, g.KeepFolder(fs, "n"))
	b, err = durable.Read(fs, "n/level")
	require.NoError(t, err)
	require.Equal(t, "antipode level 4\n", string(b))

	g = NewGate(4)
	require.NoError(t, g.CheckFolder(fs, "n"))
	require.Equal(t, Level(4), g.Floor())
	require.Equal(t, Base, g.Active(), "the catalog says what may be written")
	err = NewGate(3).CheckFolder(fs, "n")
	require.ErrorIs(t, err, ErrFloor)
	require.ErrorIs(t, err, ErrLater)
	require.ErrorContains(t, err, "n: the upgrade of this cluster was finalized at feature level 4, this program knows level 3 at most")

	for _, damaged := range []string{"", "antipode level \n", "antipode level x\n", "antipode data 4\n", "antipode level 4294967296\n"} {
		require.NoError(t, durable.Replace(fs, "n", "level", []byte(damaged)))
		err = NewGate(9).CheckFolder(fs, "n")
		require.ErrorIs(t, err, ErrFile, damaged)
		require.Equal(t, fmt.Sprintf("the file level is damaged: n/level has %q: copy it from another node of the location, "+
			"or write the line \"antipode level N\", where N is the floor that antipodectl status -o json has", damaged), err.Error())
	}
	require.NoError(t, durable.Replace(fs, "n", "level", []byte("antipode level 4"))) // Without its line feed.
	require.NoError(t, NewGate(4).CheckFolder(fs, "n"))
}

// Levels never fall, and each that this program knows has a name.
//
// Capability: Two locations: Feature levels.
func TestLevels(t *testing.T) {
	g := NewGate(Known)
	g.Raise(3, 2)
	g.Raise(2, 1)
	require.Equal(t, Level(3), g.Floor())
	require.Equal(t, Level(2), g.Active())
	require.True(t, g.Allows(2))
	require.False(t, g.Allows(3))
	for l := Base; l <= Known; l++ {
		require.NotEmpty(t, l.Name())
	}
	require.Empty(t, (Known + 1).Name())
}
