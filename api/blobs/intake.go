package blobs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"antipode/api/protocol"
	"antipode/services/blobs"
	"antipode/services/storageerr"
	"antipode/stamp/extent"
)

// putsMax is how many chunks of one upload are on their way to the nodes at once.
const putsMax = 4

// incoming is payload on its way in.
type incoming struct {
	io.Reader
	length int64
	// source is where the payload of a copy comes from, if it comes from elsewhere; nil for any other.
	source *protocol.SourceBody
	// broken is the error of the request where a read fails, or ends before length.
	broken func(error) error
}

// takeBody takes the body of the request.
func (c *call) takeBody(sums *digests) (inline []byte, chunks []extent.Ref, err error) {
	return c.take(incoming{Reader: c.r.HTTP.Body, length: c.in.length, broken: c.broken}, sums)
}

// take reads payload and sums it: inline, or into chunks that are durable when it
// returns (R3). On error nothing names what it left.
func (c *call) take(in incoming, sums *digests) (inline []byte, chunks []extent.Ref, err error) {
	if in.length == 0 {
		return nil, nil, nil
	}
	if in.length <= blobs.InlineBytesMax {
		inline, err = c.takeWhole(in, sums)
		return inline, nil, err
	}
	chunks, err = c.takeChunks(in, sums)
	return nil, chunks, err
}

// takeWhole reads a short body, which stays charged until the request ends. It is not
// pooled: the command may outlive the wait for it.
func (c *call) takeWhole(in incoming, sums *digests) ([]byte, error) {
	c.bodyHold.Release() // Of a copy that is tried again.
	c.bodyHold = c.holdOf(in)
	if err := c.bodyHold.Take(c.ctx, in.length); err != nil {
		return nil, err
	}
	body := make([]byte, in.length)
	return body, in.fill(body, sums)
}

// takeChunks puts payload chunk by chunk: while some are on their way to the disks the
// next is read. Each is charged from when its first byte came to when it is put.
func (c *call) takeChunks(in incoming, sums *digests) ([]extent.Ref, error) {
	chunks := make([]extent.Ref, (in.length+blobs.ChunkBytesMax-1)/blobs.ChunkBytesMax)
	puts, ctx := errgroup.WithContext(c.ctx)
	puts.SetLimit(putsMax)
	var broken, late error
	for i := range chunks {
		n := min(in.length-int64(i)*blobs.ChunkBytesMax, blobs.ChunkBytesMax)
		var first [1]byte
		if broken = in.fill(first[:], sums); broken != nil {
			break
		}
		hold := c.holdOf(in)
		var buf []byte
		if buf, late = c.buffer(ctx, hold, n); late != nil {
			hold.Release()
			break // A put failed, or the request's time is over.
		}
		buf[0] = first[0]
		if broken = in.fill(buf[1:], sums); broken != nil {
			c.putBufs.Put(buf)
			hold.Release()
			break
		}
		puts.Go(func() error {
			defer hold.Release()
			defer c.putBufs.Put(buf)
			c.put.Add(n) // Whatever becomes of it, some of it may be in a file.
			var err error
			chunks[i], err = c.putChunk(buf)
			return err
		})
	}
	err := puts.Wait()
	switch {
	case broken != nil: // Which may have ended puts under way.
		return nil, broken
	case err != nil:
		return nil, err
	case late != nil:
		return nil, storageerr.ServerBusy // Nothing happened.
	}
	return chunks, nil
}

// holdOf begins to charge for payload. Who sends it may be broken off while others wait.
func (c *call) holdOf(in incoming) *protocol.Hold {
	if in.source != nil {
		return c.inFlight.HoldFrom(c.r, in.source)
	}
	return c.inFlight.Hold(c.r)
}

// buffer waits for the memory of a chunk.
func (c *call) buffer(ctx context.Context, hold *protocol.Hold, n int64) ([]byte, error) {
	if err := hold.Take(ctx, n); err != nil {
		return nil, err
	}
	return c.putBufs.Get(ctx, int(n))
}

// fill reads the next bytes.
func (in *incoming) fill(p []byte, sums *digests) error {
	_, err := io.ReadFull(in, p)
	if err == nil {
		sums.write(p)
		return nil
	}
	return in.broken(err)
}

// broken is the error of a body that could not be read to its end.
func (c *call) broken(err error) error {
	if errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
		return storageerr.OperationTimedOut
	}
	return protocol.BodyError(err)
}

// putChunk makes one chunk durable under a new id.
func (c *call) putChunk(data []byte) (extent.Ref, error) {
	var id extent.ChunkID
	if _, err := io.ReadFull(c.o.Rand, id[:]); err != nil {
		return extent.Ref{}, fmt.Errorf("draw a chunk id: %w", err)
	}
	ref := extent.NewRef(id, data)
	err := c.o.Payload.PutChunk(c.ctx, ref, data)
	if err == nil {
		return ref, nil
	}
	if _, known := storageerr.Of(err); known {
		return ref, err
	}
	if c.ctx.Err() != nil {
		return ref, storageerr.OperationTimedOut
	}
	// Nothing was proposed, so nothing happened (R2).
	c.o.Logger.Error("cannot put a chunk on every node that is up; upload refused", "chunk", ref, "error", err, "request_id", c.r.ID)
	return ref, storageerr.ServerBusy
}
