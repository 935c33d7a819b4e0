package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
)

// Blobs of --size in blocks of 4 MiB, put and read block after block by one connection.
const (
	workloadPutBlocks = "blob-put-blocks"
	workloadGetBlocks = "blob-get-blocks"
)

// blocksBytes is the size of a blob by default, and blocksMax how many blocks one may have.
const (
	blocksBytes = 256 << 20
	blocksMax   = 50_000
)

// blocks are objects that are each a block of a blob of many, and objects in a row are of one blob.
type blocks struct {
	blobs
	// whole is the bytes of a blob.
	whole int
}

func newBlocks(o Options, b blobs) blocks { return blocks{b, int(o.Size)} }

// count is how many blocks a blob has.
func (k *blocks) count() int { return (k.whole + blobBytes - 1) / blobBytes }

// fit makes size the bytes of the block, and returns where it begins in its blob.
func (k *blocks) fit(o object) (position int) {
	position = o.n % k.count() * blobBytes
	k.size = min(blobBytes, k.whole-position)
	return position
}

func (k *blocks) path(o object) string { return k.blobs.path(object{o.worker, o.n / k.count()}) }

func (k *blocks) write(o object) *call { return k.put(o, k.path(o)) }

// put stages the block for the blob at path.
func (k *blocks) put(o object, path string) *call {
	k.fit(o)
	k.keyOf(o)
	id := blockID(o.n % k.count())
	return &call{
		method: http.MethodPut, path: path, query: "comp=block&blockid=" + id, canonical: "\nblockid:" + id + "\ncomp:block",
		contentType: "application/octet-stream", body: k.value(), status: http.StatusCreated, blob: true,
	}
}

// blockID is the same in a query and in XML.
func blockID(n int) string { return base64.StdEncoding.EncodeToString(appendNumber(nil, n, 6)) }

// commit makes the staged blocks the blob at path.
func (k *blocks) commit(path string) *call {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="utf-8"?><BlockList>`)
	for n := range k.count() {
		b.WriteString("<Latest>" + blockID(n) + "</Latest>")
	}
	b.WriteString("</BlockList>")
	return &call{
		method: http.MethodPut, path: path, query: "comp=blocklist", canonical: "\ncomp:blocklist",
		contentType: "application/xml", body: b.Bytes(), status: http.StatusCreated, blob: true,
	}
}

func (k *blocks) read(o object) *call {
	position := k.fit(o)
	return k.getRange(k.path(o), position, k.size)
}

func (k *blocks) check(o object, body []byte) error {
	k.fit(o)
	return k.blobs.check(o, body)
}

// upload puts the blob at path, whose first block is o.
func (k *blocks) upload(ctx context.Context, w *worker, o object, path string) (took span, err error) {
	took.start = w.clock.Now()
	for i := range k.count() {
		if _, _, err := w.exactly(ctx, k.put(object{o.worker, o.n + i}, path)); err != nil {
			return took, err
		}
	}
	_, last, err := w.exactly(ctx, k.commit(path))
	took.end = last.end
	return took, err
}

// putBlocks puts a blob at a time.
type putBlocks struct{ blocks }

func newPutBlocks(o Options, b blobs) operation { return &putBlocks{newBlocks(o, b)} }

func (p *putBlocks) ready(context.Context, *worker) error { return nil }

func (p *putBlocks) perform(ctx context.Context, w *worker) (took span, moved int, err error) {
	o := object{w.id, w.next}
	took, err = p.upload(ctx, w, o, p.path(o))
	w.next += p.count()
	return took, p.whole, err
}

// getBlocks reads the connection's blob, and compares each block before it asks for the next.
type getBlocks struct{ blocks }

func newGetBlocks(o Options, b blobs) operation { return &getBlocks{newBlocks(o, b)} }

func (g *getBlocks) ready(ctx context.Context, w *worker) error {
	o := object{w.id, 0}
	_, err := g.upload(ctx, w, o, g.path(o))
	w.next = g.count()
	return err
}

func (g *getBlocks) perform(ctx context.Context, w *worker) (took span, moved int, err error) {
	took.start = w.clock.Now()
	for n := range g.count() {
		o := object{w.id, n}
		a, one, err := w.exactly(ctx, g.read(o))
		if err != nil {
			return took, 0, err
		}
		if err := g.check(o, a.body); err != nil {
			return took, 0, fmt.Errorf("%w: %s: %w", errVoid, wrongValue, err)
		}
		took.end = one.end
	}
	return took, g.whole, nil
}
