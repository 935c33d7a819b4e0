package api

import (
	"bytes"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services/storageerr"
)

// Unread returns a whole answer of a service to a request that net/http, or the listener, refuses with a status before any
// handler sees it: with a request id, and the document of an error. The connection ends with it.
func (s *Server) Unread(service geo.Service, status int) []byte {
	w := unread{Response: http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Close: true}}
	x := &exchange{
		Server: s, w: echo.NewResponse(&w, nil), r: &http.Request{Header: http.Header{}}, service: service, op: operation.Unknown,
		req: &protocol.Request{ID: s.o.IDs.Next()},
	}
	start := s.o.Clock.Now()
	x.fail(x.early(unreadError(status)))
	x.end(start)
	w.Body, w.ContentLength = io.NopCloser(&w.body), int64(w.body.Len())
	var out bytes.Buffer
	_ = w.Response.Write(&out) // To memory.
	return out.Bytes()
}

// unreadError is the error of a request that was refused unread. net/http says no more than the status: 400 is nearly always
// a target that is no URI.
func unreadError(status int) error {
	row := storageerr.InvalidInput
	switch status {
	case http.StatusServiceUnavailable:
		return errTooMany
	case http.StatusBadRequest:
		return storageerr.InvalidURI.Saying("The request line is not that of a request for a valid URI, or a header is malformed.")
	case http.StatusNotImplemented:
		row = storageerr.NotImplemented
	case http.StatusRequestHeaderFieldsTooLarge, http.StatusExpectationFailed:
		row = storageerr.InvalidHeaderValue
	}
	row.Status = status
	return row
}

// unread is an answer in memory.
type unread struct {
	http.Response
	body bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *unread) Header() http.Header { return w.Response.Header }

// WriteHeader implements http.ResponseWriter.
func (w *unread) WriteHeader(status int) { w.StatusCode = status }

// Write implements http.ResponseWriter.
func (w *unread) Write(p []byte) (int, error) { return w.body.Write(p) }
