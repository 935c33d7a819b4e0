package flow

import (
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/cursor"
	"antipode/stamp/route"
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

// Inputs are what a service of an account at its secondary is computed from, as far as the account's record says it. from is the
// table of the ranges at the primary, known what the secondary knows of them.
func Inputs(a *catalog.Account, s geo.Service, from *route.Table, known []cursor.Progress) stats.Inputs {
	return stats.Inputs{
		Account: a.Name, Service: s, Primary: a.Primary, From: from, Known: known, Copy: CopyOf(a), Copied: a.Copied,
		LastFailover: a.LastFailover, LastFailoverWall: a.LastFailoverWall,
	}
}

// CopyOf is how far the copy of an account is, by its record. A new copy begins with the deletion of what was there
// (R17); until then the old content may be read (R18).
func CopyOf(a *catalog.Account) stats.Copy {
	switch {
	case a.Unsure():
		return stats.CopyAwaited
	case a.Partial():
		return stats.CopyPartial
	case a.Bootstraps():
		return stats.CopyAwaited
	}
	return stats.CopyWhole
}
