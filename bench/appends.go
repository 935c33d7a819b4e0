package main

import (
	"context"
	"fmt"
	"net/http"
)

// workloadAppend measures Append Block of 4 KiB: each connection has its own append blob.
const workloadAppend = "append"

// appendBlocksMax is how many blocks an append blob may have.
const appendBlocksMax = 50_000

// appends are objects that are each a block of an append blob, at its place in it.
type appends struct {
	blobs
	// most is how many blocks a blob gets before the next one begins.
	most int
}

func newAppends(_ Options, b blobs) operation { return &appends{b, appendBlocksMax} }

func (p *appends) ready(context.Context, *worker) error { return nil }

func (p *appends) perform(ctx context.Context, w *worker) (took span, moved int, err error) {
	o := object{w.id, w.next}
	if o.n%p.most == 0 {
		if _, _, err := w.exactly(ctx, p.begin(o)); err != nil {
			return took, 0, err
		}
	}
	_, took, err = w.exactly(ctx, p.write(o))
	w.next++
	return took, p.size, err
}

// begin makes the blob that a block is in.
func (p *appends) begin(o object) *call {
	return &call{
		method: http.MethodPut, path: p.path(o),
		headers: "x-ms-blob-type: AppendBlob\r\n", signed: "x-ms-blob-type:AppendBlob\n",
		status: http.StatusCreated, blob: true,
	}
}

// write appends the block where it must be: were one lost or there twice, the server would refuse it.
func (p *appends) write(o object) *call {
	p.keyOf(o)
	at := p.position(o)
	return &call{
		method: http.MethodPut, path: p.path(o), query: "comp=appendblock", canonical: "\ncomp:appendblock",
		headers:     fmt.Sprintf("x-ms-blob-condition-appendpos: %d\r\n", at),
		signed:      fmt.Sprintf("x-ms-blob-condition-appendpos:%d\n", at),
		contentType: "application/octet-stream", body: p.value(), status: http.StatusCreated, blob: true,
	}
}

func (p *appends) read(o object) *call { return p.getRange(p.path(o), p.position(o), p.size) }

func (p *appends) position(o object) int { return o.n % p.most * p.size }

func (p *appends) path(o object) string { return p.blobs.path(object{o.worker, o.n / p.most}) }
