package api

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/geo"
)

// SourceOf is what the handler of a copy gets: the source at uri of a request for blobs of a client, which is authorized as
// any other one before. stale reports whether the answer would be marked as one that may be.
func (s *Server) SourceOf(r *http.Request, uri string) (source *protocol.Source, stale bool, err error) {
	recorder := httptest.NewRecorder()
	w := echo.NewResponse(recorder, nil)
	addr, scheme, passed := routing.Client(r, false, "")
	x := &exchange{
		Server: s, gate: s.clients, w: w, r: r, service: geo.Blob, passed: passed,
		req: &protocol.Request{HTTP: r, ClientAddr: addr, Scheme: scheme, ID: s.o.IDs.Next()},
	}
	if err := x.parse(); err != nil {
		return nil, false, err
	}
	x.req.At = s.o.Clock.Now()
	if err := x.resolve(r.Context()); err != nil {
		return nil, false, err
	}
	if err := x.authorize(x.req.Account); err != nil {
		return nil, false, err
	}
	source, err = x.Source(r.Context(), x.req, uri)
	w.WriteHeader(http.StatusOK)
	return source, recorder.Header().Get(protocol.HeaderMayBeStale) != "", err
}

// URLOf is urlOf.
func URLOf(t protocol.Target, uri string) (*url.URL, error) { return urlOf(t, uri) }

// LongOf is how long a hop waits for an operation of blobs beyond the time of other requests.
func LongOf(name string) time.Duration {
	x := &exchange{asked: operation.Match{Operation: operation.Named(geo.Blob, name)}, r: &http.Request{ContentLength: 1 << 20}}
	return x.routed().Long
}
