package api_test

import (
	"context"

	"antipode/geo"
	"antipode/services/catalog"
)

// authority is an api.Authority of a test. A nil field answers as a location that no other one can have passed over.
type authority struct {
	upToDate, passed func(*catalog.Account) bool
	whole            func(context.Context, *catalog.Account, geo.Service) (bool, error)
}

func (a authority) UpToDate(of *catalog.Account) bool { return a.upToDate == nil || a.upToDate(of) }

func (a authority) Passed(of *catalog.Account) bool { return a.passed != nil && a.passed(of) }

func (a authority) CopyWhole(ctx context.Context, of *catalog.Account, s geo.Service) (bool, error) {
	if a.whole == nil {
		return true, nil
	}
	return a.whole(ctx, of, s)
}
