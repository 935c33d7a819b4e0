package node_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	. "antipode/stamp/node"
)

// Invariant 8: what waits for the scheduler is bounded in messages and in bytes; a message
// above the bound passes alone, and a pass makes room again.
func TestInboxIsBounded(t *testing.T) {
	n := loneNode(t, &lone{peers: map[geo.NodeID]ChunkPeer{}}, nil)
	message := func(length int) []Envelope {
		typ, from, to := pb.MsgApp, uint64(2), uint64(1)
		return []Envelope{{Range: 99, Message: &pb.Message{Type: &typ, From: &from, To: &to, Entries: []*pb.Entry{{Data: make([]byte, length)}}}}}
	}
	n.Receive(message(InboxBytesMax + 1))
	n.Receive(message(0))
	require.Len(t, n.Inbox(), 1)
	work(t, n)
	for range 100 {
		n.Receive(message(1 << 20))
	}
	require.Len(t, n.Inbox(), 63)
	work(t, n)
	for range InboxMax + 1 {
		n.Receive(message(0))
	}
	require.Len(t, n.Inbox(), InboxMax)
}
