package main

import (
	"context"
	"fmt"
	"net/http"
)

// workloadBlobCopy measures Copy Blob within the account, of a source of --size that is uploaded once, in blocks. Each
// copy is another blob, and must be complete when it is answered.
const workloadBlobCopy = "blob-copy"

// copySourceBytes is the size of the source by default.
const copySourceBytes = 5 << 30

// copies are objects that are each a block of a copy, as the source has it.
type copies struct {
	blocks
	endpoint string
}

func newCopies(o Options, b blobs) operation { return &copies{newBlocks(o, b), o.Endpoint} }

func (c *copies) source() string { return "/" + c.name + "/source" }

// ready uploads the source by the first connection.
func (c *copies) ready(ctx context.Context, w *worker) error {
	if w.id > 0 {
		return nil
	}
	_, err := c.upload(ctx, w, object{}, c.source())
	return err
}

func (c *copies) perform(ctx context.Context, w *worker) (took span, moved int, err error) {
	a, took, err := w.exactly(ctx, c.write(object{w.id, w.next}))
	if err == nil && a.copied != "success" {
		err = fmt.Errorf("%w: a copy was answered with the copy status %q", errVoid, a.copied)
	}
	w.next += c.count()
	return took, 0, err
}

// write copies the source to the blob that a block is in.
func (c *copies) write(o object) *call {
	from := c.endpoint + c.source()
	return &call{
		method: http.MethodPut, path: c.path(o), headers: "x-ms-copy-source: " + from + "\r\n",
		signed: "x-ms-copy-source:" + from + "\n", status: http.StatusAccepted, blob: true,
	}
}

func (c *copies) check(o object, body []byte) error {
	return c.blocks.check(object{0, o.n % c.count()}, body)
}
