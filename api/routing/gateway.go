package routing

import (
	"errors"
	"net/http"
	"slices"
	"sync"

	"antipode/geo"
	"antipode/services/storageerr"
)

// Gateway passes requests to the location that has their account, and knows no catalog: a
// location that does not have the account in the role asked for names the one that does. So
// a gateway needs neither keys nor state, and works while any location does. Its methods may
// be called concurrently.
type Gateway struct {
	// locations are asked in this order for an account that was not seen before.
	locations []geo.Location
	forward   *Forwarder
	observer  GatewayObserver

	mu sync.Mutex
	// served is who answered for an account last. It may be out of date, which costs
	// another hop. Guarded by mu.
	served map[role]geo.Location
}

// role is an account as one of its two endpoints addresses it.
type role struct {
	account   geo.Account
	secondary bool
}

// servedMax bounds what a gateway remembers; above it, it forgets everything.
const servedMax = 16 << 10

// NewGateway returns a gateway to the locations.
func NewGateway(locations []geo.Location, f *Forwarder, o GatewayObserver) *Gateway {
	return &Gateway{locations: locations, forward: f, observer: o, served: map[role]geo.Location{}}
}

// next is the location to try after others: the one known to have the account, else
// the first. any is false when all were tried.
func (g *Gateway) next(r role, tried []geo.Location) (l geo.Location, known, any bool) {
	g.mu.Lock()
	l, known = g.served[r]
	g.mu.Unlock()
	if known && !slices.Contains(tried, l) {
		return l, true, true
	}
	for _, l := range g.locations {
		if !slices.Contains(tried, l) {
			return l, false, true
		}
	}
	return "", false, false
}

// learn records the location that an answer names, and forgets one that doubts that it has the account.
func (g *Gateway) learn(r role, h http.Header) {
	at := geo.Location(h.Get(servedByHeader))
	g.mu.Lock()
	defer g.mu.Unlock()
	if at == "" && h.Get(notHereHeader) != "" {
		delete(g.served, r)
	}
	if !slices.Contains(g.locations, at) {
		return
	}
	if len(g.served) >= servedMax {
		clear(g.served)
	}
	g.served[r] = at
}

// Pass passes the request to the location that is known to have the account, or asks one
// after the other: one that does not have it names the one that does or, if it does not
// know (the account was created elsewhere a moment ago, or too few nodes run there), leaves
// it to the next. If all leave it, one that was reached forwards it or answers with the
// error.
func (g *Gateway) Pass(q Request, account geo.Account, secondary bool) error {
	if ofGateway(q.R) {
		return errGateways
	}
	who := role{account, secondary}
	pass := hop{mark: gatewayHeader, edge: true, answered: func(h http.Header) { g.learn(who, h) }, lost: new(int)}
	ask := pass
	ask.mark, ask.refusal = gatewayAskHeader, notHereHeader
	var tried, reached []geo.Location
	for {
		l, known, any := g.next(who, tried)
		if !any {
			break
		}
		h := ask
		if known && len(tried) == 0 {
			h = pass // The location forwards what it does not have; the body need not wait for that.
		}
		tried = append(tried, l)
		err := g.toLocation(q, l, h)
		switch {
		case errors.Is(err, errRefused):
			reached = append(reached, l)
		case !errors.Is(err, errUnreachable):
			return err
		}
	}
	for _, l := range reached {
		if err := g.toLocation(q, l, pass); !errors.Is(err, errUnreachable) {
			return err
		}
	}
	return errNoLocation
}

// errNoLocation: nothing happened.
var errNoLocation = storageerr.ServerBusy.Saying("No location can be reached now. Please retry your request.")

// errGateways: a gateway that took itself for a location would go round for ever.
var errGateways = storageerr.ServerBusy.Saying("A gateway was asked by a gateway. Its configuration names one as a node of a location.")

// toLocation is Forwarder.toLocation, observed.
func (g *Gateway) toLocation(q Request, l geo.Location, h hop) error {
	outcome := outcomeBroken // Forwarder.toLocation panics with http.ErrAbortHandler then.
	defer func() { g.observer.Forwarded(l, outcome) }()
	err := g.forward.toLocation(q, l, h)
	outcome = outcomeOf(err)
	return err
}

func ofGateway(r *http.Request) bool {
	return r.Header.Get(gatewayHeader) != "" || r.Header.Get(gatewayAskHeader) != ""
}

// NotHere marks the answer to a gateway that asks to serve a request only if the account is
// here, and reports whether one does. The gateway then asks another location.
func NotHere(q Request, here geo.Location) bool {
	if q.R.Header.Get(gatewayAskHeader) == "" {
		return false
	}
	q.W.Header().Set(notHereHeader, string(here))
	return true
}

// Doubtful shows to a gateway that the location that answers may have lost the account to another one, which it cannot
// reach (R21). The gateway, which may reach that one, asks all of them for the next request.
func Doubtful(q Request, here geo.Location) {
	if ofGateway(q.R) {
		q.W.Header().Set(notHereHeader, string(here))
	}
}

// ServedBy names to a gateway the location that has the account in the role asked for.
func ServedBy(q Request, l geo.Location) {
	if ofGateway(q.R) {
		q.W.Header().Set(servedByHeader, string(l))
	}
}
