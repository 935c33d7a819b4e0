package stats

import (
	"antipode/geo"
	"antipode/stamp/ranges"
)

// Status is the replication status of an account's service, in the words of the
// public service statistics.
type Status string

// The states. Bootstrap comes with LRS to GRS.
const (
	Live        Status = "live"
	Bootstrap   Status = "bootstrap"
	Unavailable Status = "unavailable"
)

// Replication is what Get Service Stats says about one service of an account.
type Replication struct {
	Status Status
	// LastSync is the minimum sync time; ok is false where it is absent.
	LastSync geo.Timestamp
	// Behind counts streams that are not at their heads.
	Behind int
}

// SyncTimes gives the committed sync times of one source range, as the leader of the
// local range that receives it holds them; ok is false while unknown, and where a
// stream of the account has forked: no time can be promised for it (R16).
type SyncTimes func(src ranges.Source, a geo.Account) (ranges.SyncTimes, bool)

// Of computes the replication state of a service of an account whose primary is
// origin: the minimum over all streams of all source ranges that overlap the
// account's span of the service, and of its catalog streams (R13).
func Of(origin geo.Location, a geo.Account, s geo.Service, sync SyncTimes) Replication {
	out := Replication{Status: Live, LastSync: ^geo.Timestamp(0)}
	for _, r := range []geo.RangeID{geo.FirstRange(s), geo.FirstRange(geo.Catalog)} {
		t, ok := sync(ranges.Source{Origin: origin, Range: r}, a)
		if !ok {
			return Replication{Status: Unavailable}
		}
		out.LastSync = min(out.LastSync, t.Least)
		out.Behind += t.Behind
	}
	return out
}

// Known reports whether LastSync is a value.
func (r Replication) Known() bool { return r.Status == Live }
