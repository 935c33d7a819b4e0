// Package routing passes a request on to the process that serves it: to the node that leads
// its range (Leaders), to the location that has its account (Forwarder.Forward), and, in a
// gateway, to the location that is known to have it (Gateway). A hop is one such request
// between two processes, Host and request target byte for byte.
//
// Invariants: a request makes one hop to another location and one to a leader at most. No
// request is sent again that may have had an effect, or whose body was touched (R1); whether
// it may have one is declared with its operation, not derived from its HTTP method.
package routing

import (
	"net/http"
	"time"

	"antipode/geo"
)

// Request is a request under way.
type Request struct {
	W http.ResponseWriter
	R *http.Request
	// Service is the one that the request addresses.
	Service geo.Service
	// Reads reports that the request has no effect (operation.Reads): it may be sent again
	// when its answer was lost. Nothing else may, whatever its method is.
	Reads bool
	// Long is how long the request may take after its body came, where that is more than operation.RequestMax; zero for any other.
	Long time.Duration
}
