package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/services/storageerr"
)

// Headers by which front ends tell each other how a request came, and what became of
// it. A client that sends one gains nothing: every front end authorizes for itself.
const (
	// hopHeader marks a request that came from another location: it is not sent to
	// another one again (DESIGN 2.1).
	hopHeader = "X-Antipode-Hop"
	// leaderHopHeader marks a request that another node of the location took for one
	// that this node leads: it is not sent to another node again.
	leaderHopHeader = "X-Antipode-Leader-Hop"
	// doorHeader marks a request of a front door, which wants to know who served it.
	// doorAskHeader does, too, and asks to serve it only where the account is.
	doorHeader    = "X-Antipode-Door"
	doorAskHeader = "X-Antipode-Door-Ask"

	// notLeaderHeader marks the answer to a leader hop by a node that does not lead.
	// Nothing happened, and no byte of the body was read.
	notLeaderHeader = "X-Antipode-Not-Leader"
	// notHereHeader marks the answer to a door that asked in vain: the account is
	// elsewhere, not known, or not now. Nothing happened, as above.
	notHereHeader = "X-Antipode-Not-Here"
	// servedByHeader tells a door which location has the account in the role asked for.
	servedByHeader = "X-Antipode-Served-By"
)

// relayBytes is how much of an answer is in memory on its way.
const relayBytes = 32 << 10

// hop is one way of handing a request to another front end.
type hop struct {
	// mark is the header that says how the request came.
	mark string
	// refusal is the header of an answer by which the other front end leaves the
	// request to somebody else. Empty: every answer is the answer. With it a body is
	// sent when the other front end asks for it, so that it can be sent elsewhere.
	refusal string
	// edge says that the next receiver of the answer is no front end of ours.
	edge bool
	// reads says that the request has no effect (operation.Reads): it may be sent again
	// when its answer was lost. Nothing else may, whatever its method is.
	reads bool
	// lost counts the answers to the request that were lost, over all its hops. A read is
	// sent again after the first one only: the request itself may be what ends its server.
	lost *int
	// answered, if set, is told of the headers of every answer.
	answered func(h http.Header)
}

// Outcomes of a hop under which the request had no effect, and its body is still to be
// read: it may be handed to another front end.
var (
	// errUnreachable: the other front end was not reached, or the first answer to a read
	// was lost.
	errUnreachable = errors.New("front end not reached")
	// errRefused: it answered that somebody else is to serve the request.
	errRefused = errors.New("front end refused to serve")
)

// hand answers the request with what the front end at addr answers, streaming both
// ways. Errors: errUnreachable and errRefused; else nothing may be sent again (R1), and
// the error is what to answer: OperationTimedOut where a write may have had an effect.
func (f *Forwarder) hand(w http.ResponseWriter, r *http.Request, addr string, h hop) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	detach := context.AfterFunc(r.Context(), cancel)
	defer detach()
	p := startPatience(cancel)
	defer p.pause()
	body := &handedBody{body: r.Body, patience: p}
	to := parseAddress(addr)
	resp, err := f.via(to).RoundTrip(f.outgoing(ctx, r, to, h, body))
	if err != nil {
		return h.failed(r, body, p, err)
	}
	defer func() { _ = resp.Body.Close() }() // Read to its end or given up.
	if h.answered != nil {
		h.answered(resp.Header)
	}
	if h.refusal != "" && resp.Header.Get(h.refusal) != "" && body.withdraw() {
		_, _ = io.CopyN(io.Discard, resp.Body, relayBytes) // So that the connection is kept.
		return errRefused
	}
	defer protocol.StopSender(r)
	body.answered.Store(true)
	// Where the other end asks for no more it may be before the end of the body, which may
	// never come.
	early := false
	if resp.Close {
		detach() // Stopping the sender may cancel r's context; the answer is relayed all the same.
		early = !protocol.StopSender(r)
	}
	f.relay(w, r, resp, h, p, early)
	return nil
}

