package routing

import "net/http"

// Headers by which front ends inform each other how a request came, and what became
// of it. A client that sends one gains nothing: every front end authorizes for itself.
const (
	// hopHeader marks a request that came from another location: it is not sent to
	// another one again (DESIGN 2.1).
	hopHeader = "X-Antipode-Hop"
	// leaderHopHeader marks a request that another node of the location sent to this one as
	// the leader: it is not sent to another node again.
	leaderHopHeader = "X-Antipode-Leader-Hop"
	// gatewayHeader marks a request of a gateway, which learns from the answer who served
	// it. gatewayAskHeader does, too, and asks to serve the request only if the account is
	// here.
	gatewayHeader    = "X-Antipode-Gateway"
	gatewayAskHeader = "X-Antipode-Gateway-Ask"
	// epochHeader is the highest epoch of the account that a gateway knows of. A location that has the account in a lower
	// one does not serve the request.
	epochHeader = "X-Antipode-Epoch"

	// notLeaderHeader marks the answer to a leader hop by a node that does not lead.
	// Nothing happened, and no byte of the body was read.
	notLeaderHeader = "X-Antipode-Not-Leader"
	// notHereHeader marks the answer to a gateway that asked in vain: the account is
	// elsewhere, not known, or not known now. Nothing happened, as above. On the answer to a gateway that did not ask it
	// means that the account may be elsewhere: see Doubtful.
	notHereHeader = "X-Antipode-Not-Here"
	// servedByHeader names the location that has the account in the role asked for, to a
	// gateway.
	servedByHeader = "X-Antipode-Served-By"
	// passedOnHeader marks the answer to a gateway that another node of the location gave: that one leads what the request
	// was about.
	passedOnHeader = "X-Antipode-Passed-On"
	// leavingHeader marks the answer of a front end that is going to stop: the next request goes to another one.
	leavingHeader = "X-Antipode-Leaving"
)

// Forwarded reports whether a request is marked as one that another front end has passed on. Any client can mark its own.
func Forwarded(r *http.Request) bool {
	marked := r.Header.Get(hopHeader) != "" || r.Header.Get(leaderHopHeader) != ""
	for _, name := range ofGateways() {
		marked = marked || r.Header.Get(name) != ""
	}
	return marked
}
