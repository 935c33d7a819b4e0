package location

import (
	"context"

	"antipode/geo"
	"antipode/services/catalog"
)

// Records returns the accounts as the catalog of this location has them. Another location may have a later epoch of one: both
// take themselves for the primary while the former one does not know of an unplanned failover (R19).
func (l *Location) Records(ctx context.Context) ([]*catalog.Account, error) {
	if _, err := l.Stamp(); err != nil {
		return nil, err
	}
	return l.Directory.Accounts(ctx)
}

// Record is Records for one account.
func (l *Location) Record(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	if _, err := l.Stamp(); err != nil {
		return nil, err
	}
	return l.Directory.Account(ctx, name)
}
