package tables

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services/storageerr"
)

// InFlightBytesMax is the usual bound of bodies held at once, in bytes.
const InFlightBytesMax = 64 << 20

// heldPerByte: a body is held as it was sent, decoded, and as the change on its way.
const heldPerByte = 3

// bodyStep is what is first charged, and read, of a body, in bytes; then twice as much.
const bodyStep = 8 << 10

// NewInFlight returns a bound of bodies held at once, in bytes.
func NewInFlight(bytesMax int64) *protocol.InFlight {
	return protocol.NewInFlightOf(bytesMax, heldPerByte*operation.Named(geo.Table, "EntityGroupTransaction").BodyMax(protocol.Newest))
}

// openBody returns the request's body, at most as much of it as the operation takes, each part
// charged before it is read.
func (c *call) openBody() (*boundedBody, error) {
	length, limit := c.r.HTTP.ContentLength, c.in.row.BodyMax(c.r.Version)
	if length > limit {
		return nil, bodyTooLarge(limit)
	}
	if length < 0 {
		length = limit
	}
	c.hold = c.InFlight.Hold(c.r)
	return &boundedBody{body: c.r.HTTP.Body, limit: int(limit), sum: c.in.md5, ctx: c.ctx, hold: c.hold, length: int(length)}, nil
}

// readBody reads the whole request body.
func (c *call) readBody() ([]byte, error) {
	r, err := c.openBody()
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 0, min(r.length+1, bodyStep)) // One more than comes, to read the end.
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, r.sum.check()
		case err != nil:
			return nil, err
		case len(buf) == cap(buf):
			more := min(len(buf), r.length+1-len(buf)) // Twice as much, or all that may come.
			buf = slices.Grow(buf, max(more, 1))
		}
	}
}

// boundedBody is a request body whose reads fail with a row of storageerr when it is too
// large or breaks off.
type boundedBody struct {
	body io.Reader
	// limit is the longest body, read what was read of it, in bytes.
	limit, read int
	sum         *bodyMD5

	ctx     context.Context // The request's own, which the body ends with.
	hold    *protocol.Hold
	charged int // bytes of the body that hold was charged for
	length  int // the most that can come
}

// charge waits until the body may have n bytes in memory.
func (b *boundedBody) charge(n int) error {
	n = min(n, b.length)
	if n <= b.charged {
		return nil
	}
	n = min(max(n, 2*b.charged, bodyStep), b.length)
	if err := b.hold.Grow(b.ctx, heldPerByte*int64(n-b.charged)); err != nil {
		return err
	}
	b.charged = n
	return nil
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if err := b.charge(b.read + len(p)); err != nil {
		return 0, err
	}
	n, err := b.body.Read(p)
	b.sum.write(p[:n])
	b.read += n
	switch {
	case b.read > b.limit:
		return 0, bodyTooLarge(int64(b.limit))
	case err != nil && !errors.Is(err, io.EOF):
		return n, protocol.BodyError(err)
	}
	return n, err
}

func bodyTooLarge(limit int64) error {
	return storageerr.RequestBodyTooLarge.With("MaxLimit", strconv.FormatInt(limit, 10))
}
