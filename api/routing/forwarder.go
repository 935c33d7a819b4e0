package routing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"antipode/api/operation"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/storageerr"
)

// Bounds of reaching a front end.
const (
	// unreachableAfter is how soon a request for a location that does not answer is
	// refused (DESIGN 2.1); dialMax bounds one connection, so that a second front end
	// of the location is tried in that time.
	unreachableAfter = 2 * time.Second
	dialMax          = unreachableAfter / 2
	// avoidFor is how long a front end that was not reached, or is going to stop, is passed over while the
	// location has others.
	avoidFor = 5 * time.Second
	// idlePerHost is how many connections to a front end stay open for the next request.
	idlePerHost = 128
)

// Forwarder sends requests to other front ends, Host and request target byte for byte:
// to another location's, and to those of this location's other nodes. It may be used
// concurrently.
type Forwarder struct {
	// from names the sender in the headers that mark a hop.
	from      string
	endpoints func(l geo.Location, s geo.Service) []string
	transport *http.Transport
	buffers   sync.Pool // *[]byte of relayBytes
	// hops reaches the listeners of other front ends' HopHandler; nil without WithTLS.
	hops *http.Transport
	// secret is that of WithSecret.
	secret string

	mu sync.Mutex
	// missed is when a front end was last not reached; those that answer are not in it.
	// Guarded by mu.
	missed map[string]time.Time
	// first is the front end of a location that is tried first for a service, if that is not the first one of all: those
	// before passed requests on to it, or past it. Guarded by mu.
	first map[entrance]string
	// leaving is when a front end last answered that it is going to stop. Guarded by mu.
	leaving map[string]time.Time
}

type entrance struct {
	location geo.Location
	service  geo.Service
}

// Dial connects to a front end; a link between locations implements it.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// NewForwarder returns a forwarder. endpoints gives the front ends of a location for a
// service, host:port, http(s)://host:port or those of HopAddress, in the order in which they are
// tried; none if the location is unknown. A nil dial is the machine's own.
func NewForwarder(from string, endpoints func(geo.Location, geo.Service) []string, dial Dial) *Forwarder {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return &Forwarder{
		from: from, endpoints: endpoints, missed: map[string]time.Time{}, leaving: map[string]time.Time{}, first: map[entrance]string{},
		buffers: sync.Pool{New: func() any { b := make([]byte, relayBytes); return &b }},
		transport: &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, dialMax)
				defer cancel()
				return dialed(dial(ctx, network, addr))
			},
			DisableCompression:  true,
			MaxIdleConnsPerHost: idlePerHost,
			IdleConnTimeout:     30 * time.Second,
			// What ends the wait for a 100 is patience, not a body that was not asked for.
			ExpectContinueTimeout: operation.DownloadMax,
		},
	}
}

