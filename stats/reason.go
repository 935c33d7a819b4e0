package stats

import (
	"slices"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
)

// Reason is why the status of a service is Unavailable, as a word for operators. It follows from
// committed state alone, so all nodes, and a node after a restart, name the same one; Clock may not.
type Reason string

// The reasons.
const (
	// Forked: both locations hold another record under a number of a stream, or the receiver is
	// ahead (R16). An operator has to pick a side.
	Forked Reason = "forked"
	// Lost: the receiver lost records that it had acknowledged (R16). It has to be rebuilt.
	Lost Reason = "lost"
	// Poison: the source itself returns a record that cannot be decoded (R11).
	Poison Reason = "poison"
	// Version: the next record of a stream is of a later format version (R11).
	Version Reason = "version"
	// Clock: times of the source are further ahead of the clock here than R6 lets them be, or a receiver
	// holds something back because of that. The second is known to the receiver alone, and is not part
	// of what clients are answered.
	Clock Reason = "clock"
	// BehindOutbox: the source deleted what was not acknowledged, to keep its budget (R18). The copy has to
	// be rebuilt.
	BehindOutbox Reason = "behind-outbox"
	// Bootstrapping: the copy will be made again, and what is here is of a former epoch (R17).
	Bootstrapping Reason = "bootstrap"
	// NotHeard: a source range has sent no closed record yet, none since it was recovered with loss, or
	// none whose heads are all applied; or the known ranges leave out a part of the service (R13).
	NotHeard Reason = "not-heard"
)

// worstFirst is the order in which one of several reasons is named: what an operator has to decide
// comes before what may pass.
func worstFirst() []Reason {
	return []Reason{Forked, Lost, Poison, Version, Clock, BehindOutbox, Bootstrapping, NotHeard}
}

// worse returns the worse of two reasons; no reason is the best.
func worse(a, b Reason) Reason {
	for _, r := range worstFirst() {
		if a == r || b == r {
			return r
		}
	}
	return ""
}

// UnavailableFor is the state of a service that has no Last Sync Time for a reason.
func UnavailableFor(r Reason) Replication { return Replication{Status: Unavailable, Reason: r} }

// stopOf returns the worst reason for which a stream of an account is stopped, "" if none is.
func stopOf(p cursor.Progress, a geo.Account) (out Reason) {
	for _, s := range p.Stops {
		if s.Stream.Account == a {
			out = worse(out, ReasonOf(s.Reason))
		}
	}
	return out
}

// ReasonOf returns the reason that a stopped stream gives its account.
func ReasonOf(r change.StopReason) Reason {
	if r.Settles() {
		return Forked // Until both copies are found equal.
	}
	reason := Reason(r.String())
	if !slices.Contains(worstFirst(), reason) {
		return Forked // Written by a later version: worth an operator's attention at once.
	}
	return reason
}
