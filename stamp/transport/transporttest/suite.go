package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/membership"
	"antipode/stamp/node"
	"antipode/stamp/room"
	"antipode/stamp/skew"
)

// Network is a stamp of nodes 1 to 3 for the suite.
type Network interface {
	// Start brings a node up, with m attached, where it was before if it was up before.
	Start(id geo.NodeID, m node.Member)
	// Stop takes a node down as if its process ended.
	Stop(id geo.NodeID)
	// At is the transport as a node has it.
	At(id geo.NodeID) Transport
}

// Transport is all that a way between nodes may carry.
type Transport interface {
	node.CallTransport
	node.SnapshotTransport
}

const (
	// wait bounds how long the suite waits for what must come.
	wait = 20 * time.Second
	poll = 5 * time.Millisecond
)

// Run runs the suite; open returns a network without nodes, and stops what runs when
// the test ends.
func Run(t *testing.T, open func(t *testing.T) Network) {
	for name, test := range map[string]func(*testing.T, *stamp){
		"messages":     testMessages,
		"order":        testOrder,
		"greatest":     testGreatest,
		"away":         testAway,
		"restart":      testRestart,
		"chunks":       testChunks,
		"chunkErrors":  testChunkErrors,
		"concurrently": testConcurrently,
		"calls":        testCalls,
		"callErrors":   testCallErrors,
		"callAway":     testCallAway,
		"snapshots":    testSnapshots,
		"snapshotEnds": testSnapshotEnds,
		"snapshotFlow": testSnapshotFlow, "snapshotResumes": testSnapshotResumes,
	} {
		t.Run(name, func(t *testing.T) {
			s := &stamp{Network: open(t), t: t, members: map[geo.NodeID]*Member{}}
			for id := geo.NodeID(1); id <= 3; id++ {
				s.members[id] = NewMember(t)
				s.Start(id, s.members[id])
			}
			for from := geo.NodeID(1); from <= 3; from++ {
				for to := geo.NodeID(1); to <= 3; to++ {
					if from != to {
						s.waitPeer(from, to)
					}
				}
			}
			test(t, s)
		})
	}
}

// stamp is three nodes that reach each other.
type stamp struct {
	Network
	t       *testing.T
	members map[geo.NodeID]*Member
}

func (s *stamp) waitPeer(from, to geo.NodeID) node.ChunkPeer {
	s.t.Helper()
	var peer node.ChunkPeer
	require.Eventually(s.t, func() bool {
		peer = s.At(from).Peer(from, to)
		return peer != nil
	}, wait, poll, "node %d never reached node %d", from, to)
	return peer
}

// waitReceived waits until a member has n messages.
func (s *stamp) waitReceived(id geo.NodeID, n int) []node.Envelope {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return len(s.members[id].Received()) >= n }, wait, poll,
		"node %d did not receive %d messages", id, n)
	return s.members[id].Received()
}

// Messages arrive at the node they are for, with every field, the range they are of, and the
// node that sent them, whichever replicas they name.
func testMessages(t *testing.T, s *stamp) {
	vote, heartbeat := pb.MsgVote, pb.MsgHeartbeat
	one, three, term, index, commit := uint64(1), uint64(3), uint64(7), uint64(1<<40), uint64(99)
	hint, reject := uint64(5), true
	sent := []node.Envelope{
		Message(1, 3, 1, []byte("data")),
		Message(2, 9, 2, []byte("data of replica 2 on node 1")),
		{Range: 1, Message: &pb.Message{Type: &vote, From: &one, To: &three, Term: &term, Index: &index, LogTerm: &term, Context: []byte("campaign")}},
		{Range: 1 << 31, Message: &pb.Message{Type: &heartbeat, From: &one, To: &three, Commit: &commit, Reject: &reject, RejectHint: &hint}},
		{Range: 4, Report: membership.DurableIndex{Index: index, Replica: 9}},
		{Range: 5, Report: membership.Hello{Nonce: membership.Nonce(index), Placement: 7}},
		{Range: 5, Report: membership.HelloAnswer{Asked: membership.Nonce(index), Nonce: 8, Known: true}},
		{Range: 5, Report: membership.OtherPlacement{Placement: 9}},
		{Range: 5, Report: membership.LossReport{Replica: 10}},
		{Range: 5, Report: membership.LossReport{Nonce: 11}},
		{Range: 5, Report: membership.LastID{Nonce: 12, Replica: 13}},
		{Range: 5, Report: membership.RecoveryReport{Recovery: 1<<10 | 2}},
		{Range: 5, Report: membership.LeaderHint{Term: 14}},
		{Range: 5, Report: membership.LogMark{Replica: 15, Index: index, Term: 16, In: 17}},
		{Report: membership.RoomReport{Level: room.Bare}},
		{Report: membership.ClockQuestion{Question: skew.Question{Sent: 15}}},
		{Report: membership.ClockAnswer{Answer: skew.Answer{Sent: 16, Wall: -17, Held: 18}}},
		{Report: membership.ClockAnswer{Answer: skew.Answer{Sent: 19, Wall: 20, Unsure: true, Leapt: -21}}},
		{Range: 4, Message: &pb.Message{From: &one}},
	}
	s.At(1).Send(1, 3, sent)
	got := s.waitReceived(3, len(sent))
	require.Len(t, got, len(sent))
	for i := range sent {
		require.Equal(t, sent[i].Range, got[i].Range)
		require.EqualValues(t, 1, got[i].From)
		require.Equal(t, sent[i].Report, got[i].Report)
		require.True(t, sent[i].Report != nil || proto.Equal(sent[i].Message, got[i].Message), "message %d: %v", i, got[i].Message)
	}
	require.Empty(t, s.members[2].Received())
}