// dialed marks the error of a connection that was not made, of a link that is cut too: nothing was sent.
func dialed(c net.Conn, err error) (net.Conn, error) {
	var known *net.OpError
	if err == nil || errors.As(err, &known) && known.Op == "dial" {
		return c, err
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
}

// Close closes idle connections.
func (f *Forwarder) Close() {
	f.transport.CloseIdleConnections()
	if f.hops != nil {
		f.hops.CloseIdleConnections()
	}
}

// Forward answers the request with the answer of one of the location's front ends. A
// request that was forwarded to this location already is not forwarded again. When the
// answer to a read is lost, the read is sent to another front end once. ErrMoved for a read
// that the location does not serve either: it may be sent again.
func (f *Forwarder) Forward(q Request, to geo.Location) error {
	if q.R.Header.Get(hopHeader) != "" {
		return ErrNeither
	}
	h := hop{mark: hopHeader, lost: new(int)}
	if q.Reads { // The body of a write would wait for the other location to ask for it.
		h.refusal = notHereHeader
	}
	err := f.toLocation(q, to, h)
	switch {
	case errors.Is(err, errUnreachable):
		return ErrAway
	case errors.Is(err, errRefused):
		return fmt.Errorf("%w: %w", ErrMoved, ErrNeither)
	default:
		return err
	}
}

// ErrMoved means that the location to which a read was forwarded does not have the account in
// the role asked for: a failover has moved it meanwhile (R19). It wraps the answer to a client,
// too.
var ErrMoved = errors.New("the account has moved")

// Moved shows to the location that forwarded a read that this one does not serve it, and
// reports whether there is one.
func Moved(q Request, here geo.Location) bool {
	if !q.Reads || q.R.Header.Get(hopHeader) == "" {
		return false
	}
	q.W.Header().Set(notHereHeader, string(here))
	return true
}

// toLocation sends the request to one of a location's front ends. Errors: those of send;
// errUnreachable if none of them was reached in unreachableAfter.
func (f *Forwarder) toLocation(q Request, to geo.Location, h hop) error {
	begun := clock.System{}.Now() // Sockets live in the machine's time.
	at := entrance{to, q.Service}
	addrs := f.endpoints(to, q.Service)
	h.passed = func(addr string) { f.tryAfter(at, addr, addrs) }
	for _, addr := range f.order(at, addrs) {
		err := f.send(q, addr, h)
		reached := !errors.Is(err, errUnreachable)
		f.remember(addr, reached)
		if reached {
			return err
		}
		if (clock.System{}).Now().Sub(begun) >= unreachableAfter {
			break
		}
	}
	return errUnreachable
}

// tryAfter has the front end that follows addr be tried first from now on: addr passed a request on to another one. So after
// as many requests as there are front ends they go to the one that leads what most of them are about.
func (f *Forwarder) tryAfter(at entrance, addr string, addrs []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(addrs, addr); i >= 0 && addr == cmp.Or(f.first[at], addrs[0]) {
		f.first[at] = addrs[(i+1)%len(addrs)]
	}
}

// order begins with the front end that answers by itself, as far as is known, and puts those that were not reached lately,
// or are going to stop, last.
func (f *Forwarder) order(at entrance, addrs []string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(addrs, f.first[at]); i > 0 {
		addrs = slices.Concat(addrs[i:], addrs[:i])
	}
	if len(f.missed)+len(f.leaving) == 0 || len(addrs) < 2 {
		return addrs
	}
	now := clock.System{}.Now()
	avoided := func(addr string) bool {
		at, missed := f.missed[addr]
		since, leaves := f.leaving[addr]
		return missed && now.Sub(at) < avoidFor || leaves && now.Sub(since) < avoidFor
	}
	var first, last []string
	for _, addr := range addrs {
		if avoided(addr) {
			last = append(last, addr)
		} else {
			first = append(first, addr)
		}
	}
	return slices.Concat(first, last)
}

func (f *Forwarder) remember(addr string, reached bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if reached {
		delete(f.missed, addr)
	} else {
		f.missed[addr] = clock.System{}.Now()
	}
}

// Leave shows on an answer that this front end is going to stop: the connection ends with it, and another front end sends
// its next request elsewhere.
func Leave(r *http.Request, h http.Header) {
	h["Connection"] = []string{"close"}
	if ofGateway(r) || r.Header.Get(hopHeader) != "" {
		h.Set(leavingHeader, "1")
	}
}

// noteLeaving records whether a front end that answered is going to stop.
func (f *Forwarder) noteLeaving(addr string, h http.Header) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.Get(leavingHeader) != "" {
		f.leaving[addr] = clock.System{}.Now()
	} else {
		delete(f.leaving, addr)
	}
}

// ErrAway is the answer to a client while the location that serves its account is not reached. It does not name that one,
// since the client may be a stranger.
var ErrAway = storageerr.ServerBusy.Saying("The location that serves the account cannot be reached now. Please retry your request.")

// ErrNeither is the answer while each of two locations that were asked takes the other one for the one that serves the account:
// for a moment of a failover, or until an operator decides, where one was set back to before it took the account.
var ErrNeither = storageerr.ServerBusy.Saying(
	"Each location takes another one for the one that serves the account now. Please retry your request; if that lasts, the operator has to decide.")

// ErrLost is the answer where a gateway knows an account that the location does not know which has served it.
var ErrLost = storageerr.ServerBusy.Saying(
	"The location that served the account does not know it any more. Please retry your request; if that lasts, the operator has to decide.")
