package seglog

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/seglog/logtest"
	"antipode/stamp/state"
)

// readFS counts reads of segments.
type readFS struct {
	vfs.FS
	reads, bytes *int
}

func (fs readFS) OpenReadWrite(path string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(path, c, o...)
	if err != nil {
		return nil, err
	}
	return readFile{f, fs}, nil
}

type readFile struct {
	vfs.File
	fs readFS
}

func (f readFile) ReadAt(p []byte, off int64) (int, error) {
	*f.fs.reads++
	*f.fs.bytes += len(p)
	return f.File.ReadAt(p, off)
}

// Entries for a peer that is behind come from the disk by a few reads, although those of another range lie between them: each
// of an entry would hold the scheduler for a turn of the disk.
//
// Capability: Storage on a node: One range on a slow disk does not hold the others of its node.
func TestEntriesAreReadTogether(t *testing.T) {
	const passes, size = 3000, 1 << 10
	fs := readFS{vfs.NewMem(), new(int), new(int)}
	l, err := Open(testDir, state.Options{FS: fs})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	mine, other := logtest.Range(t, l, 4), logtest.Range(t, l, 5)
	entries := logtest.Entries(1, 1, 2*passes, size)
	for i := range passes {
		logtest.Commit(t, l, true, func(b state.LogBatch) error {
			if err := other.Append(b, logtest.Entries(uint64(i+1), 1, 1, size)); err != nil {
				return err
			}
			return mine.Append(b, entries[2*i:2*i+2])
		})
	}
	*fs.reads, *fs.bytes = 0, 0
	const asked = 512 << 10
	got, err := mine.Entries(1, 2*passes+1, asked)
	require.NoError(t, err)
	require.Equal(t, entries[:len(got)], got)
	require.Greater(t, len(got), asked/size*9/10)
	require.LessOrEqual(t, *fs.reads, 2, "reads")
	require.LessOrEqual(t, *fs.bytes, 3*asked, "bytes, with those of the other range and the ends of pages")
	got, err = mine.Entries(1, 2*passes+1, 1<<30) // The newest are in memory.
	require.NoError(t, err)
	require.Equal(t, entries, got)
	require.LessOrEqual(t, *fs.reads, 12)
}
