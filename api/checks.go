package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"antipode/geo"
	"antipode/services/storageerr"
)

// cors reads what the answer to a request from a web page says of its origin (protocol/queue.md 6.2). An answer that is
// made again has the headers again.
func (x *exchange) cors(ctx context.Context) error {
	if x.r.Header.Get("Origin") == "" {
		return nil
	}
	set, err := x.o.Accounts.CORS(ctx, x.req)
	if err == nil && set != nil {
		x.w.Before(func() { set(x.w.Header()) })
	}
	return err
}

// trimHeader drops the white space at the ends of values. net/http leaves it where a folded line ends in it, and no
// signature covers it.
func trimHeader(h http.Header) {
	for name, values := range h {
		for i, value := range values {
			if trimmed := strings.Trim(value, " \t"); trimmed != value {
				h[name] = slices.Clone(h[name]) // The array may be that of other names, too.
				h[name][i] = trimmed
			}
		}
	}
}

// checkLength refuses a PUT or a POST that says nothing about its body: one of blobs must
// say how long it is, the others may send it in chunks (protocol/blob.md 2.4, protocol/queue.md 3,
// protocol/table.md 8).
func checkLength(r *http.Request, s geo.Service) error {
	put := r.Method == http.MethodPut
	if !put && r.Method != http.MethodPost || r.ContentLength > 0 || r.Header.Get("Content-Length") != "" {
		return nil
	}
	if r.ContentLength < 0 && (s != geo.Blob || !put) {
		return nil
	}
	return storageerr.MissingContentLength
}
