package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/cespare/xxhash/v2"
)

// blobs are objects that are each put and read whole.
type blobs struct {
	name       string
	partitions int
	// size is the bytes of each.
	size int

	key, buf []byte
}

func (b *blobs) create() *call {
	return &call{
		method: http.MethodPut, path: "/" + b.name, query: "restype=container",
		canonical: "\nrestype:container", blob: true,
	}
}

func (b *blobs) write(o object) *call { return b.put(o, b.path(o)) }

func (b *blobs) put(o object, path string) *call {
	b.keyOf(o)
	return &call{
		method: http.MethodPut, path: path, contentType: "application/octet-stream",
		headers: "x-ms-blob-type: BlockBlob\r\n", signed: "x-ms-blob-type:BlockBlob\n",
		body: b.value(), blob: true,
	}
}

func (b *blobs) read(o object) *call { return b.get(b.path(o)) }

func (b *blobs) get(path string) *call {
	return &call{method: http.MethodGet, path: path, blob: true}
}

// getRange reads n bytes from position on.
func (b *blobs) getRange(path string, position, n int) *call {
	c := b.get(path)
	c.signedLast, c.status = fmt.Sprintf("x-ms-range:bytes=%d-%d\n", position, position+n-1), http.StatusPartialContent
	return c
}

func (b *blobs) check(o object, body []byte) error {
	b.keyOf(o)
	if !bytes.Equal(body, b.value()) {
		return fmt.Errorf("blob %v: %d bytes are not those written", o, len(body))
	}
	return nil
}

func (b *blobs) path(o object) string {
	return fmt.Sprintf("/%s/p%04d/%02d-%08d", b.name, o.partition(b.partitions), o.worker, o.n)
}

// keyOf makes key the text that the object's value is made of.
func (b *blobs) keyOf(o object) {
	b.key = fmt.Appendf(b.key[:0], "%s-%d-%d-", b.name, o.worker, o.n)
}

// value is the content of the blob named by key: cheap to make, different in
// every kilobyte, so that no layer can fold it.
func (b *blobs) value() []byte {
	if cap(b.buf) < b.size {
		b.buf = make([]byte, b.size)
	}
	b.buf = b.buf[:b.size]
	var seed [32]byte
	copy(seed[:], fmt.Appendf(nil, "%016x", xxhash.Sum64(b.key)))
	source := rand.NewChaCha8(seed)
	_, _ = source.Read(b.buf)
	return b.buf
}
