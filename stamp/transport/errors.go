package transport

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/snapshot"
)

// chunkErrors are the errors of a store, and of snapshots, that keep their meaning over the wire, each
// under a code that gRPC itself never gives.
var chunkErrors = [...]struct { //nolint:gochecknoglobals // A table, never written.
	err  error
	code codes.Code
}{
	{extent.ErrNotFound, codes.NotFound},
	{extent.ErrCorrupt, codes.DataLoss},
	{extent.ErrMismatch, codes.FailedPrecondition},
	{extent.ErrFailed, codes.Aborted},
	{kv.ErrBusy, codes.OutOfRange},
	{snapshot.ErrUnneeded, codes.AlreadyExists},
}

// toStatus is what a peer gets of an error.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	code := codes.Unknown
	for _, e := range chunkErrors {
		if errors.Is(err, e.err) {
			code = e.code
		}
	}
	if errors.Is(err, ErrFrame) {
		code = codes.InvalidArgument
	}
	return status.Error(code, err.Error())
}

// remoteError carries a peer's words with the sentinel they stood for.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }

// fromStatus is the inverse of toStatus. The deadline of a call becomes
// context.DeadlineExceeded.
func fromStatus(err error) error {
	s, ok := status.FromError(err)
	if err == nil || errors.Is(err, io.EOF) || !ok {
		return err
	}
	for _, e := range chunkErrors {
		if s.Code() == e.code {
			return &remoteError{s.Message(), e.err}
		}
	}
	if s.Code() == codes.DeadlineExceeded {
		return fmt.Errorf("%s: %w", s.Message(), context.DeadlineExceeded)
	}
	return spoken{err}
}
