package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/membership"
	"antipode/stamp/transport/wire"
)

// service answers peers.
type service struct {
	wire.UnimplementedStampServer
	t *Transport
	// parts lends *[]byte of partBytes to reads of chunks.
	parts sync.Pool
}

var errNoNode = status.Error(codes.Unavailable, "no node is attached here")

// nodeHeader is in the headers of a stream of messages that was taken: the number of
// the node that takes it. A refusal has none. stampHeader is in the headers of both ends: the id of the stamp
// that the folder of the node is of, absent while that is not known.
const (
	nodeHeader  = "antipode-node"
	stampHeader = "antipode-stamp"
)

// ofStamp is a member that knows the stamp that its folder is of: see membership.Folder.
type ofStamp interface {
	Stamp() membership.StampID
	Meet(peer geo.NodeID, theirs membership.StampID) error
}

// ofStamp returns the attached node, nil for none, or for one that knows no stamp.
func (a *attachment) ofStamp() ofStamp {
	if a != nil {
		if m, ok := a.member.(ofStamp); ok {
			return m
		}
	}
	return nil
}

// stampPairs are the headers in which this end names its stamp.
func (a *attachment) stampPairs() metadata.MD {
	if m := a.ofStamp(); m != nil {
		if id := m.Stamp(); !id.IsZero() {
			return metadata.Pairs(stampHeader, id.String())
		}
	}
	return metadata.MD{}
}

// meet compares the stamp that a peer names with that of the attached node, if there is one.
func (a *attachment) meet(peer geo.NodeID, headers metadata.MD) error {
	m := a.ofStamp()
	if m == nil {
		return nil
	}
	theirs := membership.StampID{}
	if named := headers.Get(stampHeader); len(named) > 0 {
		theirs = membership.ParseStampID(named[0])
	}
	return m.Meet(peer, theirs)
}

// Messages implements wire.StampServer.
func (s *service) Messages(stream grpc.ClientStreamingServer[wire.Batch, wire.Empty]) error {
	from, err := caller(stream.Context())
	if err != nil {
		return status.Error(codes.Unauthenticated, err.Error())
	}
	a := s.t.attachment()
	if a == nil {
		return errNoNode
	}
	theirs, _ := metadata.FromIncomingContext(stream.Context())
	if err := a.meet(from.Node, theirs); err != nil {
		s.t.refusals.log("stamp of "+from.String(), "peer refused", "peer", from.Node, "error", err)
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	taken := metadata.Join(metadata.Pairs(nodeHeader, strconv.FormatUint(uint64(s.t.o.Self), 10)), a.stampPairs())
	if err := stream.SendHeader(taken); err != nil {
		return err
	}
	failed := make(chan error, 1)
	// RecvMsg ends with the stream, that is, once this method has returned.
	s.t.running.Go(func() { failed <- s.receive(stream, from.Node, a) })
	select {
	case err := <-failed:
		return err
	case <-a.ended:
		return errNoNode
	}
}

// receive passes messages to the member until the stream ends, with from, the node that the
// certificate names, as their sender. Which replicas that node may speak for is the
// member's to know.
func (s *service) receive(stream grpc.ServerStream, from geo.NodeID, a *attachment) error {
	for {
		var in batch // A new one each time: the member keeps the envelopes.
		err := stream.RecvMsg(&in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-a.ended:
			return errNoNode
		default:
		}
		for i := range in.envelopes {
			in.envelopes[i].From = from
		}
		a.member.Receive(in.envelopes)
	}
}

// PutChunk implements wire.StampServer.
func (s *service) PutChunk(stream grpc.ClientStreamingServer[wire.ChunkPart, wire.Empty]) error {
	a := s.t.attachment()
	if a == nil {
		return errNoNode
	}
	var in part
	if err := stream.RecvMsg(&in); err != nil {
		return err
	}
	if in.ref == (extent.Ref{}) {
		return toStatus(fmt.Errorf("%w: the first part of a chunk has no ref", ErrFrame))
	}
	ref := in.ref
	err := s.t.chunksIn.Acquire(stream.Context(), int64(ref.Length))
	if err != nil {
		return status.FromContextError(err).Err()
	}
	defer s.t.chunksIn.Release(int64(ref.Length))
	pool := mem.DefaultBufferPool()
	buf := pool.Get(int(ref.Length))
	defer pool.Put(buf)
	in.sink = *buf
	for err == nil {
		err = stream.RecvMsg(&in)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	// The store checks length and CRC against ref before it writes.
	if err := a.member.PutChunk(stream.Context(), ref, in.sink[:in.got]); err != nil {
		return toStatus(err)
	}
	return stream.SendAndClose(&wire.Empty{})
}

// SyncChunks implements wire.StampServer.
func (s *service) SyncChunks(ctx context.Context, _ *wire.Empty) (*wire.Empty, error) {
	a := s.t.attachment()
	if a == nil {
		return nil, errNoNode
	}
	return &wire.Empty{}, toStatus(a.member.SyncChunks(ctx))
}

// ReadChunk implements wire.StampServer.
func (s *service) ReadChunk(in *wire.ReadRequest, stream grpc.ServerStreamingServer[wire.ChunkPart]) error {
	a := s.t.attachment()
	if a == nil {
		return errNoNode
	}
	ref := extent.Ref{Length: in.GetRef().GetLength(), CRC: in.GetRef().GetCrc()}
	if copy(ref.ID[:], in.GetRef().GetId()) != len(ref.ID) || in.GetOffset() > math.MaxInt64 {
		return toStatus(fmt.Errorf("%w: read of a chunk", ErrFrame))
	}
	buf, _ := s.parts.Get().(*[]byte)
	if buf == nil {
		b := make([]byte, partBytes)
		buf = &b
	}
	defer s.parts.Put(buf) // SendMsg copies.
	off, left := int64(in.GetOffset()), in.GetLength()
	for {
		n, err := a.member.ReadChunk(ref, off, (*buf)[:min(left, partBytes)])
		if n > 0 {
			if err := stream.SendMsg(&part{data: (*buf)[:n]}); err != nil {
				return err
			}
		}
		off += int64(n)
		left -= uint64(n)
		if errors.Is(err, io.EOF) || err == nil && left == 0 {
			return nil
		}
		if err != nil {
			return toStatus(err)
		}
	}
}
