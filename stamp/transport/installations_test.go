package transport

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/membership"
	"antipode/stamp/node"
)

// folder is the data folder of the node of a process.
func (s *stamps) folder(id geo.NodeID) *membership.Folder { return s.by[id].Node(id).Folder }

// takes waits until the range takes a write that two replicas have.
func (s *stamps) takes(i int) { s.submit(s.leader(), put{i}) }

// R4: a folder of the node with the same name in another installation is refused by both other nodes, and refuses them: its
// replicas, whose ids are the same, would vote and acknowledge for this one. The others go on; with the right folder the
// node is back, and a node with an empty one is rebuilt and belongs to the stamp.
func TestR4FolderOfAnotherInstallation(t *testing.T) {
	t.Parallel()
	rebuilds := func(o *node.Options) { o.RowChunks = func(_, _ []byte) ([]extent.Ref, error) { return nil, nil } }
	former, s := newStamps(t, nil), newStamps(t, rebuilds)
	for _, one := range []*stamps{former, s} {
		one.submit(one.leader(), openGate{})
		one.takes(0)
	}
	former.end(2)
	s.end(2)
	right := s.disks[2]
	s.disks[2] = former.disks[2]
	s.start(2)
	foreign := s.folder(2)
	require.False(t, foreign.Stamp().IsZero())
	require.Eventually(t, func() bool {
		return len(foreign.Refused()) == 2 && len(s.folder(1).Refused()) == 1 && len(s.folder(3).Refused()) == 1
	}, testWait, time.Millisecond)
	for _, id := range []geo.NodeID{1, 3} {
		line := s.folder(id).Refused()[0]
		require.Contains(t, line, "node north-2 one of stamp "+foreign.Stamp().Short())
		require.Contains(t, line, s.folder(id).Stamp().Short())
		require.False(t, s.get(id).Stats(2).Connected)
		require.False(t, s.get(2).Stats(id).Connected)
	}
	other := s.by[2]
	delete(s.by, 2)
	s.takes(1)
	s.by[2] = other
	s.end(2)

	for _, disk := range []vfs.FS{right, vfs.NewMem()} {
		s.disks[2] = disk
		s.start(2)
		require.Eventually(t, func() bool {
			return len(s.folder(1).Refused())+len(s.folder(3).Refused()) == 0 && s.folder(2).Stamp() == s.folder(1).Stamp()
		}, testWait, time.Millisecond)
		s.takes(2)
		require.Eventually(t, func() bool {
			lead := s.by[s.leader()].Leader(testRange)
			return lead != nil && len(lead.View().InSync) == 3
		}, testWait, time.Millisecond)
		s.end(2)
	}
}

// A stream that began before a node was attached is of no stamp: it ends, and the next one names that of the node.
func TestStreamBeginsAgainWithANode(t *testing.T) {
	s := newStamps(t, nil)
	s.leader()
	id := s.folder(1).Stamp()
	s.end(2)
	tr, err := Open(s.options(2))
	require.NoError(t, err)
	s.mu.Lock()
	s.up[2] = tr
	s.mu.Unlock()
	s.waitConnected(2, 1)
	foreign, err := membership.ClaimFolder(vfs.NewMem(), "d", "north", 2)
	require.NoError(t, err)
	require.NoError(t, foreign.Meet(9, membership.StampID{7}))
	require.NotEqual(t, id, foreign.Stamp())
	tr.Attach(2, inFolder{Folder: foreign})
	require.Eventually(t, func() bool {
		return len(s.folder(1).Refused()) == 1 && !tr.Stats(1).Connected
	}, testWait, time.Millisecond)
	s.Stop(2)
	delete(s.by, 2)
}

// inFolder is a member of which only the folder is asked for.
type inFolder struct {
	node.Member
	*membership.Folder
}
