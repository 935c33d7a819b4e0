package witness

import (
	"slices"
	"time"

	"antipode/geo"
)

// Observer counts what a witness does. Its methods may be called concurrently and must not wait.
type Observer interface {
	// Answered counts a call of a location, by its kind and how it ended: see Kinds and Outcomes. The location is "" if it is
	// none of the witness's.
	Answered(l geo.Location, kind, outcome string)
	// Failed counts a failure to write the file of claims.
	Failed()
}

// unobserved counts nothing.
type unobserved struct{}

func (unobserved) Answered(geo.Location, string, string) {}
func (unobserved) Failed()                               {}

// The kinds of calls.
const (
	kindRenew    = "renew"
	kindClaim    = "claim"
	kindWithdraw = "withdraw"
)

// Kinds lists the kinds of calls.
func Kinds() []string { return []string{kindRenew, kindClaim, kindWithdraw} }

// How calls end.
const (
	outcomeDone = "done"
	// outcomePassed is ErrPassed, and outcomeLate ErrLate, after which the location asks once more.
	outcomePassed = "passed"
	outcomeLate   = "late"
	// outcomeRefused: the call cannot be read, or is not the caller's to make.
	outcomeRefused = "refused"
	// outcomeFailed: the disk did not take it, or it is one claim too many.
	outcomeFailed = "failed"
)

// Outcomes lists how calls end.
func Outcomes() []string {
	return []string{outcomeDone, outcomePassed, outcomeLate, outcomeRefused, outcomeFailed}
}

// answered counts a call with the location of the caller's certificate.
func (w *Witness) answered(l geo.Location, kind, outcome string) {
	if !slices.Contains(w.o.Locations, l) {
		l = ""
	}
	w.o.Observer.Answered(l, kind, outcome)
}

// State is what a witness has of each of its locations.
type State struct {
	// Life is how long a lease lives.
	Life time.Duration
	// Claims counts the claims of each location.
	Claims map[geo.Location]int
	// SinceRenewal is how long ago each location renewed its lease; if it has not yet, how long ago this process began.
	SinceRenewal map[geo.Location]time.Duration
}

// State returns what the witness has now.
func (w *Witness) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	out, now := State{w.o.Life, map[geo.Location]int{}, map[geo.Location]time.Duration{}}, w.o.Clock.Mono()
	for _, l := range w.o.Locations {
		last := w.began
		if until, ok := w.leases[l]; ok {
			last = until - w.o.Life
		}
		out.Claims[l], out.SinceRenewal[l] = 0, now-last
	}
	for _, c := range w.kept.Claims {
		out.Claims[c.Location]++
	}
	return out
}
