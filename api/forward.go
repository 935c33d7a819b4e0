package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services/storageerr"
)

// hopHeader marks a forwarded request: it is not forwarded again (DESIGN 2.1).
const hopHeader = "X-Antipode-Hop"

// unreachableAfter is within what a request for a location that does not answer is
// refused (DESIGN 2.1).
const unreachableAfter = 2 * time.Second

// Forwarder sends requests to the front ends of other locations, Host and request
// target byte for byte. It may be used concurrently.
type Forwarder struct {
	// from names the sender in the hop header.
	from      string
	endpoints func(l geo.Location, s geo.Service) (addr string, ok bool)
	transport *http.Transport
}

// Dial connects to a front end; a link between locations implements it.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// NewForwarder returns a forwarder. endpoints gives the host:port of a location's
// front end of a service.
func NewForwarder(from string, endpoints func(geo.Location, geo.Service) (string, bool), dial Dial) *Forwarder {
	return &Forwarder{from: from, endpoints: endpoints, transport: &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, unreachableAfter)
			defer cancel()
			return dial(ctx, network, addr)
		},
		DisableCompression:    true,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       30 * time.Second,
		ExpectContinueTimeout: requestMax,
	}}
}

// Close closes idle connections.
func (f *Forwarder) Close() { f.transport.CloseIdleConnections() }

// Forward answers the request with what the location's front end answers.
func (f *Forwarder) Forward(w http.ResponseWriter, r *http.Request, to geo.Location, s geo.Service) error {
	addr, ok := f.endpoints(to, s)
	if !ok || r.Header.Get(hopHeader) != "" {
		return unreachable(to)
	}
	out := f.outgoing(r, addr)
	defer protocol.StopSender(r)
	resp, err := f.transport.RoundTrip(out)
	if err != nil {
		if r.Context().Err() != nil {
			return r.Context().Err()
		}
		var netErr *net.OpError
		if errors.As(err, &netErr) && netErr.Op == "dial" || isRead(r.Method) {
			return unreachable(to)
		}
		// The request may have arrived.
		return storageerr.OperationTimedOut
	}
	defer func() { _ = resp.Body.Close() }() // Read to its end or given up.
	h := w.Header()
	clear(h)
	for name, values := range resp.Header {
		if !hopByHop(name) {
			h[spelling(name)] = values
		}
	}
	early := resp.Close && r.ContentLength != 0 // Perhaps before the end of the body, which may never come.
	if early {
		h["Connection"] = []string{"close"}
	}
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(protocol.PatientWriter{W: w}, resp.Body); err != nil {
		panic(http.ErrAbortHandler) // The answer has begun: break it off visibly.
	}
	if early {
		protocol.Linger(w, r)
	}
	return nil
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// unreachable names the place that a late client is to be patient for.
func unreachable(l geo.Location) error {
	return storageerr.ServerBusy.Saying("The account is served by location " + string(l) + ", which cannot be reached now. Please retry your request.")
}

// outgoing copies the request. The target goes as it came: Opaque is written as it
// is, but for a leading "//", which net/http would take for an authority.
func (f *Forwarder) outgoing(r *http.Request, addr string) *http.Request {
	u := &url.URL{Scheme: "http", Host: addr}
	path, query, hasQuery := strings.Cut(r.RequestURI, "?")
	u.RawQuery, u.ForceQuery = query, hasQuery && query == ""
	if strings.HasPrefix(path, "//") {
		u.Path, u.RawPath = r.URL.Path, path
	} else {
		u.Opaque = path
	}
	out := (&http.Request{
		Method: r.Method, URL: u, Host: r.Host, Header: r.Header.Clone(), Body: r.Body, ContentLength: r.ContentLength,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, TransferEncoding: r.TransferEncoding,
	}).WithContext(r.Context())
	for name := range out.Header {
		if hopByHop(name) {
			delete(out.Header, name)
		}
	}
	if r.ContentLength == 0 {
		out.Body = http.NoBody
	}
	if _, sent := out.Header["User-Agent"]; !sent {
		out.Header["User-Agent"] = nil // Nothing of ours in its place.
	}
	out.Header.Set(hopHeader, f.from)
	return out
}

// spelling is how the location that answered had written a header: net/http's client
// hands names on in its own form.
func spelling(name string) string {
	switch {
	case name == "Etag":
		return "ETag"
	case strings.HasPrefix(name, "X-Ms-Meta-"):
		return strings.ToLower(name) // As metadata is kept.
	}
	return name
}

// hopByHop are the headers of a connection, not of a message (RFC 9110 7.6.1).
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}
