package api

import (
	"context"

	"antipode/geo"
	"antipode/services/catalog"
)

// Authority is what a location knows of whether its answers about an account count. Methods may be called concurrently.
type Authority interface {
	// UpToDate reports whether a read of an account under its primary name shows everything that was acknowledged at
	// either location (R21).
	UpToDate(a *catalog.Account) bool
	// Passed reports whether another location is known to have, or to claim, the account in a higher epoch than the one that
	// it has here as the primary (R21).
	Passed(a *catalog.Account) bool
	// CopyWhole reports whether the copy of an account's service is whole here, where its record says so.
	CopyWhole(ctx context.Context, a *catalog.Account, s geo.Service) (bool, error)
}

// sole is the Authority of a location that no other one can have passed over, and that has lost nothing.
type sole struct{}

func (sole) UpToDate(*catalog.Account) bool { return true }

func (sole) Passed(*catalog.Account) bool { return false }

func (sole) CopyWhole(context.Context, *catalog.Account, geo.Service) (bool, error) { return true, nil }
