package api

import (
	"net/http"

	"antipode/geo"
	"antipode/services/storageerr"
)

// preflight answers an OPTIONS request, which never needs a signature and looks at no
// resource (protocol/blob.md 20.1). No account has rules yet, so none matches.
func preflight(h http.Header) error {
	if h.Get("Origin") == "" || h.Get("Access-Control-Request-Method") == "" {
		return storageerr.NoCORSHeader
	}
	return storageerr.CORSPreflightFailure
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
