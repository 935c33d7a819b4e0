package routing

import (
	"context"
	"errors"
	"time"

	"antipode/geo"
	"antipode/services/storageerr"
)

// Leader returns where a range of this location is led, as this process knows it at the
// moment: here, or at the node whose front end for the service has the address addr
// (host:port); neither if no leader is known. It is asked for every request, and again
// and again while a request waits for a leader, so it answers from memory. It may be
// called concurrently.
type Leader func(r geo.RangeID, s geo.Service) (addr string, here bool)

const (
	// leaderWaitMax is how long a request waits for its range to have a leader that can
	// be reached, if it has that much time: above an election. It does not wait if
	// Leaders.Leaderless reports that there will be none.
	leaderWaitMax = 5 * time.Second
	// leaderPoll is after how long a request that found none asks again.
	leaderPoll = 20 * time.Millisecond
)

// errNoLeader: nothing happened.
var errNoLeader = storageerr.ServerBusy.Saying("No server can be reached that serves this part of the account now. Please retry your request.")

// Leaders passes requests to the nodes of a location that lead their ranges.
type Leaders struct {
	Location geo.Location
	// Leader may be nil: this process leads all ranges of the location.
	Leader Leader
	// Leaderless reports whether a range has had no leader for so long that none is to be
	// expected soon. Like Leader it answers from memory; nil means never.
	Leaderless func(geo.RangeID) bool
	Forward    *Forwarder
}

// Here reports whether this node leads a range, as far as it knows at the moment; true for
// zero, which any node serves.
func (l Leaders) Here(id geo.RangeID, s geo.Service) bool {
	if l.Leader == nil || id == 0 {
		return true
	}
	_, here := l.Leader(id, s)
	return here
}

// Place is where a request is to be served.
type Place uint8

// The places.
const (
	// Here: it is to be served by this node.
	Here Place = iota
	// Elsewhere: another node answered it, or will be asked by who sent it.
	Elsewhere
	// Nowhere: no node was found for it.
	Nowhere
)

// ToNode passes the request to the front end of another node of the location, which has what it is about. It makes one such
// hop at most, like Pass.
func (l Leaders) ToNode(q Request, addr string) error {
	if q.R.Header.Get(leaderHopHeader) != "" {
		q.W.Header().Set(notLeaderHeader, string(l.Location))
		return errNoLeader
	}
	err := l.Forward.send(q, addr, hop{mark: leaderHopHeader, refusal: notLeaderHeader, lost: new(int)})
	if errors.Is(err, errUnreachable) || errors.Is(err, errRefused) {
		return errNoLeader
	}
	return err
}

// Pass passes the request to the leader of a range, unless that is here. A request makes
// one such hop at most: a node that receives it for a range that it does not lead refuses
// it, and the sender asks again until the request's time is over. All of that happens
// before the body is read.
func (l Leaders) Pass(q Request, id geo.RangeID) (Place, error) {
	if l.Leader == nil || id == 0 {
		return Here, nil
	}
	addr, here := l.Leader(id, q.Service)
	if here {
		return Here, nil
	}
	if q.R.Header.Get(leaderHopHeader) != "" {
		q.W.Header().Set(notLeaderHeader, string(l.Location))
		return Elsewhere, errNoLeader
	}
	ctx, cancel := context.WithTimeout(q.R.Context(), leaderWaitMax)
	defer cancel()
	h := hop{mark: leaderHopHeader, refusal: notLeaderHeader, lost: new(int), passedOn: ofGateway(q.R)}
	for ; !here; addr, here = l.Leader(id, q.Service) {
		if addr == "" && l.Leaderless != nil && l.Leaderless(id) {
			return Nowhere, errNoLeader
		}
		if addr != "" {
			err := l.Forward.send(q, addr, h)
			if !errors.Is(err, errUnreachable) && !errors.Is(err, errRefused) {
				return Elsewhere, err
			}
		}
		select {
		case <-ctx.Done():
			return Nowhere, errNoLeader
		case <-time.After(leaderPoll):
		}
	}
	return Here, nil
}
