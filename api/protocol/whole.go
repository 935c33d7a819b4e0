package protocol

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"antipode/services/storageerr"
)

const (
	// wholeHeldPerByte: a document is held as it was sent, as it was decoded, and as what is stored on its way.
	wholeHeldPerByte = 3
	// wholeStep is what is first charged, and read, of a document, in bytes; then twice as much.
	wholeStep = 8 << 10
)

// NewInFlightOfDocuments returns a bound of documents of limit bytes at most that are held at once.
func NewInFlightOfDocuments(bytesMax, limit int64) *InFlight {
	return NewInFlightOf(bytesMax, wholeHeldPerByte*limit)
}

// ReadWhole reads the body of a request to its end, at most limit bytes, each part charged to h before it is read.
// h is one of NewInFlightOfDocuments, and holds what was read until it is released. A longer one is
// RequestBodyTooLarge.
func ReadWhole(ctx context.Context, r *Request, h *Hold, limit int64) ([]byte, error) {
	length := r.HTTP.ContentLength
	switch {
	case length > limit:
		return nil, tooLong(limit)
	case length < 0:
		length = limit
	}
	var buf []byte
	room := int64(0) // charged
	for {
		more := int64(0)
		switch n := int64(len(buf)); {
		case room == length:
			more = 1 // To read the end.
		case n == room:
			step := min(max(n, wholeStep), length-n)
			if err := h.Grow(ctx, wholeHeldPerByte*step); err != nil {
				return nil, err
			}
			room += step
		}
		buf = slices.Grow(buf, int(room+more)-len(buf))
		n, err := r.HTTP.Body.Read(buf[len(buf):int(room+more)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, tooLong(limit)
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, BodyError(err)
		}
	}
}

func tooLong(limit int64) error {
	return storageerr.RequestBodyTooLarge.With("MaxLimit", strconv.FormatInt(limit, 10))
}
