package membership

import (
	"bytes"
	"encoding/hex"
	"errors"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/durable"
)

// The file stays what docs/format/marks.md shows. A damaged one, and one of a later version, is none: nothing is
// remembered, and nothing wrong.
func TestMarksFile(t *testing.T) {
	of := map[markOf]LogMark{{4, 3}: {Replica: 3, Index: 9, Term: 2}, {4, 1}: {Replica: 5, Index: 256, Term: 2}}
	b := encodeMarks(of)
	require.Equal(t, "010200"+
		"04000000"+"0100000000000000"+"0500000000000000"+"0001000000000000"+"0200000000000000"+
		"04000000"+"0300000000000000"+"0300000000000000"+"0900000000000000"+"0200000000000000"+"4b65b45a", hex.EncodeToString(b))
	got, ok := parseMarks(b)
	require.True(t, ok)
	require.Equal(t, of, got)
	for i := range b {
		_, ok := parseMarks(b[:i])
		require.False(t, ok)
		flipped := bytes.Clone(b)
		flipped[i] ^= 4
		_, ok = parseMarks(flipped)
		require.False(t, ok)
	}
}

func mark(r geo.ReplicaID, index, term uint64) LogMark {
	return LogMark{Replica: r, Index: index, Term: term}
}

// A node remembers the highest mark of another node's later replica: reports come late and twice.
//
// Capability: Two locations: Two versions at once.
func TestMarksKeepTheLater(t *testing.T) {
	k := OpenMarks(vfs.NewMem(), "", slog.New(slog.DiscardHandler))
	of := markOf{4, 1}
	for _, c := range []struct{ report, kept LogMark }{
		{mark(1, 9, 2), mark(1, 9, 2)},
		{mark(1, 8, 2), mark(1, 9, 2)},
		{mark(5, 3, 2), mark(5, 3, 2)},
		{mark(1, 10, 2), mark(5, 3, 2)},
		{mark(5, 4, 3), mark(5, 4, 3)},
		{LogMark{Replica: 5, Index: 6, Term: 3, In: 4}, mark(5, 6, 3)},
	} {
		k.remember(of, c.report)
		require.Equal(t, c.kept, k.Of(4, 1))
	}
}

// takePart makes the identity of the replica of range 4 in a node's folder.
func takePart(t *testing.T, fs vfs.FS, dir string, p Phase) {
	t.Helper()
	require.NoError(t, durable.MkdirAll(fs, fs.PathJoin(dir, "replicas")))
	require.NoError(t, Save(fs, dir, 4, &Identity{Phase: p, Replica: 3}, three))
}

// A node remembers marks only of the stamp that it takes part in. A folder that was emptied, but for that file, would
// name marks of the former stamp, whose replicas had the same ids: they are gone for good before a replica begins.
func TestMarksOfAFormerStamp(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		phase Phase
		kept  bool
	}{{0, false}, {Joining, false}, {Member, true}, {Forgotten, true}, {Lost, true}, {Rebuilding, true}, {Recovering, true}} {
		mem := vfs.NewCrashableMem()
		require.NoError(t, durable.MkdirAll(mem, "n"))
		require.NoError(t, durable.Replace(mem, "n", marksFile, encodeMarks(map[markOf]LogMark{{4, 1}: mark(1, 9, 2)})))
		if c.phase != 0 {
			takePart(t, mem, "n", c.phase)
		}
		require.Equal(t, c.kept, OpenMarks(mem, "n", log).Of(4, 1) != LogMark{}, "%v", c.phase)
		crashed := mem.CrashClone(vfs.CrashCloneCfg{})
		takePart(t, crashed, "n", Member)
		require.Equal(t, c.kept, OpenMarks(crashed, "n", log).Of(4, 1) != LogMark{}, "%v, after it began", c.phase)
	}
}

// A restart, and a crash after Keep, knows what was remembered. Keep writes every keepTicks-th tick at most, one write at
// a time, and nothing that has not changed. A file that cannot be written leaves the one of before.
func TestMarksAreKept(t *testing.T) {
	mem, log := vfs.NewCrashableMem(), slog.New(slog.DiscardHandler)
	require.NoError(t, durable.MkdirAll(mem, "n"))
	takePart(t, mem, "n", Member)
	k := OpenMarks(mem, "n", log)
	var runs []func()
	later := func(f func()) { runs = append(runs, f) }
	kept := func(fs vfs.FS) LogMark { return OpenMarks(fs, "n", log).Of(4, 1) }

	k.Keep(keepTicks, later)
	require.Empty(t, runs, "nothing to remember")
	k.remember(markOf{4, 1}, mark(1, 9, 2))
	k.Keep(keepTicks+1, later)
	require.Empty(t, runs)
	k.Keep(2*keepTicks, later)
	require.Len(t, runs, 1)
	k.remember(markOf{4, 1}, mark(1, 10, 2))
	k.Keep(3*keepTicks, later)
	require.Len(t, runs, 1, "one is under way")
	runs[0]()
	require.Equal(t, mark(1, 9, 2), kept(mem.CrashClone(vfs.CrashCloneCfg{})))
	k.Keep(4*keepTicks, later)
	require.Len(t, runs, 2)
	runs[1]()
	k.Keep(5*keepTicks, later)
	require.Len(t, runs, 2)
	require.Equal(t, mark(1, 10, 2), kept(mem.CrashClone(vfs.CrashCloneCfg{})))

	k.remember(markOf{4, 1}, mark(1, 11, 2))
	fails := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync {
			return errors.New("no")
		}
		return nil
	}))
	k.fs = fails
	k.Close()
	require.Equal(t, mark(1, 10, 2), kept(mem))
	k.fs = mem
	k.Close()
	require.Equal(t, mark(1, 11, 2), kept(mem.CrashClone(vfs.CrashCloneCfg{})))
}
