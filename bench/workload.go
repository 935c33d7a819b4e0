package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// The workloads. fdatasync measures the disk and is no workload of requests.
const (
	workloadInsert    = "insert"
	workloadGet       = "get"
	workloadFdatasync = "fdatasync"
)

// entityFillBytes makes an entity of 1 KiB with its keys and names.
const entityFillBytes = 960

// object is one entity or blob of a run: the n-th of a partition's worker.
type object struct {
	worker, n int
}

// workload says how objects are written and read, and what the timed operation
// is. One value serves one connection.
type workload struct {
	// name holds everything of this run: a table or a container.
	name       string
	partitions int
	blob       bool
	// size is the bytes of a blob.
	size int
	// reads says that the timed operation reads what was written first.
	reads bool

	key, buf []byte
}

// kind is a row of the table of workloads.
type kind struct {
	blob, reads bool
	size        int
}

func workloads() map[string]kind {
	return map[string]kind{
		workloadInsert: {},
		workloadGet:    {reads: true},
		"blob-put-4k":  {blob: true, size: 4 << 10},
		"blob-get-4k":  {blob: true, size: 4 << 10, reads: true},
		"blob-put-4m":  {blob: true, size: 4 << 20},
		"blob-get-4m":  {blob: true, size: 4 << 20, reads: true},
	}
}

func workloadNames() string {
	names := []string{workloadFdatasync}
	for name := range workloads() {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func newWorkload(o Options, name string) *workload {
	k := workloads()[o.Workload]
	return &workload{name: name, partitions: o.Partitions, blob: k.blob, size: k.size, reads: k.reads}
}

// create is the call that makes the table or container of the run.
func (w *workload) create() *call {
	if w.blob {
		return &call{
			method: http.MethodPut, path: "/" + w.name, query: "restype=container",
			canonical: "\nrestype:container", blob: true,
		}
	}
	return &call{
		method: http.MethodPost, path: "/Tables", headers: "Accept: application/json;odata=nometadata\r\n",
		contentType: "application/json", body: fmt.Appendf(nil, `{"TableName":%q}`, w.name),
	}
}

// partition is where an object lives: neighbours in number are spread.
func (w *workload) partition(o object) int { return (o.n*31 + o.worker*7919) % w.partitions }

// write is the call that writes an object, and read the one that reads it. Both
// are valid until the next call of either.
func (w *workload) write(o object) *call {
	w.keyOf(o)
	if w.blob {
		return &call{
			method: http.MethodPut, path: w.blobPath(o), contentType: "application/octet-stream",
			headers: "x-ms-blob-type: BlockBlob\r\n", signed: "x-ms-blob-type:BlockBlob\n",
			body: w.value(), blob: true,
		}
	}
	w.buf = fmt.Appendf(w.buf[:0], `{"PartitionKey":"p%04d","RowKey":"%02d-%08d","V":"`, w.partition(o), o.worker, o.n)
	w.buf = appendFill(w.buf, w.key, entityFillBytes)
	w.buf = append(w.buf, `"}`...)
	return &call{
		method: http.MethodPost, path: "/" + w.name,
		headers:     "Accept: application/json;odata=nometadata\r\nPrefer: return-no-content\r\n",
		contentType: "application/json", body: w.buf,
	}
}

func (w *workload) read(o object) *call {
	if w.blob {
		return &call{method: http.MethodGet, path: w.blobPath(o), blob: true}
	}
	return &call{
		method:  http.MethodGet,
		path:    fmt.Sprintf("/%s(PartitionKey='p%04d',RowKey='%02d-%08d')", w.name, w.partition(o), o.worker, o.n),
		headers: "Accept: application/json;odata=nometadata\r\n",
	}
}

// check reports whether the body of a read holds the object's value.
func (w *workload) check(o object, body []byte) error {
	w.keyOf(o)
	if w.blob {
		if !bytes.Equal(body, w.value()) {
			return fmt.Errorf("blob %v: %d bytes are not those written", o, len(body))
		}
		return nil
	}
	w.buf = append(w.buf[:0], `"V":"`...)
	w.buf = appendFill(w.buf, w.key, entityFillBytes)
	w.buf = append(w.buf, '"')
	if !bytes.Contains(body, w.buf) {
		return fmt.Errorf("entity %v: %.200q does not hold the value written", o, body)
	}
	return nil
}

func (w *workload) blobPath(o object) string {
	return fmt.Sprintf("/%s/p%04d/%02d-%08d", w.name, w.partition(o), o.worker, o.n)
}

// keyOf makes key the text that the object's value is made of.
func (w *workload) keyOf(o object) {
	w.key = fmt.Appendf(w.key[:0], "%s-%d-%d-", w.name, o.worker, o.n)
}

// value is the content of the blob named by key: cheap to make, different in
// every kilobyte, so that no layer can fold it.
func (w *workload) value() []byte {
	if cap(w.buf) < w.size {
		w.buf = make([]byte, w.size)
	}
	w.buf = w.buf[:w.size]
	var seed [32]byte
	copy(seed[:], fmt.Appendf(nil, "%016x", xxhash.Sum64(w.key)))
	source := rand.NewChaCha8(seed)
	_, _ = source.Read(w.buf)
	return w.buf
}

// appendFill appends n bytes of text made of word.
func appendFill(b, word []byte, n int) []byte {
	for n > 0 {
		part := word[:min(n, len(word))]
		b = append(b, part...)
		n -= len(part)
	}
	return b
}
