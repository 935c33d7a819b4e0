package queues_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services/queues"
	"antipode/stamp/node"
)

// tables is a file system that counts what is written to tables of the state.
type tables struct {
	vfs.FS
	written atomic.Int64
}

func (f *tables) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return file, err
	}
	return &table{file, f}, nil
}

type table struct {
	vfs.File
	of *tables
}

func (t *table) Write(b []byte) (int, error) {
	t.of.written.Add(int64(len(b)))
	return t.File.Write(b)
}

// BenchmarkBytes is what one node writes for a message: to its log, to its state when that is flushed afterwards, and
// what remains of it in the state after a compaction. Records for another location are not in it. The log is cut when a
// memtable is full: give -benchtime 1000x.
func BenchmarkBytes(b *testing.B) {
	for _, bytes := range []int{100, 1024, 4096} {
		for _, whole := range []bool{false, true} {
			b.Run(fmt.Sprintf("bytes=%d/deleted=%t", bytes, whole), func(b *testing.B) { benchmarkBytes(b, bytes, whole) })
		}
	}
}

func benchmarkBytes(b *testing.B, bytes int, whole bool) {
	disk := &tables{FS: vfs.NewMem()}
	s, q := benchStamp(b, disk)
	all := queues.New(queues.Options{Stamp: s, Writer: primary.New(s), Clock: clock.System{}})
	text := make([]byte, bytes)
	_, err := rand.NewChaCha8([32]byte{1}).Read(text)
	require.NoError(b, err)
	id := geo.FirstRange(geo.Queue)
	first := s.Node(1)
	require.NoError(b, first.State().Flush())
	log, before := first.LogBytes(id), disk.written.Load()
	benchEach(b, b.N, func() error {
		_, err := all.Put(b.Context(), q, queues.PutOptions{Text: text, TTL: -1})
		if err != nil || !whole {
			return err
		}
		got, err := all.Get(b.Context(), q, 1, hour)
		if err != nil || len(got) == 0 {
			return fmt.Errorf("%d messages: %w", len(got), err)
		}
		return all.Delete(b.Context(), q, got[0].ID, got[0].Receipt)
	})
	b.StopTimer()
	per := func(n int64) float64 { return float64(n) / float64(b.N) }
	b.ReportMetric(per(int64(first.LogBytes(id)-log)), "log-B/msg")
	for _, n := range s.Nodes() {
		require.NoError(b, s.Node(n).State().Flush())
	}
	b.ReportMetric(per(disk.written.Load()-before)/3, "flushed-B/msg")
	require.NoError(b, s.Close())
	b.ReportMetric(per(compacted(b, disk, path.Join("data", node.Name("north", 1), "state"))), "left-B/msg")
}

// compacted compacts the tables of a state, and returns their size.
func compacted(b testing.TB, fs vfs.FS, dir string) int64 {
	db, err := pebble.Open(dir, &pebble.Options{
		FS: fs, FormatMajorVersion: pebble.FormatNewest, Logger: quietLog{}, DisableWAL: true, ErrorIfNotExists: true,
	})
	require.NoError(b, err)
	require.NoError(b, db.Compact(b.Context(), []byte{0}, []byte{0xff, 0xff}, false))
	size := db.Metrics().Total().TablesSize
	require.NoError(b, db.Close())
	return size
}

// quietLog drops what Pebble reports.
type quietLog struct{}

func (quietLog) Infof(string, ...any)              {}
func (quietLog) Errorf(string, ...any)             {}
func (quietLog) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
