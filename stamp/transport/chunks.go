package transport

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"antipode/stamp/extent"
	"antipode/stamp/transport/wire"
)

// chunkPeer is the chunk store of a peer: node.ChunkPeer.
type chunkPeer struct{ p *peerLink }

// call runs f with the deadline of a chunk call, and waits for the connection within it.
func (c chunkPeer) call(ctx context.Context, what string, f func(ctx context.Context, client wire.StampClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.p.t.o.ChunkTimeout)
	defer cancel()
	if err := f(ctx, wire.NewStampClient(c.p.chunks)); err != nil {
		return fmt.Errorf("peer %d: %s: %w", c.p.id, what, fromStatus(err))
	}
	return nil
}

// PutChunk implements node.ChunkPeer.
func (c chunkPeer) PutChunk(ctx context.Context, ref extent.Ref, data []byte) error {
	return c.call(ctx, "put chunk "+ref.ID.String(), func(ctx context.Context, client wire.StampClient) error {
		stream, err := client.PutChunk(ctx, grpc.WaitForReady(true))
		if err != nil {
			return err
		}
		err = stream.SendMsg(&part{ref: ref})
		for len(data) > 0 && err == nil {
			n := min(len(data), partBytes)
			err = stream.SendMsg(&part{data: data[:n]})
			data = data[n:]
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		// io.EOF: the peer has answered already, with an error.
		_, err = stream.CloseAndRecv()
		return err
	})
}

// SyncChunks implements node.ChunkPeer.
func (c chunkPeer) SyncChunks(ctx context.Context) error {
	return c.call(ctx, "sync chunks", func(ctx context.Context, client wire.StampClient) error {
		_, err := client.SyncChunks(ctx, &wire.Empty{}, grpc.WaitForReady(true))
		return err
	})
}

// ReadChunk implements node.ChunkPeer.
func (c chunkPeer) ReadChunk(ref extent.Ref, off int64, p []byte) (int, error) {
	in := part{sink: p}
	err := c.call(context.Background(), "read chunk "+ref.ID.String(), func(ctx context.Context, client wire.StampClient) error {
		if off < 0 {
			return fmt.Errorf("offset %d is below zero", off)
		}
		stream, err := client.ReadChunk(ctx, &wire.ReadRequest{
			Ref:    &wire.ChunkRef{Id: ref.ID[:], Length: ref.Length, Crc: ref.CRC},
			Offset: uint64(off), Length: uint64(len(p)),
		}, grpc.WaitForReady(true))
		for err == nil {
			err = stream.RecvMsg(&in)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	if err == nil && in.got < len(p) {
		err = io.EOF
	}
	return in.got, err
}
