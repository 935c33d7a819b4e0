package protocol

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"antipode/services/storageerr"
)

// errSourcePressed ends a slow source while others wait for the memory that it fills.
var errSourcePressed = storageerr.ServerBusy.Saying("The copy source was sent too slowly for a server that is short of memory. Please retry your request.")

// Source is a blob that an operation copies from, found and authorized (protocol/blob.md 13).
type Source struct {
	// Read is the read of a blob that this location serves, with its account, its target and its query, which may name a
	// snapshot; nil for any other blob, which Do reads. It has no conditions: those of the copy on its source are for the
	// handler to check, x-ms-source-if-tags only where Read.Access.Tags permits it.
	Read *Request
	// Do sends a read of a blob that this location does not serve: the method, Range and conditions of a request are the
	// caller's, everything else is set. Its errors are of the way there; what the source refuses is an answer
	// (storageerr.CopySourceRefused). The body of an answer must be closed, also of a HEAD, which ends the read.
	Do func(*http.Request) (*http.Response, error)
	// Shown is the URL as the properties of a copy show it: without the secret part of a signature.
	Shown string
}

// Sources finds blobs to copy from. Methods may be called concurrently.
type Sources interface {
	// Source finds the blob at uri, the value of x-ms-copy-source of a request. Errors: InvalidHeaderValue for what is no URL of
	// a blob, and CannotVerifyCopySource with the status of a refusal (protocol/blob.md 13.6).
	Source(ctx context.Context, of *Request, uri string) (*Source, error)
}

// SourceBody is the body of an answer of Source.Do as it is read. It is known how fast it comes: see InFlight.HoldFrom.
type SourceBody struct {
	body    io.Reader
	end     func()
	pressed atomic.Bool // breakOff was called
	pace    pace
}

// WatchSource returns a body that may be broken off. end ends a read of body under way; it may be called at any time.
func WatchSource(body io.Reader, end func()) *SourceBody {
	return &SourceBody{body: body, end: end, pace: newPace()}
}

// Read implements io.Reader. A body that was broken off fails with ServerBusy.
func (b *SourceBody) Read(p []byte) (int, error) {
	if b.pressed.Load() {
		return 0, errSourcePressed
	}
	b.pace.begin()
	n, err := b.body.Read(p)
	b.pace.took(n)
	if err != nil && !errors.Is(err, io.EOF) && b.pressed.Load() {
		err = errSourcePressed
	}
	return n, err
}

func (b *SourceBody) rate() float64 { return b.pace.rate() }

func (b *SourceBody) breakOff() {
	b.pressed.Store(true)
	b.end()
}
