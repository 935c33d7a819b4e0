package routing

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services/storageerr"
)

// relayBytes is how much of an answer is in memory on its way.
const relayBytes = 32 << 10

// hop is one way of sending a request to another front end.
type hop struct {
	// mark is the header that shows the receiver how the request came.
	mark string
	// refusal is the header of an answer by which the other front end leaves the
	// request to another. Empty, which no header is: every answer is final. With it a body is sent when the
	// other front end asks for it, so that it can be sent elsewhere.
	refusal string
	// epoch is the highest one of the account that the sender knows of; zero if it knows none.
	epoch geo.Epoch
	// edge reports that the next receiver of the answer is no front end of ours.
	edge bool
	// lost counts the answers to the request that were lost, over all its hops. A read is
	// sent again after the first one only: the request itself may be what ends its server.
	lost *int
	// passedOn reports that the receiver of the answer is a gateway, and the other end a node of this location.
	passedOn bool
	// passed, if set, is called with the address of a front end that passed the request on within its location.
	passed func(addr string)
	// answered, if set, receives the headers of every answer.
	answered func(h http.Header)
}

// Outcomes of a hop under which the request had no effect, and its body is still to be
// read: it may be sent to another front end.
var (
	// errUnreachable: the other front end was not reached, or the first answer to a read
	// was lost.
	errUnreachable = errors.New("front end not reached")
	// errRefused: it answered that another is to serve the request.
	errRefused = errors.New("front end refused to serve")
)

// send answers the request with the answer of the front end at addr, streaming both ways.
// After errUnreachable and errRefused the request may be sent elsewhere. After any other
// error nothing may be sent again (R1), and the error is the answer: OperationTimedOut if a
// write may have had an effect.
func (f *Forwarder) send(q Request, addr string, h hop) error {
	w, r := q.W, q.R
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	detach := context.AfterFunc(r.Context(), cancel)
	defer detach()
	p := startPatience(q.Long, cancel)
	defer p.pause()
	body := &forwardedBody{body: r.Body, patience: p}
	to := parseAddress(addr)
	resp, err := f.via(to).RoundTrip(f.outgoing(ctx, q, to, h, body))
	if err != nil {
		return h.failed(q, body, p, err)
	}
	defer func() { _ = resp.Body.Close() }() // Read to its end or given up.
	f.noteLeaving(addr, resp.Header)
	if h.passed != nil && resp.Header.Get(passedOnHeader) != "" {
		h.passed(addr)
	}
	if h.answered != nil {
		h.answered(resp.Header)
	}
	if resp.Header.Get(h.refusal) != "" && body.withdraw() {
		_, _ = io.CopyN(io.Discard, resp.Body, relayBytes) // So that the connection is kept.
		return errRefused
	}
	defer protocol.StopSender(r)
	body.answered.Store(true)
	// An end that closes the connection may answer before the end of the body, which may
	// never come.
	if resp.Close {
		detach() // Stopping the sender may cancel r's context; the answer is relayed all the same.
		protocol.StopSender(r)
	}
	f.relay(w, resp, h, p)
	return nil
}

// failed returns the error of a request that brought no answer. A request that was given up
// because the other end did nothing is not sent again: the next end would do the same work
// in vain.
func (h hop) failed(q Request, body *forwardedBody, p *patience, err error) error {
	r := q.R
	var netErr *net.OpError
	unsent := errors.As(err, &netErr) && netErr.Op == "dial"
	again := unsent || q.Reads && !p.over.Load() && *h.lost == 0
	switch broke := body.broke.Load(); {
	case broke != nil: // Nothing begins before the end of its body came.
		err = protocol.BodyError(*broke)
	case r.Context().Err() != nil:
		err = r.Context().Err()
	case again && body.withdraw():
		if !unsent {
			*h.lost++
		}
		return errUnreachable
	default:
		err = storageerr.OperationTimedOut // The request may have arrived.
	}
	protocol.StopSender(r)
	return err
}

// relay writes the answer to the client. One that breaks off is broken off visibly.
func (f *Forwarder) relay(w http.ResponseWriter, resp *http.Response, h hop, p *patience) {
	header := w.Header()
	clear(header)
	for name, values := range resp.Header {
		if !hopByHop(name) && name != leavingHeader && (!h.edge || !forGateways(name)) {
			header[spelling(name)] = values
		}
	}
	if h.passedOn {
		header.Set(passedOnHeader, "1")
	}
	if header["Content-Type"] == nil {
		header["Content-Type"] = nil // Else net/http guesses one.
	}
	w.WriteHeader(resp.StatusCode)
	buf := f.buffers.Get().(*[]byte)
	defer f.buffers.Put(buf)
	out := protocol.PatientWriter{W: w}
	for {
		p.resume()
		n, err := resp.Body.Read(*buf)
		p.pause() // The client takes the time that PatientWriter gives it.
		if n > 0 {
			if _, err := out.Write((*buf)[:n]); err != nil {
				panic(http.ErrAbortHandler)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			panic(http.ErrAbortHandler)
		}
	}
}

// outgoing copies the request. The target goes as it came: Opaque is written as it
// is, but for a leading "//", which net/http would take for an authority.
func (f *Forwarder) outgoing(ctx context.Context, q Request, to destination, h hop, body *forwardedBody) *http.Request {
	r := q.R
	u := to.url()
	path, query, hasQuery := strings.Cut(r.RequestURI, "?")
	u.RawQuery, u.ForceQuery = query, hasQuery && query == ""
	if strings.HasPrefix(path, "//") {
		u.Path, u.RawPath = r.URL.Path, path
	} else {
		u.Opaque = path
	}
	out := (&http.Request{
		Method: r.Method, URL: u, Host: r.Host, Header: r.Header.Clone(), Body: body, ContentLength: r.ContentLength,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, TransferEncoding: r.TransferEncoding,
	}).WithContext(ctx)
	for name := range out.Header {
		if hopByHop(name) {
			delete(out.Header, name)
		}
	}
	switch {
	case r.ContentLength != 0:
	case !q.Reads && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		out.Body = unrepeatable{}
	default:
		out.Body = http.NoBody
	}
	if _, sent := out.Header["User-Agent"]; !sent {
		out.Header["User-Agent"] = nil // Nothing of ours in its place.
	}
	// net/http's transport sends a request with one of these headers again when its connection
	// breaks, even if the request changes something (R1). It looks for the canonical spelling
	// only, and the names of headers have no case for the receiver.
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, sent := out.Header[name]; sent {
			delete(out.Header, name)
			out.Header[strings.ToLower(name)] = values
		}
	}
	f.introduce(out.Header, to)
	h.introduce(out.Header, f.from)
	if h.refusal != "" && r.ContentLength != 0 {
		out.Header.Set("Expect", "100-continue")
	}
	return out
}

// introduce marks a request of this hop.
func (h hop) introduce(header http.Header, from string) {
	delete(header, leaderHopHeader) // Of a node of this location, not of where it goes.
	if h.edge {
		delete(header, hopHeader) // A client's invention, as those below.
		for _, name := range ofGateways() {
			delete(header, name)
		}
	}
	header.Set(h.mark, from)
	if !h.epoch.IsZero() {
		header.Set(epochHeader, h.epoch.String())
	}
}

// forGateways reports whether a header informs a gateway of who answers.
func forGateways(name string) bool {
	return name == servedByHeader || name == notHereHeader || name == passedOnHeader
}

// spelling is how the location that answered had written a header: net/http's client
// returns names in its own form.
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
