package flow

import (
	"slices"

	wire "antipode/client/admin"
	"antipode/services/catalog"
	"antipode/stamp/cursor"
	"antipode/stats"
)

// copyCause is that the copy of the account is not complete.
func (e ends) copyCause(why string) wire.Cause {
	c := wire.Cause{Stage: wire.StageWaiting, For: why, Location: e.account.Primary, Detail: e.account.Operation}
	if e.source != nil && e.source.Account.OperationWaits != "" {
		c.Stage, c.Error = wire.StageFailing, e.source.Account.OperationWaits
	}
	return c
}

// CopyState returns the state of all services of an account whose copy is not complete. One that is being made
// begins with the deletion of what was there (R17); until then that may be read (R18).
func CopyState(a *catalog.Account) (out stats.Replication, incomplete bool) {
	switch {
	case a.Unsure():
		return stats.UnavailableFor(stats.Bootstrapping), true
	case a.Partial():
		return stats.Replication{Status: stats.Bootstrap}, true
	case a.Bootstraps():
		return stats.UnavailableFor(stats.Bootstrapping), true
	}
	return stats.Replication{}, false
}

// Regained returns the state of a service whose copy was whole, by the account's record. What is known of it is of ranges
// here; where one of them was recovered with a loss, it may be as it was while the copy was made (R4). Rows that are
// not yet in it then are below every closed time: no Last Sync Time counts, and nobody reads it, before all is
// here again that the copy was made of.
func Regained(a *catalog.Account, r stats.Replication, known []cursor.Progress) stats.Replication {
	if !r.Known() || r.Committed() >= a.Copied || !slices.ContainsFunc(known, func(p cursor.Progress) bool { return p.Recovered }) {
		return r
	}
	return stats.UnavailableFor(stats.Bootstrapping)
}
