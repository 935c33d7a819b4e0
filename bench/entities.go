package main

import (
	"bytes"
	"fmt"
	"net/http"
)

const (
	// entityFillBytes makes an entity of 1 KiB with its keys and names.
	entityFillBytes = 960
	acceptJSON      = "Accept: application/json;odata=nometadata\r\n"
	// preferNothing spares the answer to an insert the entity that the client has.
	preferNothing = "Prefer: return-no-content\r\n"
)

// entities are objects that are each written and read by one request.
type entities struct {
	name       string
	partitions int

	key, buf []byte
}

func (e *entities) create() *call { return createTable(e.name) }

func createTable(name string) *call {
	return &call{
		method: http.MethodPost, path: "/Tables", headers: acceptJSON,
		contentType: "application/json", body: fmt.Appendf(nil, `{"TableName":%q}`, name),
	}
}

func (e *entities) write(o object) *call {
	e.keyOf(o)
	e.buf = fmt.Appendf(e.buf[:0], `{"PartitionKey":"p%04d","RowKey":"%02d-%08d","V":"`, o.partition(e.partitions), o.worker, o.n)
	e.buf = appendFill(e.buf, e.key, entityFillBytes)
	e.buf = append(e.buf, `"}`...)
	return &call{
		method: http.MethodPost, path: "/" + e.name, headers: acceptJSON + preferNothing,
		contentType: "application/json", body: e.buf,
	}
}

func (e *entities) read(o object) *call {
	return &call{
		method:  http.MethodGet,
		path:    fmt.Sprintf("/%s(PartitionKey='p%04d',RowKey='%02d-%08d')", e.name, o.partition(e.partitions), o.worker, o.n),
		headers: acceptJSON,
	}
}

func (e *entities) check(o object, body []byte) error {
	e.keyOf(o)
	e.buf = append(e.buf[:0], `"V":"`...)
	e.buf = appendFill(e.buf, e.key, entityFillBytes)
	e.buf = append(e.buf, '"')
	if !bytes.Contains(body, e.buf) {
		return fmt.Errorf("entity %v: %.200q does not hold the value written", o, body)
	}
	return nil
}

// keyOf makes key the text that the object's value is made of.
func (e *entities) keyOf(o object) {
	e.key = fmt.Appendf(e.key[:0], "%s-%d-%d-", e.name, o.worker, o.n)
}

// appendFill appends n bytes of text made of word. It doubles what it has: a
// transaction is made of a hundred of them.
func appendFill(b, word []byte, n int) []byte {
	start := len(b)
	b = append(b, word[:min(n, len(word))]...)
	for done := len(b) - start; done < n; done = len(b) - start {
		b = append(b, b[start:start+min(done, n-done)]...)
	}
	return b
}
