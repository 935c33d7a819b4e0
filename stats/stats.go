package stats

import (
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/cursor"
)

// Status is the replication status of an account's service, in the words of the
// public service statistics.
type Status string

// The states. Bootstrap is planned: an account that changes from LRS to GRS has it.
const (
	Live        Status = "live"
	Bootstrap   Status = "bootstrap"
	Unavailable Status = "unavailable"
)

// Replication is what Get Service Stats answers about one service of an account.
type Replication struct {
	Status Status
	// LastSync is the minimum sync time; it has no meaning unless Known.
	LastSync geo.Timestamp
	// Behind is the number of streams that are not at their heads.
	Behind int
}

// Known reports whether LastSync is a value.
func (r Replication) Known() bool { return r.Status == Live }

// Sources are the source ranges that decide about a service of an account whose primary is
// origin: all that overlap the account's span of the service, and the catalog's (R13).
func Sources(origin geo.Location, s geo.Service) []geo.SourceRange {
	return []geo.SourceRange{
		{Origin: origin, Range: geo.FirstRange(s)},
		{Origin: origin, Range: geo.FirstRange(geo.Catalog)},
	}
}

// Input is what the account's secondary knows of one source range.
type Input struct {
	cursor.Progress
	// Forked is true if a stream of the account has forked there, or if this is not known: no
	// time can be promised then (R16).
	Forked bool
}

// Of computes the replication state of a service of an account whose primary is origin: the
// minimum sync time over the account's streams of all Sources. It is absent without a closed time
// from each of them, and after a fork.
func Of(origin geo.Location, a geo.Account, s geo.Service, inputs ...Input) Replication {
	out := Replication{Status: Live, LastSync: ^geo.Timestamp(0)}
	for _, src := range Sources(origin, s) {
		t, ok := inputOf(src, inputs).syncTimes(a)
		if !ok {
			return Replication{Status: Unavailable}
		}
		out.LastSync = min(out.LastSync, t.Least)
		out.Behind += t.Behind
	}
	return out
}

// inputOf returns the input from a source range, the zero value if there is none.
func inputOf(src geo.SourceRange, inputs []Input) Input {
	for _, in := range inputs {
		if in.Source == src {
			return in
		}
	}
	return Input{}
}

func (in Input) syncTimes(a geo.Account) (SyncTimes, bool) {
	if in.Forked {
		return SyncTimes{}, false
	}
	return SyncTimesOf(in.Progress, a)
}

// SyncTimes are the sync times of an account's streams from one source range.
type SyncTimes struct {
	// Least is the least of them: the closed time when all streams are at their heads.
	Least geo.Timestamp
	// Behind counts the streams that are not at their heads.
	Behind int
}

// SyncTimesOf computes the sync times of an account; ok is false while one of its streams has
// none.
func SyncTimesOf(p cursor.Progress, a geo.Account) (out SyncTimes, ok bool) {
	if p.Closed == 0 {
		return SyncTimes{}, false
	}
	out.Least = p.Closed
	for _, s := range p.Streams {
		if s.Stream.Account != a || plantedbugs.Planted(plantedbugs.SkipStream) && s.Stream.Lane%4 == 0 {
			continue
		}
		out.Least = min(out.Least, SyncTime(p.Closed, s))
		if s.Behind > 0 {
			out.Behind++
		}
	}
	return out, out.Least != 0
}

// SyncTime is the sync time of one stream of a source range that is closed up to closed: the
// greatest closed time whose head the stream has applied (R13). It is zero while there is none:
// before the first closed record, and while a stream has not reached the head in it.
func SyncTime(closed geo.Timestamp, s cursor.StreamProgress) geo.Timestamp {
	if s.Behind > 0 {
		return s.Sync
	}
	return closed
}
