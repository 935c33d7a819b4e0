package node_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// gatedFS is a disk on which staged tables do not get into the state store before the test lets them, or which flushes no
// memtable before that, once the store is started: as it opens it waits for compactions.
type gatedFS struct {
	vfs.FS
	flushes bool
	started atomic.Bool
	come    sync.Once
	came    chan struct{}
	gate    chan struct{}
	open    func() // the gate
}

func newGatedFS(t *testing.T, fs vfs.FS, flushes bool) *gatedFS {
	g := &gatedFS{FS: fs, flushes: flushes, came: make(chan struct{}), gate: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.gate) })
	t.Cleanup(g.open) // Before the stamp closes, which waits for it.
	return g
}

func (fs *gatedFS) wait() {
	fs.come.Do(func() { close(fs.came) })
	<-fs.gate
}

func (fs *gatedFS) Link(from, to string) error {
	if !fs.flushes && strings.Contains(from, "/snap/") {
		fs.wait()
	}
	return fs.FS.Link(from, to)
}

func (fs *gatedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if fs.flushes && fs.started.Load() && strings.Contains(name, "/state/") && strings.HasSuffix(name, ".sst") {
		fs.wait()
	}
	return fs.FS.Create(name, c)
}

// putBlob is a command that sets a key in the range of blobs.
type putBlob struct{ value string }

func (c putBlob) Evaluate(tx *ranges.Tx) error {
	p := keys.Partition{Service: geo.Blob, Account: "acct", Container: "c", Object: "b"}
	ops := []change.Op{{Row: []byte("r"), Value: []byte(c.value)}}
	return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: ops})
}

// standInstall is a stamp of which a node stands in the installation of a snapshot of testRange, ahead of what it had applied.
func standInstall(t *testing.T) (s *snapStamp, away geo.NodeID, at uint64, fs *gatedFS) {
	t.Helper()
	s = newSnapStamp(t, memtransport.New(), nil)
	s.openBlobs()
	s.write(0, 20, "a")
	away = s.follower()
	require.NoError(t, s.Stop(away, true))
	at = s.Leader(testRange).Machine.AppliedState().Index
	s.write(0, 100, "b")
	s.dropLog(at)
	fs = newGatedFS(t, s.fss[away], false)
	s.fss[away] = fs
	s.start(away)
	<-fs.came
	return s, away, at, fs
}

const blobs = geo.RangeID(geo.Blob)

// requireBlobsFollow requires that a node persists and applies what the range of blobs commits, and stays in its in-sync set.
func (s *snapStamp) requireBlobsFollow(id geo.NodeID) {
	s.t.Helper()
	for range 5 {
		require.Eventually(s.t, func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return s.Submit(ctx, blobs, putBlob{"x"}) == nil
		}, electionWait, time.Millisecond)
		require.Eventually(s.t, func() bool {
			lead, n := s.Leader(blobs), s.Node(id)
			return lead != nil && lead.InSync() == 3 && n.Range(blobs).Machine.AppliedState().Index >= lead.Machine.AppliedState().Index
		}, electionWait, time.Millisecond)
	}
}

// While the state of a range is replaced by a snapshot, on a disk that is slow or stands, the node follows in its other ranges:
// it persists and applies what they commit, and stays in their in-sync sets.
//
// Capability: Storage on a node: One range on a slow disk does not hold the others of its node.
func TestInstallHoldsItsRangeAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, away, at, fs := standInstall(t)
		n := s.Node(away)
		require.True(t, n.Installing(testRange))
		s.requireBlobsFollow(away)
		require.True(t, n.Installing(testRange))
		require.LessOrEqual(t, n.Range(testRange).Machine.AppliedState().Index, at)
		require.NotZero(t, s.Leader(testRange), "it keeps its leader")
		fs.open()
		s.same()
		requireNothingStaged(t, s, away)
	})
}

// A node that is closed while it installs a snapshot closes its stores once the state is replaced. The next start finds a
// state that is ahead of its log, and the plan that says why: the replica is not lost, and goes on.
func TestNodeIsClosedWhileItInstalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, away, at, fs := standInstall(t)
		stopped := make(chan error, 1)
		go func() { stopped <- s.Stop(away, true) }()
		require.Eventually(t, func() bool { return s.Node(away) == nil }, electionWait, time.Millisecond)
		require.Empty(t, stopped, "the disk stands")
		fs.open()
		require.NoError(t, <-stopped)
		s.fss[away] = fs.FS
		staged, err := fs.List("data/" + node.Name("north", away) + "/snap")
		require.NoError(t, err)
		require.NotEmpty(t, staged, "what was accepted is for the next start to decide")
		s.start(away)
		r := s.Node(away).Range(testRange)
		require.Greater(t, r.Machine.AppliedState().Index, at, "the state was replaced")
		require.NoError(t, r.Replica().Lost())
		requireNothingStaged(t, s, away)
		s.same() // Though nothing is written: the leader learns that the snapshot is not needed, and how far the replica is.
	})
}
