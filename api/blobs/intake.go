package blobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"antipode/services/blobs"
	"antipode/services/storageerr"
	"antipode/stamp/extent"
)

// admit waits until the bytes of a body may be in flight. A body larger than all that
// may be waits for all of it.
func (c *call) admit(length int64) (release func(), err error) {
	if length == 0 {
		return func() {}, nil
	}
	weight := min(length, c.o.InFlightBytesMax)
	if c.inFlight.Acquire(c.ctx, weight) != nil {
		return nil, storageerr.ServerBusy // Nothing happened.
	}
	return func() { c.inFlight.Release(weight) }, nil
}

// takeBody reads the body into b and sums: inline, or into chunks that are durable
// when it returns (R3). On error nothing names what it left.
func (c *call) takeBody(b *blobs.Blob, sums *digests) error {
	length := c.r.HTTP.ContentLength
	b.Length = uint64(length)
	if length == 0 {
		return nil
	}
	// A client that stalls holds bytes in flight: its time is that of the request.
	control := http.NewResponseController(c.w)
	if deadline, ok := c.ctx.Deadline(); ok && control.SetReadDeadline(deadline) == nil {
		defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	}
	if length <= blobs.InlineBytesMax {
		b.Inline = make([]byte, length) // Not pooled: the command may outlive the wait for it.
		return c.fill(b.Inline, sums)
	}
	buf, _ := c.putBufs.Get().(*[]byte)
	defer c.putBufs.Put(buf)
	b.Chunks = make([]extent.Ref, 0, (length+blobs.ChunkBytesMax-1)/blobs.ChunkBytesMax)
	for rest := length; rest > 0; {
		part := (*buf)[:min(rest, blobs.ChunkBytesMax)]
		if err := c.fill(part, sums); err != nil {
			return err
		}
		ref, err := c.putChunk(part)
		if err != nil {
			return err
		}
		b.Chunks = append(b.Chunks, ref)
		rest -= int64(len(part))
	}
	return nil
}

// fill reads the next bytes of the body.
func (c *call) fill(p []byte, sums *digests) error {
	_, err := io.ReadFull(c.r.HTTP.Body, p)
	switch {
	case err == nil:
		sums.write(p)
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(c.ctx.Err(), context.DeadlineExceeded):
		return storageerr.OperationTimedOut
	}
	return storageerr.InvalidInput // The client broke off: fewer bytes than it said.
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
