package api

import (
	"context"
	"errors"
	"time"

	"antipode/geo"
)

// DoorObserver takes what a front door did, for metrics. Its methods may be called
// concurrently.
type DoorObserver interface {
	// Answered takes a request that was answered, one whose answer broke off included, and
	// how many bytes of its body came in and of the answer's went out.
	Answered(s geo.Service, status int, took time.Duration, in, out int64)
	// Failed takes a request that the door answered itself, with an error's code: no
	// location's answer was to be had, or the request was none.
	Failed(s geo.Service, code string)
	// Forwarded takes an attempt to hand a request to a location, and how it ended: one of
	// DoorOutcomes.
	Forwarded(to geo.Location, outcome string)
}

// How an attempt to hand a request to a location ends.
const (
	outcomeAnswered    = "answered"    // its answer is the client's
	outcomeRefused     = "refused"     // it does not have the account, or cannot tell now
	outcomeUnreachable = "unreachable" // none of its front ends was reached; nothing happened
	outcomeUnknown     = "unknown"     // no answer; what was asked may have happened
	outcomeGone        = "client_gone" // the client left before there was an answer
	outcomeBroken      = "broken"      // the answer broke off, at either end
)

// DoorOutcomes are all outcomes that a DoorObserver is told.
func DoorOutcomes() []string {
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

// forward is Forwarder.toLocation, observed.
func (x *exchange) forward(l geo.Location, h hop) error {
	outcome := outcomeBroken // toLocation panics with http.ErrAbortHandler then.
	defer func() { x.o.Door.Forwarded(l, outcome) }()
	err := x.o.Forward.toLocation(x.w, x.r, l, x.service, h)
	outcome = outcomeOf(err)
	return err
}

// unobserved is a DoorObserver that drops everything.
type unobserved struct{}

func (unobserved) Answered(geo.Service, int, time.Duration, int64, int64) {}
func (unobserved) Failed(geo.Service, string)                             {}
func (unobserved) Forwarded(geo.Location, string)                         {}
