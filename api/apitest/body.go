package apitest

import (
	"errors"
	"io"
)

// HeldEnd is a body whose read that reaches the end returns when the request is cancelled.
type HeldEnd struct {
	io.ReadCloser
	// Reached is closed when the end was read.
	Reached chan struct{}
	// Cancelled is the request's.
	Cancelled <-chan struct{}
}

// Read implements io.Reader.
func (b *HeldEnd) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		close(b.Reached)
		<-b.Cancelled
	}
	return n, err
}
