package membership

import (
	"encoding/hex"
	"errors"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/durable"
	"antipode/stamp/ranges"
)

// joined makes the data folder of a node that joined with the others, under nonces that begin with first, in its own file
// system.
func joined(t *testing.T, id geo.NodeID, first Nonce) vfs.FS {
	t.Helper()
	nodes := []geo.NodeID{1, 2, 3}
	fs := vfs.NewMem()
	d := &Identity{Phase: Member, Replica: geo.ReplicaID(id), Nonce: first + Nonce(id), Peers: map[geo.NodeID]Nonce{}}
	for _, other := range nodes {
		if other != id {
			d.Peers[other] = first + Nonce(other)
		}
	}
	require.NoError(t, fs.MkdirAll("d/replicas", 0o755))
	require.NoError(t, durable.Write(fs, "d", "placement", durable.Twice(EncodePlacement(ranges.Everywhere(nodes)))))
	require.NoError(t, Save(fs, "d", catalog, d, nodes))
	return fs
}

// setPhase changes what the folder of a node holds of the catalog's replica.
func setPhase(t *testing.T, fs vfs.FS, p Phase, forget bool) {
	t.Helper()
	d, err := Load(fs, "d", catalog)
	require.NoError(t, err)
	d.Phase = p
	if forget {
		d.Peers = map[geo.NodeID]Nonce{}
	}
	require.NoError(t, Save(fs, "d", catalog, d, []geo.NodeID{1, 2, 3}))
}

func north(t *testing.T, fs vfs.FS, id geo.NodeID) *Folder {
	t.Helper()
	f, err := ClaimFolder(fs, "d", "north", id)
	require.NoError(t, err)
	return f
}

// All nodes that joined together compute one id, which no other installation has, and it stays the same for ever: it is
// durable with a claim. docs/format/owner.md shows the file.
func TestStampOfAFolder(t *testing.T) {
	fs1 := joined(t, 1, 100)
	one := north(t, fs1, 1).Stamp()
	require.Equal(t, "d0c7d6c538170bcaa5dd42e4008726db", one.String())
	require.Equal(t, one, ParseStampID(one.String()))
	require.Equal(t, one, north(t, joined(t, 2, 100), 2).Stamp())
	require.Equal(t, one, north(t, joined(t, 3, 100), 3).Stamp())
	require.NotEqual(t, one, north(t, joined(t, 1, 200), 1).Stamp())

	file := readFile(t, fs1, "d/owner")
	require.Equal(t, "01010000000000000005006e6f727468708c0ff301d0c7d6c538170bcaa5dd42e4008726dba824a644", hex.EncodeToString(file[:len(file)-durable.SecondCopy]))
	setPhase(t, fs1, Lost, true)
	require.Equal(t, one, north(t, fs1, 1).Stamp(), "from the file")
	require.Equal(t, file, readFile(t, fs1, "d/owner"))
}

// A folder that has not joined with all others gives no id: neither before it joined nor of a node that was rebuilt
// in an empty folder. It is found once it is there.
func TestStampIsNotKnown(t *testing.T) {
	fs := joined(t, 1, 100)
	setPhase(t, fs, Joining, false)
	f := north(t, fs, 1)
	require.True(t, f.Stamp().IsZero())
	setPhase(t, fs, Member, false)
	id := f.Stamp()
	require.False(t, id.IsZero())
	o, _, err := readOwner(fs, "d")
	require.NoError(t, err)
	require.Equal(t, id, o.Stamp)

	fs = joined(t, 1, 100)
	setPhase(t, fs, Member, true)
	require.True(t, north(t, fs, 1).Stamp().IsZero())
	for _, text := range []string{"", "12", "zz" + id.String()[2:], id.String() + "00"} {
		require.True(t, ParseStampID(text).IsZero(), text)
	}
}

