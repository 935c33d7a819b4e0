package protocol

import (
	"context"
	"net/http"
)

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
