package location

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Names returns a page of the accounts whose names changed since a version: see directory.Names. Any process of the
// location answers.
func (l *Location) Names(ctx context.Context, since string, after geo.Account) (wire.Names, error) {
	list, version, next, err := l.names.Since(ctx, since, after)
	if err != nil {
		return wire.Names{}, err
	}
	out := wire.Names{Location: l.o.Name, Version: version, Names: []wire.Name{}, Next: next}
	for _, n := range list {
		out.Names = append(out.Names, wire.Name{
			Account: n.Account, Epoch: wire.EpochOf(n.Epoch), Primary: n.Epoch.Location, Secondary: n.Secondary, Redundancy: string(n.Redundancy),
		})
	}
	return out, nil
}
