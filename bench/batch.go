package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// batchEntities is the number of inserts in a transaction: the most that the
// protocol allows.
const batchEntities = 100

const (
	batchBoundary = "batch_bench"
	setBoundary   = "changeset_bench"
)

// errAbsent means that nothing of an object is there. At the secondary it may be
// on its way; a part of a transaction without the rest never is.
var errAbsent = errors.New("nothing is there")

// batches are objects of batchEntities entities, each inserted by one entity group
// transaction and read back by one query.
type batches struct {
	name       string
	partitions int
	// together is how many transactions in a row are of one partition.
	together int
	// opening is the text of every operation up to the digits of its PartitionKey.
	opening string

	word, buf []byte
}

func newBatches(o Options, name string, together int) *batches {
	return &batches{
		name: name, partitions: o.Partitions, together: together,
		opening: "--" + setBoundary + "\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
			"POST " + o.Endpoint + "/" + name + " HTTP/1.1\r\n" + acceptJSON + preferNothing +
			"Content-Type: application/json\r\n\r\n" + `{"PartitionKey":"p`,
	}
}

func (b *batches) create() *call { return createTable(b.name) }

func (b *batches) partition(o object) int {
	return object{o.worker, o.n / b.together}.partition(b.partitions)
}

// write is one $batch of one change set. Its 125 KB are made by appending to one
// buffer, since the generator must cost less than the server it measures.
func (b *batches) write(o object) *call {
	buf := append(b.buf[:0], "--"+batchBoundary+"\r\nContent-Type: multipart/mixed; boundary="+setBoundary+"\r\n\r\n"...)
	for i := range batchEntities {
		b.wordOf(o, i)
		buf = append(buf, b.opening...)
		buf = appendNumber(buf, b.partition(o), 4)
		buf = append(buf, `","RowKey":"`...)
		buf = appendRowKey(buf, o, i)
		buf = append(buf, `","V":"`...)
		buf = appendFill(buf, b.word, entityFillBytes)
		buf = append(buf, "\"}\r\n"...)
	}
	b.buf = append(buf, "--"+setBoundary+"--\r\n--"+batchBoundary+"--\r\n"...)
	return &call{
		method: http.MethodPost, path: "/$batch", headers: acceptJSON,
		contentType: "multipart/mixed; boundary=" + batchBoundary, body: b.buf,
	}
}

// batchOutcome names the first part of an answer to $batch that refuses, "" if there
// are none and as many parts as operations.
func batchOutcome(body []byte) string { return partsOutcome(body, batchEntities, "204 ", "201 ") }

// partsOutcome names the first part of an answer whose status is none of the good ones, "" if there are none and as
// many parts as wanted.
func partsOutcome(body []byte, wanted int, good ...string) string {
	for parts := 0; ; parts++ {
		_, rest, more := bytes.Cut(body, []byte("\r\nHTTP/1.1 "))
		switch {
		case !more && parts == wanted:
			return ""
		case !more:
			return fmt.Sprintf("%d parts", parts)
		case len(rest) < 4 || !slices.Contains(good, string(rest[:4])):
			return strings.TrimSpace(string(rest[:min(3, len(rest))]) + " " + codeOf(rest))
		}
		body = rest
	}
}

func (b *batches) read(o object) *call { return b.query(o, 1) }

func (b *batches) check(o object, body []byte) error {
	_, err := b.checkFeed(o, 1, 0, false, body)
	return err
}

// query asks for the entities of n transactions from o on, which are of one partition.
func (b *batches) query(o object, n int) *call {
	q := append(b.buf[:0], "$filter=PartitionKey%20eq%20'p"...)
	q = appendNumber(q, b.partition(o), 4)
	q = append(q, "'%20and%20RowKey%20ge%20'"...)
	q = appendRowKey(q, o, 0)
	q = append(q, "'%20and%20RowKey%20le%20'"...)
	q = appendRowKey(q, object{o.worker, o.n + n - 1}, batchEntities-1)
	b.buf = append(q, '\'')
	return &call{method: http.MethodGet, path: "/" + b.name + "()", query: string(b.buf), headers: acceptJSON}
}

// checkFeed reports how many entities body holds, which must be those of n transactions from o on, in order, each with
// its value, and no other one: all from number found on, or some where more follow in another page. It scans for
// what must come next: to decode the document would cost more than the server does to make it.
func (b *batches) checkFeed(o object, n, found int, more bool, body []byte) (int, error) {
	rest, count := body, 0
	for i := found; i < n*batchEntities; i++ {
		after, err := b.cutEntity(object{o.worker, o.n + i/batchEntities}, i%batchEntities, rest)
		if errors.Is(err, errAbsent) {
			if more {
				return count, nil
			}
			if i > 0 {
				err = fmt.Errorf("transactions from %v: %d entities of %d", o, i, n*batchEntities)
			}
		}
		if err != nil {
			return 0, err
		}
		rest = after
		count++
	}
	if bytes.Contains(rest, []byte(keyMark)) {
		return 0, fmt.Errorf("transactions from %v: more than %d entities", o, n*batchEntities)
	}
	return count, nil
}

// keyMark is before the RowKey of an entity, and valueMark before its value.
const keyMark, valueMark = `"RowKey":"`, `"V":"`

// cutEntity returns what follows the next entity, which must be the i-th of a transaction, with its value.
func (b *batches) cutEntity(o object, i int, body []byte) (rest []byte, err error) {
	_, rest, more := bytes.Cut(body, []byte(keyMark))
	if !more {
		return nil, errAbsent
	}
	b.buf = append(appendRowKey(b.buf[:0], o, i), '"')
	if !bytes.HasPrefix(rest, b.buf) {
		return nil, fmt.Errorf("transaction %v: %.20q in place of entity %d", o, rest, i)
	}
	b.wordOf(o, i)
	_, rest, more = bytes.Cut(rest, []byte(valueMark))
	if !more || len(rest) <= entityFillBytes || rest[entityFillBytes] != '"' || !isFill(rest[:entityFillBytes], b.word) {
		return nil, fmt.Errorf("transaction %v: entity %d does not hold the value written", o, i)
	}
	return rest[entityFillBytes:], nil
}

// wordOf makes word the text that the value of a transaction's i-th entity is made of.
func (b *batches) wordOf(o object, i int) {
	w := append(append(b.word[:0], b.name...), '-')
	w = append(strconv.AppendInt(w, int64(o.worker), 10), '-')
	w = append(strconv.AppendInt(w, int64(o.n), 10), '-')
	b.word = append(strconv.AppendInt(w, int64(i), 10), '-')
}

// appendRowKey appends the RowKey of a transaction's i-th entity. Those of a worker
// sort as they were written.
func appendRowKey(b []byte, o object, i int) []byte {
	b = append(appendNumber(b, o.worker, 2), '-')
	b = append(appendNumber(b, o.n, 8), '-')
	return appendNumber(b, i, 2)
}

// appendNumber appends n with zeros before it up to width digits.
func appendNumber(b []byte, n, width int) []byte {
	least := 1
	for range width - 1 {
		least *= 10
	}
	for ; least > 1 && n < least; least /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, int64(n), 10)
}

// isFill reports whether b is made of word as appendFill makes it.
func isFill(b, word []byte) bool {
	return len(b) >= len(word) && bytes.HasPrefix(b, word) && bytes.Equal(b[len(word):], b[:len(b)-len(word)])
}
