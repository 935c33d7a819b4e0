package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
)

// workloadDelete measures Blob Batch: deletions of blobs of 1 KiB, which are all put before the run. It ends when they
// are gone: give --rows.
const workloadDelete = "batch-delete"

// batchDeletes is how many parts a batch has: the most that the protocol allows.
const batchDeletes = 256

// deletes are objects that are each a blob, which must be gone at the end.
type deletes struct {
	blobs
	// batches were dealt out to the workers in turn.
	batches, workers int
	body             []byte
}

func newDeletes(o Options, b blobs) operation {
	return &deletes{blobs: b, batches: o.Rows / batchDeletes, workers: o.Concurrency}
}

func (d *deletes) ready(ctx context.Context, w *worker) error {
	w.preloads = share(d.batches, w.id, d.workers) * batchDeletes
	err := w.preload(ctx)
	w.next = 0
	return err
}

func (d *deletes) perform(ctx context.Context, w *worker) (took span, moved int, err error) {
	c := d.batch(object{w.id, w.next}, w)
	a, took, err := w.exactly(ctx, c)
	if err != nil {
		return took, 0, err
	}
	if problem := partsOutcome(a.body, batchDeletes, "202 "); problem != "" {
		return took, 0, fmt.Errorf("%w: a batch of %d deletes: %s", errVoid, batchDeletes, problem)
	}
	w.next += batchDeletes
	w.done = w.next == w.preloads
	return took, len(c.body), nil
}

// batch deletes the blobs from o on. Each part is signed as the request that it would be alone.
func (d *deletes) batch(o object, w *worker) *call {
	now, b := w.clock.Now(), d.body[:0]
	for i := range batchDeletes {
		b = append(b, "--"+batchBoundary+"\r\nContent-Type: application/http\r\n"...)
		b = append(b, "Content-Transfer-Encoding: binary\r\nContent-ID: "...)
		b = append(strconv.AppendInt(b, int64(i), 10), "\r\n\r\n"...)
		path := d.path(object{o.worker, o.n + i})
		b = w.append(b, &call{method: http.MethodDelete, path: path, blob: true, part: true}, now)
		b = append(b, "\r\n"...)
	}
	d.body = append(b, "--"+batchBoundary+"--\r\n"...)
	return &call{
		method: http.MethodPost, path: "/", query: "comp=batch", canonical: "\ncomp:batch",
		contentType: "multipart/mixed; boundary=" + batchBoundary, body: d.body, status: http.StatusAccepted, blob: true,
	}
}

// read finds nothing.
func (d *deletes) read(o object) *call {
	c := d.blobs.read(o)
	c.status = http.StatusNotFound
	return c
}

// check has no value to compare.
func (d *deletes) check(object, []byte) error { return nil }
