package linear

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Times are nanoseconds since a history began.
const (
	// ever is the end of a lease without one, and the return of an operation without an answer.
	ever = math.MaxInt64
	// leaseSlack bounds how far the times of servers are from those of clients: a commit time may run ahead.
	leaseSlack = int64(250 * time.Millisecond)
	// leaseSeconds is the shortest lease there is.
	leaseSeconds = 15
)

// LeaseVerb is what a client does with a blob that is leased.
type LeaseVerb int

// The verbs.
const (
	Look LeaseVerb = iota
	Write
	Acquire
	Renew
	Release
	Break
)

func (v LeaseVerb) String() string {
	return [...]string{"look", "write", "acquire", "renew", "release", "break"}[v]
}

// LeaseOp is one operation on a blob that is leased.
type LeaseOp struct {
	Verb LeaseVerb
	Key  string
	// ID is that of the lease: what Acquire proposes, and what Write, Renew and Release present. Write may present none.
	ID string
	// Seconds is how long an acquired lease lasts, -1 for ever, and the period of a break.
	Seconds int
	// Value is written.
	Value string
	// Call is when it began.
	Call int64
}

// LeaseResult is what the client knows of it.
type LeaseResult struct {
	// Unknown is set if no answer came, and Done where the operation took place.
	Unknown, Done bool
	// Value is what Look found, "" for nothing, and Locked whether it found a lease.
	Value  string
	Locked bool
	// Return is when the answer was there; ever if none came.
	Return int64
}

// leased is a blob and its lease as one client after the other would see them (protocol/blob.md 17). When a lease ends is
// known to lie between two times.
type leased struct {
	value string
	// id is that of the lease on record, "" for none.
	id string
	// ending is set by a break.
	ending bool
	// min and max bound the end: before min it is held, after max it is not.
	min, max int64
}

// leaseModel is a model of blobs that are leased. No two ids hold a lease at a time, and nobody else writes meanwhile.
func leaseModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			return apart(history, func(input any) string { return input.(LeaseOp).Key })
		},
		Init: func() any { return leased{} },
		Step: func(state, input, output any) (bool, any) {
			return state.(leased).step(input.(LeaseOp), output.(LeaseResult))
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// step returns whether an operation can have this result, and what it leaves. An operation without an answer is taken as
// done if it can be: one that was not is the same as one that never happened.
func (s leased) step(in LeaseOp, out LeaseResult) (bool, leased) {
	if in.Verb == Look {
		return s.look(in, out)
	}
	matches := func(held bool) bool {
		does := s.does(in, held)
		return out.Done == does && !out.Unknown || out.Unknown && does
	}
	held, ended := s.may(in, out)
	held, ended = held && matches(true), ended && matches(false)
	switch {
	case held && ended: // The answer is the same.
	case held || ended:
		s = s.known(in, out, held)
	default:
		return out.Unknown, s
	}
	if s.does(in, held) {
		s = s.after(in, out)
	}
	return true, s
}

// look is step of a read, which shows the content and whether there is a lease.
func (s leased) look(in LeaseOp, out LeaseResult) (bool, leased) {
	held, ended := s.may(in, out)
	switch {
	case out.Unknown:
		return true, s
	case out.Value != s.value:
		return false, s
	case out.Locked:
		return held, s.known(in, out, true)
	}
	return ended, s.known(in, out, false)
}

// may returns whether the lease may be held while an operation is under way, and whether it may not be.
func (s leased) may(in LeaseOp, out LeaseResult) (held, ended bool) {
	if s.id == "" {
		return false, true
	}
	return later(s.max, leaseSlack) >= in.Call, s.min != ever && s.min <= later(out.Return, leaseSlack)
}

// known returns the state when an operation has shown that the lease was held, or was not, at some time while it was under
// way.
func (s leased) known(in LeaseOp, out LeaseResult, held bool) leased {
	switch {
	case s.id == "" || out.Unknown:
	case held:
		s.min = max(s.min, in.Call-leaseSlack)
	default:
		s.max = min(s.max, later(out.Return, leaseSlack))
	}
	return s
}

// later is a time and so much more.
func later(at, by int64) int64 {
	if at > ever-by {
		return ever
	}
	return at + by
}

// does reports whether an operation takes place, where the lease is held or not.
func (s leased) does(in LeaseOp, held bool) bool {
	if s.value == "" { // There is no blob yet.
		return in.Verb == Write && in.ID == ""
	}
	switch in.Verb {
	case Acquire:
		return !held || s.id == in.ID && !s.ending
	case Renew:
		return s.id == in.ID && !s.ending && s.id != ""
	case Release:
		return s.id == in.ID && s.id != ""
	case Break:
		return s.id != ""
	}
	if in.ID == "" {
		return !held
	}
	return held && s.id == in.ID
}

// after is the state after an operation that took place.
func (s leased) after(in LeaseOp, out LeaseResult) leased {
	switch in.Verb {
	case Acquire:
		s.id, s.ending, s.min, s.max = in.ID, false, ever, ever
		if in.Seconds > 0 {
			s.min, s.max = span(in, out, in.Seconds)
		}
	case Renew:
		if s.min != ever {
			s.min, s.max = span(in, out, leaseSeconds)
		}
	case Release:
		s = leased{value: s.value}
	case Break:
		s.ending = true
		from, to := span(in, out, in.Seconds)
		if in.Seconds == 0 {
			from, to = math.MinInt64, math.MinInt64
		}
		s.min, s.max = min(s.min, from), min(s.max, to)
	case Write:
		s.value = in.Value
		if in.ID == "" {
			s = leased{value: in.Value}
		}
	}
	return s
}

// span is when so many seconds end that began with an operation.
func span(in LeaseOp, out LeaseResult, seconds int) (from, to int64) {
	d := int64(time.Duration(seconds) * time.Second)
	return in.Call - leaseSlack + d, later(out.Return, leaseSlack+d)
}
