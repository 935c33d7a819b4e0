package seglog

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/stamp/seglog/logtest"
	"antipode/stamp/state"
)

// appender appends batches of entries whose memory it uses again, and trims behind.
type appender struct {
	l       state.Log
	g       state.RangeLog
	next    uint64
	ring    [][]*pb.Entry
	trimmed uint64
}

func newAppender(t require.TestingT, l state.Log, count, size int) *appender {
	a := &appender{l: l, g: logtest.Range(t, l, 4), next: 1}
	for range 1 + 8<<20/(count*size) { // More than the tail holds.
		a.ring = append(a.ring, logtest.Entries(1, 1, count, size))
	}
	return a
}

func (a *appender) append(sync bool) error {
	entries := a.ring[0]
	a.ring = append(a.ring[1:], entries)
	for _, e := range entries {
		*e.Index = a.next
		a.next++
	}
	b := a.l.NewBatch()
	if err := a.g.Append(b, entries); err != nil {
		return err
	}
	if kept := uint64(32 << 10); a.next > a.trimmed+2*kept {
		a.trimmed = a.next - kept
		if err := a.g.Trim(b, a.trimmed); err != nil {
			return err
		}
	}
	return b.Commit(sync)
}

// Appending allocates next to nothing: a batch of 64 entries less than two times, all
// that grows included.
func TestAppendAllocates(t *testing.T) {
	l, err := Open(testDir, state.Options{FS: vfs.NewMem(), LogSegmentBytes: 4 << 20})
	require.NoError(t, err)
	a := newAppender(t, l, 64, 256)
	for range 2000 {
		require.NoError(t, a.append(true))
	}
	allocs := testing.AllocsPerRun(2000, func() {
		if err := a.append(true); err != nil {
			t.Error(err)
		}
	})
	require.Less(t, allocs, 2.0)
	require.NoError(t, l.Close())
}

// BenchmarkCommit appends batches of 64 entries on the machine's disk, each with one sync.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{128, 1 << 10} {
		b.Run(fmt.Sprintf("64x%d", size), func(b *testing.B) {
			l, err := Open(b.TempDir(), state.Options{})
			require.NoError(b, err)
			a := newAppender(b, l, 64, size)
			b.ReportAllocs()
			b.SetBytes(int64(64 * size))
			for b.Loop() {
				if err := a.append(true); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, l.Close())
		})
	}
}
