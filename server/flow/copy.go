package flow

import (
	"antipode/services/catalog"
	"antipode/stats"
)

// CopyState returns the state of all services of an account whose copy is not complete. One that is being made
// begins with the deletion of what was there (R17); until then that may be read (R18).
func CopyState(a *catalog.Account) (out stats.Replication, incomplete bool) {
	switch {
	case a.Partial():
		return stats.Replication{Status: stats.Bootstrap}, true
	case a.Bootstraps():
		return stats.UnavailableFor(stats.Bootstrapping), true
	}
	return stats.Replication{}, false
}
