package membership

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/durable"
	"antipode/stamp/feature"
)

var north1 = Owner{Kind: Data, Location: "north", Node: 1}

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

// ownerOfBefore is what programs that knew neither kinds nor stamps wrote.
const ownerOfBefore = "010100000000000000" + "05006e6f727468" + "708c0ff3"

// The file stays what docs/format/owner.md shows. One damaged byte is read from the other copy and repaired; both
// copies damaged are an error that names the remedy and changes nothing.
func TestOwnerFile(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, Claim(fs, "d", north1))
	file := readFile(t, fs, "d/owner")
	one := north1.encode()
	require.Equal(t, ownerOfBefore+"01"+"00000000000000000000000000000000"+"cebcbe91", hex.EncodeToString(one))
	require.Equal(t, durable.Twice(one), file)
	require.NoError(t, Claim(fs, "d", north1))

	for i := range one {
		_, err := parseOwner(one[:i])
		if i == len(ownerOfBefore)/2 { // The first part alone is what earlier programs wrote.
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, errOwnerBytes)
		}
		for _, at := range []int{i, durable.SecondCopy + i} {
			damaged := bytes.Clone(file)
			damaged[at] ^= 4
			writeOwner(t, fs, damaged)
			require.ErrorIs(t, Claim(fs, "d", Owner{Kind: Data, Location: "south", Node: 1}), ErrOwner)
			require.Equal(t, damaged, readFile(t, fs, "d/owner"))
			require.NoError(t, Claim(fs, "d", north1), "byte %d", at)
			require.Equal(t, file, readFile(t, fs, "d/owner"), "byte %d", at)
		}
		damaged := bytes.Clone(file)
		damaged[i] ^= 4
		damaged[durable.SecondCopy+i] ^= 4
		writeOwner(t, fs, damaged)
		err = Claim(fs, "d", north1)
		require.ErrorIs(t, err, ErrOwner)
		require.ErrorContains(t, err, "d/owner is damaged, twice")
		require.Equal(t, damaged, readFile(t, fs, "d/owner"))
	}

	later := []byte{ownerVersion + 1, 9}
	writeOwner(t, fs, durable.Twice(binary.LittleEndian.AppendUint32(later, crc.Of(later))))
	err := Claim(fs, "d", north1)
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
	require.NoError(t, Claim(fs, "/x/data", Owner{Kind: Data, Location: "southcentralus", Node: 1}))
	require.EqualError(t, Claim(fs, "/x/data", Owner{Kind: Data, Location: "northcentralus", Node: 1}),
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
			err := Claim(fs, "d", north1)
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
	process := func(l geo.Location) Owner { return Owner{Kind: Process, Location: l, Node: 1} }
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll("d/south/south-1/log", 0o755))
	require.NoError(t, fs.MkdirAll("d/south/nats", 0o755))
	require.ErrorIs(t, Claim(fs, "d", process("north")), ErrOwner)
	require.Nil(t, readFile(t, fs, "d/owner"))
	require.NoError(t, Claim(fs, "d", process("south")))
	require.NoError(t, Claim(fs, "d", process("south")))
	require.ErrorIs(t, Claim(fs, "d", process("north")), ErrOwner)
	require.NoError(t, Claim(fs, "new", process("north")))
	require.ErrorIs(t, Claim(fs, "new", process("south")), ErrOwner)
}

// R4: what folders are for is part of whose they are. A file of before is a node's or its process's. The folder of
// antipode dev from before there was a file shows by its several nodes.
func TestR4OwnerOfAnotherKind(t *testing.T) {
	fs := vfs.NewMem()
	kinds := []FolderKind{Data, Process, Dev, Bus, Clone, Witness}
	of := func(k FolderKind) Owner { return Owner{Kind: k, Location: "north", Node: 1} }
	for _, have := range kinds {
		dir := fmt.Sprint(have)
		require.NoError(t, Claim(fs, dir, of(have)))
		for _, want := range kinds {
			err := Claim(fs, dir, of(want))
			require.Equal(t, Check(fs, dir, of(want)), err)
			if want == have {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, ErrOwner, "%d for %d", want, have)
			require.NotContains(t, err.Error(), "\n")
		}
	}
	require.EqualError(t, Claim(fs, "2", Owner{Kind: Dev}),
		"the data folder 2 belongs to node north-1, not to antipode dev: nothing of it was changed; "+
			"start north-1 with it, or give antipode dev its own folder (runbook wrong-folder)")

	before, err := hex.DecodeString(ownerOfBefore)
	require.NoError(t, err)
	for _, want := range kinds {
		writeOwner(t, fs, durable.Twice(before))
		if err := Claim(fs, "d", of(want)); want == Data || want == Process {
			require.NoError(t, err)
			require.Equal(t, durable.Twice(of(want).encode()), readFile(t, fs, "d/owner"))
		} else {
			require.ErrorIs(t, err, ErrOwner)
		}
	}

	require.NoError(t, fs.MkdirAll("dev/north/north-1/log", 0o755))
	require.NoError(t, fs.MkdirAll("dev/north/north-2/log", 0o755))
	err = Claim(fs, "dev", of(Process))
	require.ErrorIs(t, err, ErrOwner)
	require.ErrorContains(t, err, "start antipode dev with it")
}

// A claim is durable when it returns: it outlives a crash.
func TestOwnerSurvivesCrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	require.NoError(t, Claim(fs, "a/d", north1))
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	require.Equal(t, durable.Twice(north1.encode()), readFile(t, after, "a/d/owner"))
}