// R4: a node refuses one with a folder of another stamp, at both ends, with one line, until it comes back with the
// right one. A node that does not know its stamp, like one of an earlier version, is not refused.
//
// Capability: Storage on a node: Disks that were set back while their location restarts are found (R4).
// Capability: Two locations: A folder names its node, stamp and use, and is refused to another one (R4).
func TestR4FolderOfAnotherStamp(t *testing.T) {
	one, foreign, two := north(t, joined(t, 1, 100), 1), north(t, joined(t, 2, 200), 2), north(t, joined(t, 2, 100), 2)
	for range 2 {
		err := one.Meet(2, foreign.Stamp())
		require.ErrorIs(t, err, ErrStamp)
		require.Equal(t, []string{err.Error()}, one.Refused())
		require.EqualError(t, err, "node north-1 has a folder of stamp "+one.Stamp().Short()+" and node north-2 one of stamp "+foreign.Stamp().Short()+
			": they are of two installations, and neither takes anything from the other; give the one that the third node refuses too "+
			"the folder that it had in this installation, or an empty one (runbook wrong-folder)")
	}
	require.ErrorIs(t, foreign.Meet(1, one.Stamp()), ErrStamp)
	require.NoError(t, one.Meet(2, two.Stamp()))
	require.Empty(t, one.Refused())
	require.NoError(t, one.Meet(2, StampID{}))
	require.Empty(t, one.Refused())
}

// R4: a folder in which nothing took part yet becomes one of the stamp that it meets, before anything is taken from it,
// durably. One that has data and cannot show its stamp takes none: it may be of another.
//
// Capability: Storage on a node: Disks that were set back while their location restarts are found (R4).
// Capability: Two locations: A folder names its node, stamp and use, and is refused to another one (R4).
func TestR4EmptyFolderJoinsTheStamp(t *testing.T) {
	id := north(t, joined(t, 1, 100), 1).Stamp()
	for name, c := range map[string]struct {
		phase Phase
		takes bool
	}{"new": {0, true}, "joining": {Joining, true}, "forgotten": {Forgotten, true}, "lost": {Lost, false}, "rebuilt before": {Member, false}} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.FS(vfs.NewMem())
			if c.phase != 0 {
				fs = joined(t, 2, 300)
				setPhase(t, fs, c.phase, true)
			}
			f := north(t, fs, 2)
			require.NoError(t, f.Meet(1, StampID{}))
			require.True(t, f.Stamp().IsZero())
			require.NoError(t, f.Meet(1, id))
			require.Equal(t, c.takes, f.Stamp() == id)
			require.Equal(t, c.takes, north(t, fs, 2).Stamp() == id, "after a restart")
			if other := (StampID{7}); c.takes {
				require.ErrorIs(t, f.Meet(3, other), ErrStamp)
			} else {
				require.NoError(t, f.Meet(3, other))
			}
		})
	}
}

// A folder of which the file cannot be written joins no stamp: after a restart it would not know it.
func TestFolderThatCannotKeepTheStamp(t *testing.T) {
	fs := vfs.NewMem()
	f := north(t, fs, 2)

	f.fs = readOnly{fs}
	require.ErrorContains(t, f.Meet(1, StampID{7}), "read-only")
	require.True(t, f.Stamp().IsZero())
}

// The folder of a bus is refused to the bus of another installation once both are known.
func TestOwnerWithAnotherStamp(t *testing.T) {
	fs := vfs.NewMem()
	bus := Owner{Kind: Bus, Location: "north", Node: 1}
	of := func(s StampID) Owner { o := bus; o.Stamp = s; return o }
	require.NoError(t, Claim(fs, "d", bus))
	require.NoError(t, Claim(fs, "d", of(StampID{1})))
	require.NoError(t, Claim(fs, "d", bus))
	require.NoError(t, Claim(fs, "d", of(StampID{1})))
	require.EqualError(t, Claim(fs, "d", of(StampID{2})), "the data folder d belongs to the bus of north-1 of another installation, stamp 01000000, "+
		"not to the bus of north-1: nothing of it was changed; this one is stamp 02000000: keep the folder for the other, "+
		"or give the bus of north-1 its own folder (runbook wrong-folder)")
}

// readOnly is a file system that makes nothing.
type readOnly struct{ vfs.FS }

var errReadOnly = errors.New("read-only file system")

func (readOnly) MkdirAll(string, os.FileMode) error { return errReadOnly }

func (readOnly) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errReadOnly }
