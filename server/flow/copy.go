package flow

import (
	wire "antipode/client/admin"
	"antipode/services/catalog"
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
