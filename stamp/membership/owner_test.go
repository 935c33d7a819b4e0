package membership

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/durable"
	"antipode/stamp/feature"
)

var north1 = Owner{"north", 1}

// writeOwner writes the file owner of folder d.
func writeOwner(t *testing.T, fs vfs.FS, file []byte) {
	t.Helper()
	require.NoError(t, fs.MkdirAll("d", 0o755))
	require.NoError(t, durable.Write(fs, "d", ownerFile, bytes.Clone(file)))
}

func readFile(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	b, err := durable.Read(fs, path)
	require.NoError(t, err)
	return b
}

// The file stays what docs/format/owner.md shows. One damaged byte is read from the other copy and repaired; both
// copies damaged are an error that names the remedy and changes nothing.
func TestOwnerFile(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, ClaimFolder(fs, "d", north1))
	file := readFile(t, fs, "d/owner")
	one := north1.encode()
	require.Equal(t, "010100000000000000"+"05006e6f727468"+"708c0ff3", hex.EncodeToString(one))
	require.Equal(t, durable.Twice(one), file)
	require.NoError(t, ClaimFolder(fs, "d", north1))

	for i := range one {
		_, err := parseOwner(one[:i])
		require.ErrorIs(t, err, errOwnerBytes)
		for _, at := range []int{i, durable.SecondCopy + i} {
			damaged := bytes.Clone(file)
			damaged[at] ^= 4
			writeOwner(t, fs, damaged)
			require.ErrorIs(t, ClaimFolder(fs, "d", Owner{"south", 1}), ErrOwner)
			require.Equal(t, damaged, readFile(t, fs, "d/owner"))
			require.NoError(t, ClaimFolder(fs, "d", north1), "byte %d", at)
			require.Equal(t, file, readFile(t, fs, "d/owner"), "byte %d", at)
		}
		damaged := bytes.Clone(file)
		damaged[i] ^= 4
		damaged[durable.SecondCopy+i] ^= 4
		writeOwner(t, fs, damaged)
		err = ClaimFolder(fs, "d", north1)
		require.ErrorIs(t, err, ErrOwner)
		require.ErrorContains(t, err, "d/owner is damaged, twice")
		require.Equal(t, damaged, readFile(t, fs, "d/owner"))
	}

	later := []byte{ownerVersion + 1, 9}
	writeOwner(t, fs, durable.Twice(binary.LittleEndian.AppendUint32(later, crc.Of(later))))
	err := ClaimFolder(fs, "d", north1)
	require.ErrorIs(t, err, feature.ErrLater)
	require.NotErrorIs(t, err, ErrOwner)
}

// Any bytes begin with an owner that is written as it was read, or are refused.
func FuzzParseOwner(f *testing.F) {
	f.Add(north1.encode())
	f.Add(Owner{}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := parseOwner(b); err == nil {
			require.True(t, bytes.HasPrefix(b, o.encode()))
		}
	})
}

// R4: the refusal is one line that names both nodes and the remedy.
func TestR4OwnerRefusal(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, ClaimFolder(fs, "/x/data", Owner{"southcentralus", 1}))
	require.EqualError(t, ClaimFolder(fs, "/x/data", Owner{"northcentralus", 1}),
		"the data folder /x/data belongs to node southcentralus-1, not to northcentralus-1: nothing of it was changed; "+
			"start southcentralus-1 with it, or give northcentralus-1 its own folder (runbook wrong-folder)")
}

// R4: a folder from before there were owners is refused if an identity in it cannot be this node's, and claimed otherwise.
func TestR4OwnerOfAnEarlierFolder(t *testing.T) {
	for name, c := range map[string]struct {
		of      Identity
		another bool
	}{
		"own, joining":                          {Identity{Phase: Joining, Replica: 1}, false},
		"another's, joining":                    {Identity{Phase: Joining, Replica: 2}, true},
		"another's, forgotten":                  {Identity{Phase: Forgotten, Replica: 2}, true},
		"own, joined":                           {Identity{Phase: Member, Replica: 1, Peers: map[geo.NodeID]Nonce{2: 5, 3: 6}}, false},
		"own, rebuilt under another's number":   {Identity{Phase: Member, Replica: 4, Peers: map[geo.NodeID]Nonce{2: 5}}, false},
		"another's, which joined with this one": {Identity{Phase: Member, Replica: 2, Peers: map[geo.NodeID]Nonce{1: 5, 3: 6}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			require.NoError(t, fs.MkdirAll("d/replicas", 0o755))
			require.NoError(t, Save(fs, "d", 4, &c.of, []geo.NodeID{1, 2, 3}))
			err := ClaimFolder(fs, "d", north1)
			if c.another {
				require.ErrorIs(t, err, ErrOwner)
				require.ErrorContains(t, err, "replicas/r4")
				require.Nil(t, readFile(t, fs, "d/owner"))
				return
			}
			require.NoError(t, err)
			require.NotNil(t, readFile(t, fs, "d/owner"))
		})
	}
}

// R4: the folder of a process, too, is refused to another node's: by its file, or, from before, by the folder in it.
func TestR4OwnerOfAProcess(t *testing.T) {
	fs, south1 := vfs.NewMem(), Owner{"south", 1}
	require.NoError(t, fs.MkdirAll("d/south/south-1/log", 0o755))
	require.NoError(t, fs.MkdirAll("d/south/nats", 0o755))
	require.ErrorIs(t, ClaimProcess(fs, "d", north1), ErrOwner)
	require.Nil(t, readFile(t, fs, "d/owner"))
	require.NoError(t, ClaimProcess(fs, "d", south1))
	require.NoError(t, ClaimProcess(fs, "d", south1))
	require.ErrorIs(t, ClaimProcess(fs, "d", north1), ErrOwner)
	require.NoError(t, ClaimProcess(fs, "new", north1))
	require.ErrorIs(t, ClaimProcess(fs, "new", south1), ErrOwner)
}

// A claim is durable when it returns: it outlives a crash.
func TestOwnerSurvivesCrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	require.NoError(t, ClaimFolder(fs, "a/d", north1))
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	require.Equal(t, durable.Twice(north1.encode()), readFile(t, after, "a/d/owner"))
}
