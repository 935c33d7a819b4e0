package routing

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"antipode/geo"
	"antipode/services/storageerr"
)

// Gateway passes requests to the location that has their account, and knows no catalog: a
// location that does not have the account in the role asked for names the one that does. So
// a gateway needs neither keys nor state, and works while any location does. Its methods may
// be called concurrently.
//
// Without a witness a former primary behind a cut link does not know that the account was taken from it, and goes on
// serving it. So the epochs of accounts that the locations report (Epochs) come before who served an account last.
//
// Invariant: a request that comes after a location reported an epoch of the account is not served under the primary name
// in a lower one.
type Gateway struct {
	// locations are asked in this order for an account that was not seen before.
	locations []geo.Location
	// epochs may be nil: then nothing is known of them.
	epochs  Epochs
	forward *Forwarder
	// local may be nil: no location runs in this process.
	local    Local
	observer GatewayObserver

	mu sync.Mutex
	// served is who answered for an account last. It may be out of date, which costs
	// another hop. Guarded by mu.
	served map[role]served
}

// Epochs knows the epochs of accounts by what the locations report. Methods may be called concurrently.
type Epochs interface {
	// Newest returns the highest epoch that any location has reported for an account, whose location is the primary, and
	// the secondary of it; zero if none has. It answers from memory and never goes back, and waits only while the process
	// is new and has not asked all locations.
	Newest(ctx context.Context, a geo.Account) (e geo.Epoch, secondary geo.Location)
}

// served is a location that answered a request.
type served struct {
	by geo.Location
	// epoch is the account's as the gateway knew it when the request came. Above it the location may be the wrong one.
	epoch geo.Epoch
}

// role is an account as one of its two endpoints addresses it.
type role struct {
	account   geo.Account
	secondary bool
}

// servedMax bounds what a gateway remembers; above it, it forgets everything.
const servedMax = 16 << 10

// NewGateway returns a gateway to the locations. e and here may be nil.
func NewGateway(locations []geo.Location, e Epochs, here Local, f *Forwarder, o GatewayObserver) *Gateway {
	return &Gateway{locations: locations, epochs: e, local: here, forward: f, observer: o, served: map[role]served{}}
}

// newest returns the highest known epoch of an account, and the location that has the role in it; zero if none is known.
func (g *Gateway) newest(ctx context.Context, r role) served {
	if g.epochs == nil {
		return served{}
	}
	e, secondary := g.epochs.Newest(ctx, r.account)
	if r.secondary {
		return served{secondary, e}
	}
	return served{e.Location, e}
}

// next is the location to try after others: the one that has served the account since its newest epoch is known, else
// the one that has it in that epoch, else the first. known is set for the first of these; any is false when all were tried.
func (g *Gateway) next(r role, newest served, tried []geo.Location) (l geo.Location, known, any bool) {
	g.mu.Lock()
	last, known := g.served[r]
	g.mu.Unlock()
	if known && last.epoch.Compare(newest.epoch) >= 0 && !slices.Contains(tried, last.by) {
		return last.by, true, true
	}
	if slices.Contains(g.locations, newest.by) && !slices.Contains(tried, newest.by) {
		return newest.by, false, true
	}
	for _, l := range g.locations {
		if !slices.Contains(tried, l) {
			return l, false, true
		}
	}
	return "", false, false
}

// learn records the location that an answer names, to a request that came when the account's epoch was known as it is
// given, and forgets one that doubts that it has the account.
func (g *Gateway) learn(r role, epoch geo.Epoch, h http.Header) {
	at := geo.Location(h.Get(servedByHeader))
	g.mu.Lock()
	defer g.mu.Unlock()
	if at == "" && h.Get(notHereHeader) != "" {
		delete(g.served, r)
	}
	if !slices.Contains(g.locations, at) || g.served[r].epoch.Compare(epoch) > 0 {
		return
	}
	if len(g.served) >= servedMax {
		clear(g.served)
	}
	r.account = geo.Account(strings.Clone(string(r.account))) // A part of the request's target, which may be long.
	g.served[r] = served{at, epoch}
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
	newest := g.newest(q.R.Context(), who)
	pass := hop{mark: gatewayHeader, edge: true, epoch: newest.epoch, answered: func(h http.Header) { g.learn(who, newest.epoch, h) }, lost: new(int)}
	ask := pass
	ask.mark, ask.refusal = gatewayAskHeader, notHereHeader
	var tried, reached []geo.Location
	for {
		l, known, any := g.next(who, newest, tried)
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
	if !secondary && !newest.epoch.IsZero() {
		return ErrAway
	}
	return errNoLocation
}

// errNoLocation: nothing happened.
var errNoLocation = storageerr.ServerBusy.Saying("No location can be reached now. Please retry your request.")

// errGateways: a gateway that took itself for a location would go round for ever.
var errGateways = storageerr.ServerBusy.Saying("A gateway was asked by a gateway. Its configuration names one as a node of a location.")

// toLocation is Forwarder.toLocation, or a call where the location runs in this process, observed.
func (g *Gateway) toLocation(q Request, l geo.Location, h hop) error {
	outcome := outcomeBroken // Forwarder.toLocation panics with http.ErrAbortHandler then.
	defer func() { g.observer.Forwarded(l, outcome) }()
	here, err := g.call(q, l, h)
	if !here {
		err = g.forward.toLocation(q, l, h)
	}
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

// Refused reports whether the answer under way leaves the request to another location, as NotHere and Outrun have it: its
// body must stay unread.
func Refused(r *http.Request, answer http.Header) bool {
	return r.Header.Get(gatewayAskHeader) != "" && answer.Get(notHereHeader) != ""
}

// Doubtful shows to a gateway that the location that answers may have lost the account to another one, which it cannot
// reach (R21). The gateway, which may reach that one, asks all of them for the next request.
func Doubtful(q Request, here geo.Location) {
	if ofGateway(q.R) {
		q.W.Header().Set(notHereHeader, string(here))
	}
}

// Outrun reports whether a gateway knows of a higher epoch of an account than this location has it in; zero: it does not know
// the account. The account was taken from this location, which does not know it yet: it must not serve a request under the primary name.
// The gateway asks the other locations then.
func Outrun(q Request, here geo.Location, have geo.Epoch) bool {
	known, ok := geo.ParseEpoch(q.R.Header.Get(epochHeader))
	if !ok || have.Compare(known) >= 0 {
		return false
	}
	Doubtful(q, here)
	return true
}

// ServedBy names to a gateway the location that has the account in the role asked for.
func ServedBy(q Request, l geo.Location) {
	if ofGateway(q.R) {
		q.W.Header().Set(servedByHeader, string(l))
	}
}
