package node

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Invariant 8: the messages that wait for payload are bounded. The first ones stay, since Raft repeats the others in order.
func TestHeldMessagesAreBounded(t *testing.T) {
	t.Parallel()
	var r hostedRange
	for i := range uint64(2 * heldMax) {
		r.hold(Envelope{Message: &pb.Message{Index: proto.Uint64(i)}})
	}
	require.Len(t, r.held, heldMax)
	require.EqualValues(t, heldMax-1, r.held[heldMax-1].Message.GetIndex())
}