// While nothing breaks, and less is sent than queues hold, all arrives in the order of
// one sender.
func testOrder(t *testing.T, s *stamp) {
	const batches, each = 200, 10
	rng := rand.New(rand.NewPCG(1, 1))
	next := uint64(0)
	for range batches {
		var batch []node.Envelope
		for range each {
			batch = append(batch, Message(1, 2, next, make([]byte, rng.IntN(4096))))
			next++
		}
		s.At(1).Send(1, 2, batch)
	}
	for i, e := range s.waitReceived(2, batches*each) {
		require.EqualValues(t, i, e.Message.GetIndex())
	}
}

// An entry of 16 MiB arrives, and what is behind it.
func testGreatest(t *testing.T, s *stamp) {
	data := make([]byte, 16<<20)
	for i := range data {
		data[i] = byte(i >> 8)
	}
	s.At(1).Send(1, 2, []node.Envelope{Message(1, 2, 1, data), Message(1, 2, 2, nil)})
	got := s.waitReceived(2, 2)
	require.True(t, bytes.Equal(data, got[0].Message.GetEntries()[0].GetData()))
	require.EqualValues(t, 2, got[1].Message.GetIndex())
}

// Send to a node that is away returns at once, and the node is no peer for chunks. The
// others do not notice.
func testAway(t *testing.T, s *stamp) {
	s.Stop(2)
	require.Eventually(t, func() bool { return s.At(1).Peer(1, 2) == nil }, wait, poll)
	begin := time.Now()
	for i := range uint64(20_000) {
		s.At(1).Send(1, 2, []node.Envelope{Message(1, 2, i, nil)})
	}
	require.Less(t, time.Since(begin), 5*time.Second, "20,000 messages to nobody")
	s.At(1).Send(1, 3, []node.Envelope{Message(1, 3, 1, nil)})
	s.waitReceived(3, 1)
	require.Empty(t, s.members[2].Received())
}

// A node that comes back where it was is reached again, and reaches the others.
func testRestart(t *testing.T, s *stamp) {
	for range 2 {
		s.Stop(2)
		require.Eventually(t, func() bool { return s.At(1).Peer(1, 2) == nil }, wait, poll)
		s.members[1], s.members[2] = NewMember(t), NewMember(t)
		s.Stop(1)
		s.Start(1, s.members[1])
		s.Start(2, s.members[2])
		require.NoError(t, s.waitPeer(1, 2).SyncChunks(t.Context()))
		require.NoError(t, s.waitPeer(2, 1).SyncChunks(t.Context()))
		s.At(1).Send(1, 2, []node.Envelope{Message(1, 2, 5, []byte("again"))})
		s.At(2).Send(2, 1, []node.Envelope{Message(2, 1, 6, nil)})
		require.EqualValues(t, 5, s.waitReceived(2, 1)[0].Message.GetIndex())
		require.EqualValues(t, 6, s.waitReceived(1, 1)[0].Message.GetIndex())
	}
}

func chunk(seed uint64, length int) (extent.Ref, []byte) {
	rng := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, length)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return extent.NewRef(extent.ChunkID{byte(seed), byte(seed >> 8), 1}, data), data
}

