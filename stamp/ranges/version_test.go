package ranges

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"antipode/stamp/change"
	"antipode/stamp/state"
)

// R5: two histories of a range have no version in common, though their entries have the same indexes: else what is cached
// of a stamp that was wiped, or of a range before it was recovered with loss, would be taken for what is there now.
//
// Capability: The primary location: Reads at any node (R5).
func TestR5VersionsOfTwoHistories(t *testing.T) {
	apply := func(m *Machine, b byte) {
		var builder change.Builder
		builder.Gate("acct", change.Gate{Role: change.Role(b)})
		data := builder.Finish(change.GroupID{Term: 1, Number: 1}, change.GroupID{}, 0)
		require.NoError(t, m.Apply([]*pb.Entry{{Index: proto.Uint64(7), Term: proto.Uint64(1), Data: data}}))
	}
	seen := map[uint64]bool{}
	var last *Machine
	for i := range 3 {
		store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		last, err = OpenMachine(4, store, func(Applied) {}, 1)
		require.NoError(t, err)
		apply(last, byte(1+i%2))
		require.EqualValues(t, 7, last.AppliedState().Index)
		seen[last.version.Load()] = true
	}
	for range 2 {
		require.NoError(t, last.Replace(func() error { return nil }))
		require.EqualValues(t, 7, last.AppliedState().Index)
		seen[last.version.Load()] = true
	}
	require.Len(t, seen, 5)
	require.NotContains(t, seen, uint64(0))
}
