package stats

import (
	"slices"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/keys"
	"antipode/stamp/route"
)

// Status is the replication status of an account's service, in the words of the
// public service statistics.
type Status string

// The states. Bootstrap is that of an account whose copy is being made: the account's record says so, not the
// progress of its streams.
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
	// UpTo is the commit time up to which all that was committed is here, where that is ahead of LastSync: times were given
	// by a clock that was ahead (R6). Zero where LastSync is that.
	UpTo geo.Timestamp
	// Most is the greatest of the times that LastSync is the least of, where it is ahead of LastSync by more than clocks may
	// differ; else zero. One that is ahead of the clock says nothing of when it was given: see at.
	Most geo.Timestamp
	// Behind is the number of streams that are not at their heads.
	Behind int
	// Reason is why the status is Unavailable, empty for another status.
	Reason Reason
	// Kept is the last value of LastSync where the status is Unavailable because the copy fell out of its
	// source's outbox: all that was committed up to it is here (R18). It is for operators; clients are
	// answered no time. Zero is none.
	Kept geo.Timestamp
}

// Known reports whether LastSync is a value.
func (r Replication) Known() bool { return r.Status == Live }

// NoTime is why there is no LastSync; empty if there is one.
func (r Replication) NoTime() Reason {
	if r.Status == Bootstrap {
		return Bootstrapping
	}
	return r.Reason
}

// at returns what a node whose clock shows now may serve: a time that is ahead of it by more than
// geo.ClockOffMax is not served (R6). The answer is then Unavailable. A smaller time, such as now,
// would be true as well; but clocks of two nodes differ, so it could be below what another node
// served before, and Last Sync Time never goes back (R13).
//
// Nor is the least of several times of which another one is ahead: all that was acknowledged while that was given may have
// later times than it, so what its range has as of LastSync, by the clock, is not known.
func (r Replication) at(now time.Time) Replication {
	if !max(r.LastSync, r.Kept, r.Most).AheadOf(now) {
		return r
	}
	if r.Known() {
		return UnavailableFor(Clock)
	}
	r.Kept, r.Most = 0, 0
	return r
}

// from returns the state of a service whose copy has all that was committed up to the last failover: that of an account whose
// secondary was its primary until then (R19). Without it Last Sync Time could go back by a planned failover, since the closed
// times that the location has received of the new primary may be older than those that were shown before. A wall that is
// ahead of now counts for nothing.
func (r Replication) from(in Inputs) Replication {
	if !r.Known() {
		return r
	}
	upTo := max(r.Committed(), in.LastFailover)
	if shown := change.Shown(in.LastFailover, in.LastFailoverWall); in.Now.IsZero() || !shown.AheadOf(in.Now) {
		r.LastSync = max(r.LastSync, shown)
	}
	return r.committed(upTo)
}

// Committed is the commit time up to which all that was committed is here.
func (r Replication) Committed() geo.Timestamp { return max(r.LastSync, r.UpTo) }

// committed sets what Committed returns.
func (r Replication) committed(t geo.Timestamp) Replication {
	if r.UpTo = 0; t > r.LastSync {
		r.UpTo = t
	}
	return r
}

// Sources are the source ranges that decide about a service of an account: all that overlap the account's span
// of the service, and the catalog's (R13). from is the table of the ranges of the account's primary location.
func Sources(from *route.Table, a geo.Account, s geo.Service) []route.Range {
	return append(slices.Clone(from.Account(s, a)), from.Service(geo.Catalog)...)
}

// minimum is the least sync time over the account's streams of all Sources. It is absent without a closed time from each of
// them, unless they hold all keys of the account, and while a stream of the account is stopped in one of them.
func minimum(in Inputs) Replication {
	a, s := in.Account, in.Service
	out, upTo := Replication{Status: Live, LastSync: ^geo.Timestamp(0)}, ^geo.Timestamp(0)
	var most geo.Timestamp
	var why Reason
	whole := true
	var used []cursor.Progress
	for _, d := range Sources(in.From, a, s) {
		of := progressOf(geo.SourceRange{Origin: in.Primary, Range: d.ID}, in.Known)
		whole = whole && len(of) > 0
		for _, p := range of {
			used = append(used, p)
			t, ok := SyncTimesOf(p, a)
			out.LastSync, upTo = min(out.LastSync, t.Least), min(upTo, t.UpTo)
			most = max(most, t.Most)
			out.Behind += t.Behind
			why = worse(why, stopOf(p, a))
			whole = whole && ok
		}
	}
	if !whole || !tiled(keys.AppendAccount(nil, s, a), used) || !tiled(keys.AppendService(nil, geo.Catalog), used) {
		whole, why = false, worse(why, NotHeard)
	}
	if most.AheadOf(out.LastSync.Time()) {
		out.Most = most
	}
	if why == "" {
		return out.committed(upTo)
	}
	unavailable := UnavailableFor(why)
	if why == BehindOutbox && whole {
		unavailable.Kept, unavailable.Most = out.LastSync, out.Most
	}
	return unavailable
}

// progressOf returns what is known of a source range.
func progressOf(src geo.SourceRange, known []cursor.Progress) (of []cursor.Progress) {
	for _, p := range known {
		if p.Source == src {
			of = append(of, p)
		}
	}
	return of
}

// SyncTimes are the sync times of an account's streams from one source range.
type SyncTimes struct {
	// Least is the least of them: the closed time, as it is shown, when all streams are at their heads.
	Least geo.Timestamp
	// UpTo is the least commit time up to which a stream has all: Least where no closed time has a wall.
	UpTo geo.Timestamp
	// Most is the greatest of them, and of the closed time.
	Most geo.Timestamp
	// Behind counts the streams that are not at their heads.
	Behind int
}

// SyncTimesOf computes the sync times of an account; ok is false while one of its streams has
// none.
func SyncTimesOf(p cursor.Progress, a geo.Account) (out SyncTimes, ok bool) {
	if p.Closed == 0 {
		return SyncTimes{}, false
	}
	out.Least, out.UpTo, out.Most = p.Shown(), p.Closed, p.Shown()
	for _, s := range p.Streams {
		if s.Stream.Account != a || plantedbugs.Planted(plantedbugs.SkipStream) && s.Stream.Lane%4 == 0 {
			continue
		}
		at := p.SyncTime(s)
		out.Least, out.Most = min(out.Least, at), max(out.Most, at)
		if s.Behind > 0 {
			out.UpTo = min(out.UpTo, s.Sync)
			out.Behind++
		}
	}
	return out, out.Least != 0
}