// failed says what to make of a request that brought no answer. One that was given up
// because the other end did nothing is not asked again: the next one would do the same
// work for nobody.
func (h hop) failed(r *http.Request, body *handedBody, p *patience, err error) error {
	var netErr *net.OpError
	unsent := errors.As(err, &netErr) && netErr.Op == "dial"
	again := unsent || h.reads && !p.over.Load() && *h.lost == 0
	switch {
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

// relay writes the answer to the client. One that breaks off is broken off visibly. early
// says that it came before the end of the request's body.
func (f *Forwarder) relay(w http.ResponseWriter, r *http.Request, resp *http.Response, h hop, p *patience, early bool) {
	header := w.Header()
	clear(header)
	for name, values := range resp.Header {
		if !hopByHop(name) && (!h.edge || name != servedByHeader && name != notHereHeader) {
			header[spelling(name)] = values
		}
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
			if early {
				protocol.Linger(w, r)
			}
			return
		case err != nil:
			panic(http.ErrAbortHandler)
		}
	}
}

// outgoing copies the request. The target goes as it came: Opaque is written as it
// is, but for a leading "//", which net/http would take for an authority.
func (f *Forwarder) outgoing(ctx context.Context, r *http.Request, to destination, h hop, body *handedBody) *http.Request {
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
	case !h.reads && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		out.Body = unrepeatable{}
	default:
		out.Body = http.NoBody
	}
	if _, sent := out.Header["User-Agent"]; !sent {
		out.Header["User-Agent"] = nil // Nothing of ours in its place.
	}
	// net/http repeats a lost request that has one of these, whatever it does. It does not
	// know them in lower case; who receives them does.
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, sent := out.Header[name]; sent {
			delete(out.Header, name)
			out.Header[strings.ToLower(name)] = values
		}
	}
	f.introduce(out.Header, to)
	delete(out.Header, leaderHopHeader) // Of a node of this location, not of where it goes.
	if h.edge {
		for _, name := range [...]string{hopHeader, doorHeader, doorAskHeader} {
			delete(out.Header, name) // A client's invention.
		}
	}
	out.Header.Set(h.mark, f.from)
	if h.refusal != "" && r.ContentLength != 0 {
		out.Header.Set("Expect", "100-continue")
	}
	return out
}

// unrepeatable is an empty body. net/http takes a GET without a body for one that it may
// send again by itself when a kept connection breaks; a GET with a body that it cannot
// rewind it does not. It finds this one empty before it writes the header.
type unrepeatable struct{}

// Read implements io.Reader.
func (unrepeatable) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer.
func (unrepeatable) Close() error { return nil }

// handedBody is a request's body on its way to one front end. It is taken with the first
// read, or withdrawn before: then no read reaches the body any more.
type handedBody struct {
	body     io.Reader
	state    atomic.Int32
	patience *patience
	// answered says that the answer has begun: it is what is waited for from then on.
	answered atomic.Bool
}

const (
	bodyUnread int32 = iota
	bodyTaken
	bodyEnded
	bodyWithdrawn
)

// Read implements io.Reader, for the transport.
func (b *handedBody) Read(p []byte) (int, error) {
	if !b.state.CompareAndSwap(bodyUnread, bodyTaken) {
		switch b.state.Load() {
		case bodyEnded:
			return 0, io.EOF
		case bodyWithdrawn:
			return 0, http.ErrBodyReadAfterClose
		}
	}
	if !b.answered.Load() {
		b.patience.pause() // The client takes the time that WatchSender gives it.
	}
	n, err := b.body.Read(p)
	if errors.Is(err, io.EOF) {
		// A transport reads once more behind the end, and breaks the hop off at any other
		// error; net/http closes a body that was read when the answer begins.
		b.state.Store(bodyEnded)
	}
	if !b.answered.Load() {
		b.patience.resume()
	}
	return n, err
}

// Close implements io.Closer: the body is net/http's own.
func (*handedBody) Close() error { return nil }

// withdraw reports whether the body is unread, and keeps it so.
func (b *handedBody) withdraw() bool { return b.state.CompareAndSwap(bodyUnread, bodyWithdrawn) }

// patienceMax is how long a front end that has all it needs may do nothing before a hop
// is given up: one that was paused, or whose machine is gone, says nothing for ever. It
// is above the time within which a request without a body is answered.
const patienceMax = operation.RequestMax + 5*time.Second

// patience ends a hop whose other end does nothing. It is paused while the client is
// waited for.
type patience struct {
	timer *time.Timer
	// over says that the hop was ended.
	over atomic.Bool
}

func startPatience(end func()) *patience {
	p := &patience{}
	p.timer = time.AfterFunc(patienceMax, func() {
		p.over.Store(true)
		end()
	})
	return p
}

func (p *patience) pause()  { p.timer.Stop() }
func (p *patience) resume() { p.timer.Reset(patienceMax) }

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
