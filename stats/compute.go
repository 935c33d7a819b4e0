package stats

import (
	"slices"
	"time"

	"antipode/geo"
	"antipode/stamp/cursor"
	"antipode/stamp/route"
)

// Copy is how far the copy of an account is, by the account's record.
type Copy int

// The states of a copy. What is read of it counts in a whole one alone.
const (
	CopyWhole Copy = iota
	// CopyPartial: it is being made, and nobody reads it.
	CopyPartial
	// CopyAwaited: it will be made again, or whether it will is not known. What is here is of a former epoch (R18).
	CopyAwaited
)

// Inputs are what decides how far the secondary of an account is, for one service.
type Inputs struct {
	Account geo.Account
	Service geo.Service
	// Primary is the location of the account's primary, and From the table of the ranges there.
	Primary geo.Location
	From    *route.Table
	// Known is what the secondary knows of each of the Sources: one for each range there that takes its records, the zero
	// value with its source where one does not answer.
	Known []cursor.Progress
	Copy  Copy
	// Copied is the commit time up to which the copy was made; zero for one that a failover has made.
	Copied geo.Timestamp
	// LastFailover is the time up to which the secondary was the primary itself, and LastFailoverWall what the clock showed
	// then where that time is ahead of it. Zero for none.
	LastFailover, LastFailoverWall geo.Timestamp
	// Now is what the clock shows of the node that answers. Zero does not compare with it.
	Now time.Time
	// Held: the receiver holds something back because its time is too far ahead of the clock (R6). A process that does not
	// receive does not know.
	Held bool
}

// Compute is the one place that decides what clients, metrics and operators are answered about a service at the secondary. It
// reads nothing but its inputs.
func Compute(in Inputs) Replication {
	switch in.Copy {
	case CopyPartial:
		return Replication{Status: Bootstrap}
	case CopyAwaited:
		return UnavailableFor(Bootstrapping)
	case CopyWhole:
	}
	out := minimum(in).from(in)
	if !in.Now.IsZero() {
		out = out.at(in.Now)
	}
	if out = out.regained(in); in.Held {
		out = UnavailableFor(worse(out.Reason, Clock))
	}
	return out
}

// regained is the state of a service whose copy was whole. Where a range here was recovered with a loss, it may be as it was
// while the copy was made (R4). Rows that are not yet in it then are below every closed time: no Last Sync Time counts, and
// nobody reads it, before all is here again that the copy was made of.
func (r Replication) regained(in Inputs) Replication {
	recovered := func(p cursor.Progress) bool { return p.Recovered }
	if !r.Known() || r.Committed() >= in.Copied || !slices.ContainsFunc(in.Known, recovered) {
		return r
	}
	return UnavailableFor(Bootstrapping)
}
