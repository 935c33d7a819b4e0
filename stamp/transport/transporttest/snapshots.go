package transporttest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"antipode/stamp/node"
	"antipode/stamp/snapshot"
)

// header is that of a range snapshot from node 1 to node 2.
func header() snapshot.Header {
	typ, from, to, term, index := pb.MsgSnap, uint64(1), uint64(2), uint64(7), uint64(1<<33)
	return snapshot.Header{Range: 2, Message: &pb.Message{
		Type: &typ, From: &from, To: &to, Term: &term,
		Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: &index, Term: &term, ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}}}},
	}}
}

func fragment(i, length int, last bool) snapshot.Fragment {
	_, rows := chunk(uint64(i), length)
	return snapshot.Fragment{Number: uint32(i), Last: last, Rows: rows, CRC: uint32(i) * 7}
}

// open opens a range snapshot from node 1 to node 2.
func (s *stamp) open() snapshot.Stream {
	s.t.Helper()
	stream, err := s.At(1).Snapshot(1, 2, header())
	require.NoError(s.t, err)
	return stream
}

// waitClosed waits until the receiver's end of the newest range snapshot is closed.
func (s *stamp) waitClosed() (last Snapshot) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		all := s.members[2].Snapshots()
		last = all[len(all)-1]
		return last.Closed
	}, wait, poll)
	return last
}

// A range snapshot comes over with its header and each fragment whole, in order, and is
// finished at the receiver before it is at the sender.
func testSnapshots(t *testing.T, s *stamp) {
	ctx := t.Context()
	stream := s.open()
	defer stream.Close()
	var sent []snapshot.Fragment
	for i, length := range []int{0, 1, 1 << 20, 5 << 20, 300, 300, 300, 300, 300, 300, 17 << 20, 4} {
		sent = append(sent, fragment(i, length, i == 11))
		require.NoError(t, stream.Send(ctx, sent[i]))
	}
	require.NoError(t, stream.Finish(ctx, func() {}))
	got := s.members[2].Snapshots()[0]
	require.True(t, got.Finished)
	require.EqualValues(t, 1, got.From)
	require.Equal(t, header().Range, got.Header.Range)
	require.True(t, proto.Equal(header().Message, got.Header.Message))
	require.Len(t, got.Fragments, len(sent))
	for i, p := range got.Fragments {
		require.Equal(t, len(sent[i].Rows), len(p.Rows))
		if len(p.Rows) == 0 {
			p.Rows, sent[i].Rows = nil, nil
		}
		require.Equal(t, sent[i], p)
	}
	stream.Close()
}

// An error of the receiver ends the transfer at the sender, at the header, at a fragment or at the
// end; a sender that goes away, or gives up, ends it at the receiver, unfinished.
func testSnapshotEnds(t *testing.T, s *stamp) {
	ctx, m := t.Context(), s.members[2]
	m.Refuse = errors.New("not now")
	_, err := s.At(1).Snapshot(1, 2, header())
	require.ErrorContains(t, err, "not now")
	m.Refuse = nil

	m.FailFragment = func(p snapshot.Fragment) error {
		if p.Number == 2 {
			return errors.New("damaged")
		}
		return nil
	}
	stream := s.open()
	for i := 0; err == nil || i == 0; i++ {
		require.Less(t, i, 100, "it goes on for ever")
		err = stream.Send(ctx, fragment(i, 1000, false))
	}
	require.ErrorContains(t, err, "damaged")
	stream.Close()
	m.FailFragment = nil

	m.FailFinish = errors.New("cannot install")
	stream = s.open()
	require.NoError(t, stream.Send(ctx, fragment(0, 1000, true)))
	require.ErrorContains(t, stream.Finish(ctx, func() {}), "cannot install")
	stream.Close()
	s.waitClosed()
	m.FailFinish = nil

	stream = s.open()
	require.NoError(t, stream.Send(ctx, fragment(0, 1000, false)))
	stream.Close()
	require.False(t, s.waitClosed().Finished, "it was cut")

	s.Stop(2)
	require.Eventually(t, func() bool { return s.At(1).Peer(1, 2) == nil }, wait, poll)
	_, err = s.At(1).Snapshot(1, 2, header())
	require.ErrorIs(t, err, node.ErrUnreachable)
}

// A receiver that does not write holds the sender back after a few fragments; the sender's
// context frees it.
func testSnapshotFlow(t *testing.T, s *stamp) {
	const fewMax = 8
	s.members[2].Write = make(chan struct{})
	stream := s.open()
	defer stream.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	sent, err := 0, error(nil)
	for ; err == nil && sent <= fewMax; sent++ {
		err = stream.Send(ctx, fragment(sent, 1000, false))
	}
	require.Error(t, err)
	require.LessOrEqual(t, sent, fewMax, "fragments in flight")
	stream.Close()
	require.False(t, s.waitClosed().Finished)
}

// The number of the sender's view comes over, and the key behind which the receiver wants the rows; a receiver that
// keeps nothing, or a sender of an earlier version, has neither. While the receiver installs, the sender learns that it
// goes on; that nothing changed there needs its own meaning on the way back.
func testSnapshotResumes(t *testing.T, s *stamp) {
	ctx, m := t.Context(), s.members[2]
	old := s.open()
	_, keeps := old.Resume()
	require.False(t, keeps)
	old.Close()
	h := header()
	h.Source, m.After, m.Installs = 1<<63+1, []byte("key\x00"), make(chan struct{})
	stream, err := s.At(1).Snapshot(1, 2, h)
	require.NoError(t, err)
	defer stream.Close()
	after, keeps := stream.Resume()
	require.True(t, keeps)
	require.Equal(t, m.After, after)
	all := m.Snapshots()
	require.Equal(t, h.Source, all[len(all)-1].Header.Source)
	require.NoError(t, stream.Send(ctx, fragment(0, 1000, true)))
	progressed := sync.OnceFunc(func() { close(m.Installs) })
	require.NoError(t, stream.Finish(ctx, progressed))

	m.Refuse, m.Installs = snapshot.ErrUnneeded, nil
	_, err = s.At(1).Snapshot(1, 2, h)
	require.ErrorIs(t, err, snapshot.ErrUnneeded)
	m.Refuse = nil
}
