package queues_test

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services/queues"
	"antipode/stamp"
)

// leading returns the node that leads a range.
func leading(t *testing.T, s *stamp.Stamp, id geo.RangeID) geo.NodeID {
	leader := s.Leader(id)
	require.NotNil(t, leader)
	for _, n := range s.Nodes() {
		if s.Node(n).Range(id) == leader {
			return n
		}
	}
	t.Fatal("no node has the leader")
	return 0
}

// traces is what the tables of a state have of a message: rows, and keys of rows that were deleted.
type traces struct{ rows, tombstones int }

// tracesIn reads every key of every table in a folder, those that are deleted or covered included, and counts what names one of
// some messages: by its id in the key, or by its text in the value.
func tracesIn(t *testing.T, fs vfs.FS, dir string, of []queues.Message) (out traces) {
	files, err := fs.List(dir)
	require.NoError(t, err)
	for _, name := range files {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		f, err := fs.Open(path.Join(dir, name))
		require.NoError(t, err)
		readable, err := sstable.NewSimpleReadable(f)
		require.NoError(t, err)
		o := &pebble.Options{}
		o.EnsureDefaults()
		r, err := sstable.NewReader(context.Background(), readable, o.MakeReaderOptions())
		require.NoError(t, err)
		it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
		require.NoError(t, err)
		for kv := it.First(); kv != nil; kv = it.Next() {
			value, _, err := kv.Value(nil)
			require.NoError(t, err)
			for _, m := range of {
				switch {
				case !bytes.Contains(kv.K.UserKey, m.ID[:]) && !bytes.Contains(value, m.Text):
				case kv.Kind() == pebble.InternalKeyKindSet:
					out.rows++
				default:
					out.tombstones++
				}
			}
		}
		require.NoError(t, it.Close())
		require.NoError(t, r.Close())
	}
	return out
}

// Q18: messages of any length that were put, got and deleted between two flushes bring no row into the files of the
// state: the flush writes nothing but the keys of what was deleted, and a compaction drops these too. The files
// have one row of a message that was put and got, at the place where it was moved to (protocol/queue.md 26).
//
// Capability: Queues: Deleted messages in files.
func TestQ18NothingOfDeletedMessagesInFiles(t *testing.T) {
	t.Parallel()
	disk := &tables{FS: vfs.NewMem()}
	s, q := benchStamp(t, disk)
	all := queues.New(queues.Options{Stamp: s, Writer: primary.New(s), Clock: clock.System{}})
	at := leading(t, s, geo.FirstRange(geo.Queue))
	require.NoError(t, s.Node(at).State().Flush())
	before := disk.written.Load()
	put := func(name string, length int) queues.Message {
		text := []byte(name + strings.Repeat("x", length-len(name)))
		m, err := all.Put(t.Context(), q, queues.PutOptions{Text: text, TTL: -1})
		require.NoError(t, err)
		m.Text = text[:len(name)]
		return m
	}
	get := func() queues.Message {
		got, err := all.Get(t.Context(), q, 1, time.Hour)
		require.NoError(t, err)
		require.Len(t, got, 1)
		return got[0]
	}
	var gone []queues.Message
	for i := range 30 {
		m := put(fmt.Sprintf("gone-%d.", i), []int{100, queues.InlineMax + 1, 60_000}[i%3])
		gone = append(gone, m)
		got := get()
		require.Equal(t, m.ID, got.ID)
		if i%2 == 0 {
			var err error
			got, err = all.Update(t.Context(), q, got.ID, got.Receipt, time.Hour, []byte(fmt.Sprintf("gone-%d.2", i)))
			require.NoError(t, err)
		}
		require.NoError(t, all.Delete(t.Context(), q, m.ID, got.Receipt))
	}
	short, long := put("stays-1.", 100), put("stays-2.", 60_000)
	require.Equal(t, short.ID, get().ID)
	require.Equal(t, long.ID, get().ID)
	require.Equal(t, before, disk.written.Load(), "no flush came between")

	require.NoError(t, s.Node(at).State().Flush())
	const dir = "files" // As they are now: a compaction beside it would remove some.
	require.NoError(t, s.Node(at).State().Checkpoint(dir))
	kept := func() {
		require.Equal(t, 1, tracesIn(t, disk, dir, []queues.Message{short}).rows, "the row that was moved to")
		require.Equal(t, 2, tracesIn(t, disk, dir, []queues.Message{long}).rows, "that row, and the text")
	}
	kept()
	require.Zero(t, tracesIn(t, disk, dir, gone).rows)
	compacted(t, disk, dir)
	kept()
	require.Equal(t, traces{}, tracesIn(t, disk, dir, gone))
}
