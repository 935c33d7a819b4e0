package transport

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/stamp/membership"
	"antipode/stamp/skew"
)

// An answer of a node of an earlier version, which knows nothing of leaps, proves nothing (R6).
func TestEarlierClockAnswerProvesNothing(t *testing.T) {
	typ, sent, wall, held := typeClockAnswer, uint64(1), uint64(2), uint64(3)
	got := reportFromWire(&pb.Message{Type: &typ, Index: &sent, LogTerm: &wall, Commit: &held})
	require.Equal(t, membership.ClockAnswer{Answer: skew.Answer{Sent: 1, Wall: 2, Held: 3, Unsure: true}}, got)
}
