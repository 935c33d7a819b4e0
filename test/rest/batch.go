package rest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"antipode/geo"
)

// Operation is one write of an entity group transaction.
type Operation struct {
	// Method is POST for an insert, PUT, MERGE or DELETE.
	Method string
	// Match is the If-Match header. Without one PUT and MERGE insert what is not
	// there.
	Match string
	// Entity holds the keys, and the properties unless this is a DELETE.
	Entity Entity
}

const (
	batchBoundary     = "batch_antipode"
	changesetBoundary = "changeset_antipode"
)

// Transact sends the operations as one entity group transaction. parts are the
// inner answers: one of each operation when all succeeded, else the one of the
// operation that failed. They are nil unless the answer's status is 202.
func (c *Client) Transact(ctx context.Context, table string, ops []Operation) (parts []Answer, a Answer, err error) {
	body, err := batchBody(c.Base[geo.Table]+"/"+table, ops)
	if err != nil {
		return nil, Answer{}, err
	}
	a, err = c.Do(ctx, geo.Table, Request{
		Method: http.MethodPost, Path: "/$batch", Body: body,
		Header: map[string]string{"Content-Type": "multipart/mixed; boundary=" + batchBoundary},
	})
	if err != nil || a.Status != http.StatusAccepted {
		return nil, a, err
	}
	parts, err = batchParts(a)
	return parts, a, err
}

func batchBody(tableURL string, ops []Operation) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "--%s\r\nContent-Type: multipart/mixed; boundary=%s\r\n\r\n", batchBoundary, changesetBoundary)
	for i, op := range ops {
		target := tableURL
		if op.Method != http.MethodPost {
			target += entityKeyPart(op.Entity["PartitionKey"].(string), op.Entity["RowKey"].(string))
		}
		fmt.Fprintf(&b, "--%s\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: %d\r\n\r\n%s %s HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\n",
			changesetBoundary, i, op.Method, target)
		if op.Match != "" {
			fmt.Fprintf(&b, "If-Match: %s\r\n", op.Match)
		}
		if op.Method == http.MethodDelete {
			b.WriteString("\r\n\r\n")
			continue
		}
		entity, err := json.Marshal(op.Entity)
		if err != nil {
			return nil, fmt.Errorf("rest: entity: %w", err)
		}
		fmt.Fprintf(&b, "Prefer: return-no-content\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s\r\n", len(entity), entity)
	}
	fmt.Fprintf(&b, "--%s--\r\n--%s--\r\n", changesetBoundary, batchBoundary)
	return b.Bytes(), nil
}

// batchParts takes an answer of 202 apart.
func batchParts(a Answer) ([]Answer, error) {
	outer, err := openMultipart(a.Header.Get("Content-Type"), bytes.NewReader(a.Body))
	if err != nil {
		return nil, err
	}
	set, err := outer.NextPart()
	if err != nil {
		return nil, fmt.Errorf("rest: answer of a batch: %w in %.300q", err, a.Body)
	}
	inner, err := openMultipart(set.Header.Get("Content-Type"), set)
	if err != nil {
		return nil, err
	}
	var parts []Answer
	for {
		part, err := inner.NextPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err == nil {
			var p Answer
			if p, err = partAnswer(part); err == nil {
				parts = append(parts, p)
				continue
			}
		}
		return nil, fmt.Errorf("rest: answer of a batch: %w in %.300q", err, a.Body)
	}
}

func openMultipart(contentType string, r io.Reader) (*multipart.Reader, error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("rest: answer of a batch: %q: %w", contentType, err)
	}
	return multipart.NewReader(r, params["boundary"]), nil
}

func partAnswer(r io.Reader) (Answer, error) {
	resp, err := http.ReadResponse(bufio.NewReader(r), nil)
	if err != nil {
		return Answer{}, err
	}
	body, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	a := Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}
	if !a.OK() {
		a.Code = errorCode(resp.Header, body)
	}
	return a, err
}
