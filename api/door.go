package api

import (
	"errors"
	"net/http"
	"slices"
	"sync"

	"antipode/geo"
	"antipode/services/storageerr"
)

// door sends requests to the location that has their account, and knows no catalog: a
// location that does not have the account in the role asked for says who does. So a door
// needs neither keys nor state, and works while any location does.
type door struct {
	// locations are asked in this order for an account that was not seen before.
	locations []geo.Location

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

// servedMax bounds what a door remembers; above it, it begins anew.
const servedMax = 16 << 10

func newDoor(locations []geo.Location) *door {
	return &door{locations: locations, served: map[role]geo.Location{}}
}

// next is the location to try after others: the one known to have the account, else
// the first. any is false when all were tried.
func (d *door) next(r role, tried []geo.Location) (l geo.Location, known, any bool) {
	d.mu.Lock()
	l, known = d.served[r]
	d.mu.Unlock()
	if known && !slices.Contains(tried, l) {
		return l, true, true
	}
	for _, l := range d.locations {
		if !slices.Contains(tried, l) {
			return l, false, true
		}
	}
	return "", false, false
}

// learn takes what an answer says of who served it.
func (d *door) learn(r role, h http.Header) {
	at := geo.Location(h.Get(servedByHeader))
	if !slices.Contains(d.locations, at) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.served) >= servedMax {
		clear(d.served)
	}
	d.served[r] = at
}

// throughDoor hands the request to the location that is known to have the account, or
// asks one after the other: one that does not have it says who does, or, where it cannot
// say (it was created elsewhere a moment ago, or too few nodes run there), leaves it to
// the next. Where nobody served it, one that was reached forwards it or says what is wrong.
func (x *exchange) throughDoor() error {
	x.op = opForwarded
	if x.r.Header.Get(doorHeader) != "" || x.r.Header.Get(doorAskHeader) != "" {
		return errDoors
	}
	target := &x.req.Target
	who := role{target.Account, target.Secondary}
	learn := func(h http.Header) { x.door.learn(who, h) }
	hand := hop{mark: doorHeader, edge: true, answered: learn, reads: x.reads(), lost: new(int)}
	ask := hand
	ask.mark, ask.refusal = doorAskHeader, notHereHeader
	var tried, reached []geo.Location
	for {
		l, known, any := x.door.next(who, tried)
		if !any {
			break
		}
		h := ask
		if known && len(tried) == 0 {
			h = hand // What it does not have it forwards; the body need not wait for that.
		}
		tried = append(tried, l)
		err := x.forward(l, h)
		switch {
		case errors.Is(err, errRefused):
			reached = append(reached, l)
		case !errors.Is(err, errUnreachable):
			return err
		}
	}
	for _, l := range reached {
		if err := x.forward(l, hand); !errors.Is(err, errUnreachable) {
			return err
		}
	}
	return errNoLocation
}

// errNoLocation: nothing happened.
var errNoLocation = storageerr.ServerBusy.Saying("No location can be reached now. Please retry your request.")

// errDoors: a door that took itself for a location would go round for ever.
var errDoors = storageerr.ServerBusy.Saying("A front door was asked by a front door. Its configuration names one as a node of a location.")

// refuseDoor reports whether a door asked for what is not served here, and tells it.
func (x *exchange) refuseDoor() bool {
	if x.r.Header.Get(doorAskHeader) == "" {
		return false
	}
	x.op = opForwarded // Counted by who serves it.
	x.w.Header().Set(notHereHeader, string(x.o.Location))
	return true
}

// tellDoor tells a door which location has the account in the role asked for.
func (x *exchange) tellDoor(l geo.Location) {
	if x.r.Header.Get(doorHeader) != "" || x.r.Header.Get(doorAskHeader) != "" {
		x.w.Header().Set(servedByHeader, string(l))
	}
}
