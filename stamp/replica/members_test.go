package replica

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"antipode/geo"
)

// confEntry is the committed entry of one change.
func confEntry(t require.TestingT, typ pb.ConfChangeType, id uint64, node geo.NodeID) *pb.Entry {
	cc := &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: &typ, NodeId: &id}}}
	if typ == pb.ConfChangeAddLearnerNode {
		cc.Context = binary.LittleEndian.AppendUint64(nil, uint64(node))
	}
	data, err := proto.Marshal(cc)
	require.NoError(t, err)
	entryType := pb.EntryConfChangeV2
	return &pb.Entry{Type: &entryType, Data: data}
}

// The example of docs/format/keys.md: replica 3 was lost, replica 4 is fed on its node.
func TestMembersGolden(t *testing.T) {
	m := FirstMembers([]geo.NodeID{3, 1, 2})
	for _, e := range []*pb.Entry{confEntry(t, pb.ConfChangeRemoveNode, 3, 0), confEntry(t, pb.ConfChangeAddLearnerNode, 4, 3)} {
		var err error
		m, err = m.Apply(e)
		require.NoError(t, err)
	}
	require.Equal(t, "010500000000000000"+"03"+
		"0100000000000000"+"0100000000000000"+"00"+
		"0200000000000000"+"0200000000000000"+"00"+
		"0400000000000000"+"0300000000000000"+"01", hex.EncodeToString(AppendMembers(nil, m)))
}

// R4: whatever changes are applied, no id is given twice, and a configuration comes back
// as it went in; a change that does not fit is an error and changes nothing (property).
func TestMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := FirstMembers([]geo.NodeID{1, 2, 3})
		gone := map[geo.ReplicaID]bool{}
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			typ := pb.ConfChangeType(rapid.IntRange(0, 3).Draw(t, "type"))
			id := geo.ReplicaID(rapid.Uint64Range(0, 8).Draw(t, "id"))
			was, had := m.Of(id)
			after, err := m.Apply(confEntry(t, typ, uint64(id), geo.NodeID(id%3+1)))
			fits := typ == pb.ConfChangeRemoveNode && had || typ == pb.ConfChangeAddNode && had && was.Learner ||
				typ == pb.ConfChangeAddLearnerNode && id == m.Next
			if !fits {
				want := ErrMembers
				if typ == pb.ConfChangeUpdateNode { // No version writes it yet.
					want = ErrLater
				}
				require.ErrorIs(t, err, want)
				require.Equal(t, m, after)
				continue
			}
			require.NoError(t, err)
			_, has := after.Of(id)
			require.False(t, has && gone[id], "id %d was given twice", id)
			gone[id] = gone[id] || !has
			m = after
			got, err := ParseMembers(AppendMembers(nil, m))
			require.NoError(t, err)
			require.Equal(t, AppendMembers(nil, m), AppendMembers(nil, got))
			require.Len(t, m.conf().Voters, len(m.List)-len(m.conf().Learners))
		}
	})
}

// Any bytes give a configuration that encodes back to them, or an error.
func FuzzParseMembers(f *testing.F) {
	f.Add(AppendMembers(nil, FirstMembers([]geo.NodeID{1, 2, 3})))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMembers(b)
		if err != nil {
			require.True(t, errors.Is(err, ErrMembers) || b[0] > membersVersion && errors.Is(err, ErrLater), err)
			return
		}
		require.Equal(t, b, AppendMembers(nil, m))
	})
}
