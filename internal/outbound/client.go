package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"time"
)

// Errors of a Client besides those of the way to the server.
var (
	// ErrNotListed refuses a server that the list does not have.
	ErrNotListed = errors.New("the server is not listed")
	// ErrAddress refuses the addresses of a listed server.
	ErrAddress = errors.New("the server has no address that may be connected to")
	// ErrRedirect refuses an answer that names another place.
	ErrRedirect = errors.New("the server answers with a redirect, which is not followed")
	// ErrBusy refuses a request beyond the number of those under way.
	ErrBusy = errors.New("as many requests as there may be are under way")
)

const (
	// firstByteMax bounds the time from the request to the header of its answer: look-up and connection included.
	firstByteMax = 30 * time.Second
	// dialMax bounds a connection to one address.
	dialMax = 10 * time.Second
	// requestsMax bounds the requests under way, connectionsMax those of them to one server.
	requestsMax    = 256
	connectionsMax = 64
	// headerBytesMax bounds the header of an answer.
	headerBytesMax = 64 << 10
)

// Options configures a Client. The zero value is valid: it permits nothing.
type Options struct {
	List List
	// Lookup finds the addresses of a name. Nil means the machine's resolver.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// FirstByteMax bounds the time to the header of an answer. Zero means 30 s.
	FirstByteMax time.Duration
}

// Client reads from the servers of its list. It may be used concurrently.
type Client struct {
	o         Options
	transport *http.Transport
	// underWay has an element for each request.
	underWay chan struct{}
	// own returns the addresses of this machine, and connect connects to an address: for tests.
	own     func() ([]netip.Addr, error)
	connect func(ctx context.Context, network, addr string) (net.Conn, error)
}

// NewClient returns a client. Close must follow.
func NewClient(o Options) *Client {
	if o.Lookup == nil {
		o.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	if o.FirstByteMax == 0 {
		o.FirstByteMax = firstByteMax
	}
	c := &Client{o: o, underWay: make(chan struct{}, requestsMax), own: ownAddresses, connect: (&net.Dialer{Timeout: dialMax}).DialContext}
	c.transport = &http.Transport{
		DialContext: c.dial, DisableCompression: true, MaxResponseHeaderBytes: headerBytesMax, TLSHandshakeTimeout: dialMax,
		MaxConnsPerHost: connectionsMax, MaxIdleConnsPerHost: connectionsMax / 4, MaxIdleConns: connectionsMax, IdleConnTimeout: time.Minute,
	}
	return c
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Permits reports whether the list has the server of a URL.
func (c *Client) Permits(u *url.URL) bool { return c.o.List.Permits(u) }

// Do sends a GET or a HEAD of a URL, and nothing but the header that it takes. An error is one of those above, that of ctx, or
// of the way to the server; an answer is no redirect. Its body must be closed, and the caller bounds by ctx how long it may take.
func (c *Client) Do(ctx context.Context, method string, u *url.URL, header http.Header) (*http.Response, error) {
	switch {
	case !c.Permits(u):
		return nil, ErrNotListed
	case method != http.MethodGet && method != http.MethodHead:
		return nil, fmt.Errorf("method %s reads nothing", method)
	}
	select {
	case c.underWay <- struct{}{}:
	default:
		return nil, ErrBusy
	}
	within, cancel := context.WithCancelCause(ctx)
	b := &body{cancel: cancel, done: func() { <-c.underWay }}
	late := time.AfterFunc(c.o.FirstByteMax, func() { cancel(os.ErrDeadlineExceeded) })
	sent := http.Header{"User-Agent": {"Antipode"}}
	maps.Copy(sent, header)
	resp, err := c.transport.RoundTrip((&http.Request{
		Method: method, URL: u, Header: sent, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(within))
	if !late.Stop() && err == nil {
		_ = resp.Body.Close()
		err = os.ErrDeadlineExceeded
	}
	if err == nil && resp.StatusCode/100 == 3 && resp.StatusCode != http.StatusNotModified {
		_ = resp.Body.Close()
		err = ErrRedirect
	}
	if err != nil {
		_ = b.end()
		return nil, c.failed(ctx, within, err)
	}
	b.ReadCloser, resp.Body = resp.Body, b
	return resp, nil
}

// failed is the error of a request that brought no answer.
func (c *Client) failed(ctx, within context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(within), os.ErrDeadlineExceeded):
		return os.ErrDeadlineExceeded
	}
	return err
}

// dial connects to a server of the list. The addresses are looked up with each connection, and one that was looked at is
// what is connected to: between a look and a second look-up the answer could change.
func (c *Client) dial(ctx context.Context, network, at string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return nil, err
	}
	p, listed := c.o.List.of(host, port)
	if !listed {
		return nil, ErrNotListed
	}
	addrs, err := c.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	own, err := c.own()
	if err != nil {
		return nil, err
	}
	err = ErrAddress
	for _, a := range addrs {
		if !p.permits(a, own) {
			continue
		}
		conn, failed := c.connect(ctx, network, net.JoinHostPort(a.String(), port))
		if failed == nil {
			return conn, nil
		}
		err = failed
	}
	return nil, err
}

func (c *Client) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	return c.o.Lookup(ctx, host)
}

// body is the body of an answer.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
	done   func()
	once   sync.Once
}

// Close ends the request.
func (b *body) Close() error { return errors.Join(b.ReadCloser.Close(), b.end()) }

// end gives back what the request counts for.
func (b *body) end() error {
	b.once.Do(func() {
		b.cancel(nil)
		b.done()
	})
	return nil
}
