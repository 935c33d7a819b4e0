package api

import (
	"context"
	"errors"
	"time"

	"antipode/geo"
	"antipode/services/storageerr"
)

// Leader tells where a range of this location is led, as this process knows it at the
// moment: here, or at the node whose front end for the service has the address addr
// (host:port); neither where no leader is known. It is asked for every request, and again
// and again while a request waits for a leader, so it answers from memory. It may be
// called concurrently.
type Leader func(r geo.RangeID, s geo.Service) (addr string, here bool)

const (
	// leaderWaitMax is how long a request waits for its range to have a leader that can
	// be reached, if it has that much time: above an election. Where Options.Leaderless
	// says that there will be none it does not wait.
	leaderWaitMax = 5 * time.Second
	// leaderPoll is after how long a request that found none asks again.
	leaderPoll = 20 * time.Millisecond
)

// opNoLeader counts requests that no node was found for.
const opNoLeader = "NoLeader"

// errNoLeader: nothing happened.
var errNoLeader = storageerr.ServerBusy.Saying("No server can be reached that serves this part of the account now. Please retry your request.")

// lead hands the request to the leader of its range, unless that is here: elsewhere is
// then false. A request makes one such hop at most; a node that got it for a range that
// it does not lead says so, and the one that sent it asks again, until its time is over.
// All of that happens before the body is read.
func (x *exchange) lead() (elsewhere bool, err error) {
	if x.o.Leader == nil {
		return false, nil
	}
	id := x.asked.Range(x.service)
	if id == 0 {
		return false, nil
	}
	addr, here := x.o.Leader(id, x.service)
	if here {
		return false, nil
	}
	if x.r.Header.Get(leaderHopHeader) != "" {
		x.op = opForwarded // Counted by who asks again.
		x.w.Header().Set(notLeaderHeader, string(x.o.Location))
		return true, errNoLeader
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), leaderWaitMax)
	defer cancel()
	h := hop{mark: leaderHopHeader, refusal: notLeaderHeader, reads: x.reads(), lost: new(int)}
	for ; !here; addr, here = x.o.Leader(id, x.service) {
		if addr == "" && x.o.Leaderless != nil && x.o.Leaderless(id) {
			x.op = opNoLeader
			return true, errNoLeader
		}
		if addr != "" {
			err := x.o.Forward.hand(x.w, x.r, addr, h)
			if !errors.Is(err, errUnreachable) && !errors.Is(err, errRefused) {
				x.op = opForwarded
				return true, err
			}
		}
		select {
		case <-ctx.Done():
			x.op = opNoLeader
			return true, errNoLeader
		case <-time.After(leaderPoll):
		}
	}
	return false, nil
}
