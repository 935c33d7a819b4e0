package state

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// standingFS is a disk on which no table is begun while it stands, by a flush or by a compaction.
type standingFS struct {
	vfs.FS
	by vfs.DiskWriteCategory
	mu sync.RWMutex // held while it stands
}

func (fs *standingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") && c == fs.by {
		fs.mu.RLock()
		defer fs.mu.RUnlock()
	}
	return fs.FS.Create(name, c)
}

const pressureWait = 30 * time.Second

// A store that cannot flush reports that it is pressed, before a writer would have to wait and before its memtables take
// more than they may. It calls back when it is not pressed any more.
func TestPressedWhileNothingIsFlushed(t *testing.T) {
	fs := &standingFS{FS: vfs.NewMem(), by: "pebble-memtable-flush"}
	var eased atomic.Int64
	const memTable = 64 << 10
	s, err := Open("state", Options{FS: fs, StateMemTableBytes: memTable, Eased: func() { eased.Add(1) }})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.False(t, s.Pressed())
	fs.mu.Lock()
	stands := true
	goOn := func() {
		if stands {
			stands = false
			fs.mu.Unlock()
		}
	}
	defer goOn()
	row := strings.Repeat("x", 4<<10)
	written := 0
	for ; !s.Pressed(); written++ {
		require.Less(t, written, 1000)
		write(t, s, set(fmt.Sprint(written), row)) // It would hang once the store makes writers wait.
		if s.pressure.looking.Load() {
			require.Eventually(t, func() bool { return !s.pressure.looking.Load() }, pressureWait, time.Millisecond)
		}
	}
	require.GreaterOrEqual(t, written*len(row), (memTablesMax-2)*memTable, "it takes what may be in memory")
	require.LessOrEqual(t, s.db.Metrics().MemTable.Size, uint64(memTablesMax+1)*memTable)
	for i := range 2 * memTable / len(row) { // What others write meanwhile has room.
		write(t, s, set(fmt.Sprint("other", i), row))
	}
	require.True(t, s.Pressed())
	require.Zero(t, eased.Load())
	goOn()
	require.Eventually(t, func() bool { return eased.Load() > 0 && !s.Pressed() }, pressureWait, time.Millisecond)
	require.Equal(t, row, value(s.Get([]byte("0"))))
}

// A look at the store may wait for the disk. Meanwhile no more is written than a memtable takes.
func TestPressedWhileALookStands(t *testing.T) {
	s := openState(t, vfs.NewMem())
	defer func() { require.NoError(t, s.Close()) }()
	s.pressure.looking.Store(true) // One is under way, and stands.
	row := strings.Repeat("x", 1<<10)
	written := 0
	for ; !s.Pressed(); written++ {
		require.Less(t, written, 64)
		write(t, s, set(fmt.Sprint(written), row))
	}
	require.Greater(t, written, 32)
	s.pressure.looking.Store(false)
	require.Eventually(t, func() bool { return !s.Pressed() }, pressureWait, time.Millisecond)
}

// Files over each other in level 0, since no compaction keeps up, press the store too.
func TestPressedByLevel0(t *testing.T) {
	fs := &standingFS{FS: vfs.NewMem(), by: "pebble-compaction"}
	s := openState(t, fs)
	defer func() { require.NoError(t, s.Close()) }()
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for i := range levelFilesMax {
		require.False(t, s.over(), i)
		write(t, s, set("k", fmt.Sprint(i)))
		require.NoError(t, s.Flush())
	}
	require.True(t, s.over())
}

// A store that is closed presses nobody.
func TestPressedOfAClosedStore(t *testing.T) {
	s := openState(t, vfs.NewMem())
	s.pressure.written.Store(lookBytes)
	require.NoError(t, s.Close())
	require.True(t, s.Pressed())
	require.True(t, s.Pressed(), "it does not look at what is gone")
}