// Chunks of every size come over whole, are durable after a sync, and are read from any
// offset as io.ReaderAt does.
func testChunks(t *testing.T, s *stamp) {
	peer := s.waitPeer(1, 2)
	for i, length := range []int{1, 4096, 256 << 10, 256<<10 + 1, 1 << 20, extent.ChunkBytesMax} {
		ref, data := chunk(uint64(i), length)
		require.NoError(t, peer.PutChunk(t.Context(), ref, data))
		require.NoError(t, peer.PutChunk(t.Context(), ref, data), "again")
		require.NoError(t, peer.SyncChunks(t.Context()))
		require.True(t, s.members[2].Store.Durable(ref.ID))

		got := make([]byte, length)
		n, err := s.At(3).Peer(3, 2).ReadChunk(ref, 0, got)
		require.NoError(t, err)
		require.Equal(t, length, n)
		require.True(t, bytes.Equal(data, got))

		off := length / 3
		got = make([]byte, length+1)
		n, err = peer.ReadChunk(ref, int64(off), got)
		require.ErrorIs(t, err, io.EOF, "past the end")
		require.True(t, bytes.Equal(data[off:], got[:n]))
		n, err = peer.ReadChunk(ref, int64(off), got[:length-off])
		require.NoError(t, err)
		require.True(t, bytes.Equal(data[off:], got[:n]))
	}
}

// A put whose data is not what the ref says leaves nothing behind, and the errors of a
// store keep their meaning on the way.
func testChunkErrors(t *testing.T, s *stamp) {
	peer := s.waitPeer(1, 2)
	ref, data := chunk(1, 600_000)
	damaged := bytes.Clone(data)
	damaged[300_000] ^= 1
	require.ErrorIs(t, peer.PutChunk(t.Context(), ref, damaged), extent.ErrMismatch, "another CRC")
	require.Error(t, peer.PutChunk(t.Context(), ref, data[:599_999]), "too short")
	require.Error(t, peer.PutChunk(t.Context(), ref, append(bytes.Clone(data), 0)), "too long")
	require.Error(t, peer.PutChunk(t.Context(), extent.Ref{ID: ref.ID}, nil), "of no length")
	require.Error(t, peer.PutChunk(t.Context(), extent.Ref{ID: ref.ID, Length: extent.ChunkBytesMax + 1}, nil), "above the bound")
	require.Empty(t, s.members[2].Store.Refs())
	n, err := peer.ReadChunk(ref, 0, make([]byte, 10))
	require.ErrorIs(t, err, extent.ErrNotFound)
	require.Zero(t, n)

	require.NoError(t, peer.PutChunk(t.Context(), ref, data))
	_, err = peer.ReadChunk(ref, -1, make([]byte, 10))
	require.Error(t, err)
	_, err = peer.ReadChunk(ref, 600_001, make([]byte, 10))
	require.Error(t, err)
	require.NotErrorIs(t, err, io.EOF)
	other := ref
	other.CRC++
	_, err = peer.ReadChunk(other, 0, make([]byte, 10))
	require.ErrorIs(t, err, extent.ErrMismatch)
	n, err = peer.ReadChunk(ref, 7, nil)
	require.NoError(t, err)
	require.Zero(t, n)
}

// Everybody sends to everybody while chunks are put and read; nothing is mixed up.
func testConcurrently(t *testing.T, s *stamp) {
	const messages, chunks = 300, 10
	var g errgroup.Group
	for from := geo.NodeID(1); from <= 3; from++ {
		for to := geo.NodeID(1); to <= 3; to++ {
			if from == to {
				continue
			}
			g.Go(func() error {
				for i := range uint64(messages) {
					s.At(from).Send(from, to, []node.Envelope{Message(from, to, i, make([]byte, 100))})
				}
				return nil
			})
			g.Go(func() error {
				peer := s.At(from).Peer(from, to)
				for i := range uint64(chunks) {
					ref, data := chunk(i<<8|uint64(from)<<4|uint64(to), 300_000)
					got := make([]byte, len(data))
					err := errors.Join(peer.PutChunk(t.Context(), ref, data), peer.SyncChunks(t.Context()))
					if err == nil {
						_, err = peer.ReadChunk(ref, 0, got)
					}
					if err != nil || !bytes.Equal(got, data) {
						return fmt.Errorf("chunk %d from %d to %d: %w", i, from, to, err)
					}
				}
				return nil
			})
		}
	}
	require.NoError(t, g.Wait())
	for to := geo.NodeID(1); to <= 3; to++ {
		next := map[uint64]uint64{}
		for _, e := range s.waitReceived(to, 2*messages) {
			from := e.Message.GetFrom()
			require.Equal(t, next[from], e.Message.GetIndex(), "from %d to %d", from, to)
			next[from]++
		}
		require.Len(t, next, 2)
	}
}
