package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/stamp/node"
	"antipode/stamp/snapshot"
	"antipode/stamp/transport/wire"
)

// fragmentsInFlight is how many fragments of a range snapshot may wait to be written at the
// peer.
const fragmentsInFlight = 4

// Snapshot implements node.SnapshotTransport.
func (t *Transport) Snapshot(_, to geo.NodeID, h snapshot.Header) (snapshot.Stream, error) {
	p := t.peers[to]
	if p == nil || !p.queue.stats().Connected {
		return nil, node.ErrUnreachable
	}
	message, err := proto.Marshal(h.Message)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	slow := time.AfterFunc(t.o.OpenTimeout, cancel)
	defer slow.Stop()
	s := &snapshotStream{cancel: cancel}
	if s.stream, err = wire.NewStampClient(p.chunks).Snapshot(ctx); err == nil {
		err = s.send(&wire.SnapshotPart{Header: &wire.SnapshotHeader{Range: uint32(h.Range), Message: message, Source: h.Source}})
	}
	if err == nil {
		err = s.await() // That it is taken.
	}
	if err == nil && h.Source != 0 && s.progress.GetSource() == h.Source {
		s.keeps, s.after = true, s.progress.GetAfter()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("peer %d: range snapshot: %w", to, fromStatus(err))
	}
	return s, nil
}

// snapshotStream is snapshot.Stream to a peer.
type snapshotStream struct {
	stream grpc.BidiStreamingClient[wire.SnapshotPart, wire.SnapshotProgress]
	cancel context.CancelFunc
	// sent fragments, of which the peer has written some.
	sent, written uint32
	// progress is the last answer; after and keeps are what the first one was: see snapshot.Stream.
	progress *wire.SnapshotProgress
	after    []byte
	keeps    bool
}

// send sends a part, or says why the peer ended the stream.
func (s *snapshotStream) send(part *wire.SnapshotPart) error {
	err := s.stream.SendMsg(part)
	for errors.Is(err, io.EOF) {
		if err = s.await(); err == nil {
			err = io.EOF // It wrote something before.
		} else {
			return err
		}
	}
	return err
}

var errEnded = errors.New("the peer ended the range snapshot early")

// await waits for progress.
func (s *snapshotStream) await() error {
	progress, err := s.stream.Recv()
	if errors.Is(err, io.EOF) {
		return errEnded
	}
	if err == nil {
		s.written, s.progress = progress.GetWritten(), progress
	}
	return err
}

// Resume implements snapshot.Stream.
func (s *snapshotStream) Resume() (after []byte, keeps bool) { return s.after, s.keeps }

// Send implements snapshot.Stream.
func (s *snapshotStream) Send(ctx context.Context, p snapshot.Fragment) error {
	defer context.AfterFunc(ctx, s.cancel)()
	for s.sent-s.written >= fragmentsInFlight {
		if err := s.await(); err != nil {
			return fromStatus(err)
		}
	}
	s.sent++
	return fromStatus(s.send(&wire.SnapshotPart{
		Piece: &wire.SnapshotPiece{Number: p.Number, Last: p.Last, Rows: p.Rows, Crc: p.CRC},
	}))
}

// Finish implements snapshot.Stream.
func (s *snapshotStream) Finish(ctx context.Context, progressed func()) error {
	defer context.AfterFunc(ctx, s.cancel)()
	err := s.stream.CloseSend()
	for err == nil {
		if _, err = s.stream.Recv(); err == nil {
			progressed()
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fromStatus(err)
}

// Close implements snapshot.Stream.
func (s *snapshotStream) Close() { s.cancel() }

// Snapshot implements wire.StampServer.
func (s *service) Snapshot(stream grpc.BidiStreamingServer[wire.SnapshotPart, wire.SnapshotProgress]) error {
	from, err := caller(stream.Context())
	if err != nil {
		return err
	}
	a := s.t.attachment()
	if a == nil {
		return errNoNode
	}
	member, ok := a.member.(node.SnapshotMember)
	if !ok {
		return errNoNode
	}
	ended := make(chan error, 1)
	// A stream in which nothing comes must not outlive the node: it ends with this method.
	s.t.running.Go(func() { ended <- s.takeSnapshot(stream, from.Node, member) })
	select {
	case err := <-ended:
		return toStatus(err)
	case <-a.ended:
		return errNoNode
	}
}

// takeSnapshot passes a range snapshot to the member, fragment by fragment.
func (s *service) takeSnapshot(
	stream grpc.BidiStreamingServer[wire.SnapshotPart, wire.SnapshotProgress], from geo.NodeID, member node.SnapshotMember,
) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	m := &pb.Message{}
	if err := proto.Unmarshal(first.GetHeader().GetMessage(), m); err != nil {
		return fmt.Errorf("%w: header of a range snapshot: %w", ErrFrame, err)
	}
	h := snapshot.Header{Range: geo.RangeID(first.GetHeader().GetRange()), Message: m, Source: first.GetHeader().GetSource()}
	if m.GetType() != pb.MsgSnap {
		return fmt.Errorf("%w: header of a range snapshot", ErrFrame)
	}
	in, err := member.TakeSnapshot(from, h)
	if err != nil {
		return err
	}
	defer in.Close()
	progress := &wire.SnapshotProgress{}
	if after, keeps := in.Resume(); keeps {
		progress.Source, progress.After = h.Source, after
	}
	for written := uint32(0); ; written++ {
		if err := stream.Send(progress); err != nil {
			return err
		}
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return in.Finish(stream.Context(), s.repeat(stream, progress))
		}
		if err != nil {
			return err
		}
		p := part.GetPiece()
		if p == nil {
			return fmt.Errorf("%w: part of a range snapshot without a fragment", ErrFrame)
		}
		fragment := snapshot.Fragment{Number: p.GetNumber(), Last: p.GetLast(), Rows: p.GetRows(), CRC: p.GetCrc()}
		if err := in.Send(stream.Context(), fragment); err != nil {
			return err
		}
		progress = &wire.SnapshotProgress{Written: written + 1}
	}
}

// repeatAfter is how often an answer is repeated while the callee makes progress behind the last fragment.
const repeatAfter = time.Second

// repeat returns what repeats an answer. An error shows at the end of the stream.
func (s *service) repeat(
	stream grpc.BidiStreamingServer[wire.SnapshotPart, wire.SnapshotProgress], answer *wire.SnapshotProgress,
) func() {
	last := s.t.o.Clock.Mono()
	return func() {
		if now := s.t.o.Clock.Mono(); now-last >= repeatAfter {
			last = now
			_ = stream.Send(answer)
		}
	}
}
