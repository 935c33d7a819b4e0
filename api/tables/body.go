package tables

import (
	"errors"
	"io"
	"os"
	"strconv"

	"antipode/api/odata"
	"antipode/services/storageerr"
)

// bodyMax is the largest request body in bytes (spec/table.md 4.6).
const bodyMax = 4 << 20

// InFlightBytesMax is the usual bound of bodies held at once, in bytes.
const InFlightBytesMax = 64 << 20

// heldPerByte: a body is held as it was sent, decoded, and as the change on its way.
const heldPerByte = 3

// admit waits until the request's body may be held; Release what it returns. A body
// of unstated length counts as the largest.
func (c *call) admit() (held int64, err error) {
	length := c.r.HTTP.ContentLength
	if length > bodyMax {
		return 0, bodyTooLarge()
	}
	if length < 0 {
		length = bodyMax
	}
	return c.InFlight.Admit(c.ctx, heldPerByte*length)
}

// body reads the whole request body, at most bodyMax. It was admitted.
func (c *call) body() ([]byte, error) {
	if err := odata.CheckContentType(string(c.r.Version), c.r.Header("Content-Type")); err != nil {
		return nil, err
	}
	sum, err := newBodyMD5(c.r.Header("Content-MD5"))
	if err != nil {
		return nil, err
	}
	r := &boundedBody{body: c.r.HTTP.Body, left: bodyMax, sum: sum}
	buf := make([]byte, 0, max(c.r.HTTP.ContentLength, 512))
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, sum.check()
		case err != nil:
			return nil, err
		case len(buf) == cap(buf):
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// boundedBody is a request body that says so when it is too large, or breaks off.
type boundedBody struct {
	body io.Reader
	left int
	sum  *bodyMD5
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.sum.write(p[:n])
	b.left -= n
	switch {
	case b.left < 0:
		return 0, bodyTooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, storageerr.OperationTimedOut
	case err != nil && !errors.Is(err, io.EOF):
		return n, storageerr.InvalidInput // The client broke off: fewer bytes than it said.
	}
	return n, err
}

func bodyTooLarge() error {
	return storageerr.RequestBodyTooLarge.With("MaxLimit", strconv.Itoa(bodyMax))
}
