package routing

import (
	"context"
	"errors"
	"time"

	"antipode/geo"
)

// GatewayObserver takes what a gateway did, for metrics. Its methods may be called
// concurrently.
type GatewayObserver interface {
	// Answered takes a request that was answered, one whose answer broke off included, and
	// how many bytes of its body came in and of the answer's went out.
	Answered(s geo.Service, status int, took time.Duration, in, out int64)
	// Failed takes a request that the gateway answered itself, with an error's code: it got
	// no answer of a location, or the request was malformed.
	Failed(s geo.Service, code string)
	// Forwarded takes an attempt to pass a request to a location, and how it ended: one of
	// GatewayOutcomes.
	Forwarded(to geo.Location, outcome string)
}

// How an attempt to pass a request to a location ends.
const (
	outcomeAnswered    = "answered"    // its answer is the client's
	outcomeRefused     = "refused"     // it does not have the account, or does not know now
	outcomeUnreachable = "unreachable" // none of its front ends was reached; nothing happened
	outcomeUnknown     = "unknown"     // no answer; what was asked may have happened
	outcomeGone        = "client_gone" // the client left before there was an answer
	outcomeBroken      = "broken"      // the answer broke off, at either end
)

// GatewayOutcomes are all outcomes that a GatewayObserver gets.
func GatewayOutcomes() []string {
	return []string{outcomeAnswered, outcomeRefused, outcomeUnreachable, outcomeUnknown, outcomeGone, outcomeBroken}
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return outcomeAnswered
	case errors.Is(err, errRefused):
		return outcomeRefused
	case errors.Is(err, errUnreachable):
		return outcomeUnreachable
	case errors.Is(err, context.Canceled):
		return outcomeGone
	}
	return outcomeUnknown
}

// Observed returns o, or a GatewayObserver that drops everything if o is nil.
func Observed(o GatewayObserver) GatewayObserver {
	if o == nil {
		return unobserved{}
	}
	return o
}

type unobserved struct{}

func (unobserved) Answered(geo.Service, int, time.Duration, int64, int64) {}
func (unobserved) Failed(geo.Service, string)                             {}
func (unobserved) Forwarded(geo.Location, string)                         {}
