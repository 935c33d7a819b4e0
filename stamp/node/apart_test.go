package node_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/memtransport"
	"antipode/stamp/ranges"
)

// gatedFS is a disk on which staged tables do not get into the state store before the test lets them.
type gatedFS struct {
	vfs.FS
	come sync.Once
	came chan struct{}
	gate chan struct{}
}

func (fs *gatedFS) Link(from, to string) error {
	if strings.Contains(from, "/snap/") {
		fs.come.Do(func() { close(fs.came) })
		<-fs.gate
	}
	return fs.FS.Link(from, to)
}

// putBlob is a command that sets a key in the range of blobs.
type putBlob struct{ value string }

func (c putBlob) Evaluate(tx *ranges.Tx) error {
	p := keys.Partition{Service: geo.Blob, Account: "acct", Container: "c", Object: "b"}
	ops := []change.Op{{Row: []byte("r"), Value: []byte(c.value)}}
	return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: ops})
}

// While the state of a range is replaced by a snapshot, on a disk that is slow or stands, the node follows in its other ranges:
// it persists and applies what they commit, and stays in their in-sync sets.
func TestInstallHoldsItsRangeAlone(t *testing.T) {
	const blobs = geo.RangeID(geo.Blob)
	s := newSnapStamp(t, memtransport.New(), nil)
	require.Eventually(t, func() bool { return s.Submit(context.Background(), blobs, setGate{openGate}) == nil }, electionWait, time.Millisecond)
	s.write(0, 20, "a")
	away := s.follower()
	require.NoError(t, s.Stop(away, true))
	at := s.Leader(testRange).Machine.AppliedState().Index
	s.write(0, 100, "b")
	s.dropLog(at)
	fs := &gatedFS{FS: s.fss[away], came: make(chan struct{}), gate: make(chan struct{})}
	open := sync.OnceFunc(func() { close(fs.gate) })
	defer open()
	s.fss[away] = fs
	s.start(away)
	<-fs.came
	n := s.Node(away)
	require.True(t, n.Installing(testRange))
	for range 3 {
		require.Eventually(t, func() bool { return s.Submit(context.Background(), blobs, putBlob{"x"}) == nil }, electionWait, time.Millisecond)
		require.Eventually(t, func() bool {
			lead := s.Leader(blobs)
			return lead != nil && lead.InSync() == 3 && n.Range(blobs).Machine.AppliedState().Index >= lead.Machine.AppliedState().Index
		}, electionWait, time.Millisecond)
	}
	require.True(t, n.Installing(testRange))
	require.LessOrEqual(t, n.Range(testRange).Machine.AppliedState().Index, at)
	require.NotZero(t, s.Leader(testRange), "it keeps its leader")
	open()
	s.same()
	requireNothingStaged(t, s, away)
}
