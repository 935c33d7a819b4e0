package location

import (
	"context"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// Replication computes the replication state of a service of an account, as this
// location, the account's secondary, holds it.
func (l *Location) Replication(ctx context.Context, a *catalog.Account, s geo.Service) (stats.Replication, error) {
	var out stats.Replication
	// Both ranges under their leases: an isolated leader of before would show an older
	// time than the one shown last (R13).
	err := l.Read(ctx, geo.FirstRange(s), func(own ranges.State) error {
		return l.Read(ctx, geo.FirstRange(geo.Catalog), func(cat ranges.State) error {
			out = l.unforked(a, s, func(src ranges.Source, name geo.Account) (ranges.SyncTimes, bool) {
				if src.Range == geo.FirstRange(geo.Catalog) {
					return cat.SyncTimes(src, name)
				}
				return own.SyncTimes(src, name)
			})
			return nil
		})
	})
	return out, err
}

// ReplicationNow is Replication without waiting for a lease, by the replicas of this process:
// for metrics and status. Where they follow, it is a little behind.
func (l *Location) ReplicationNow(a *catalog.Account, s geo.Service) stats.Replication {
	return l.unforked(a, s, func(src ranges.Source, name geo.Account) (ranges.SyncTimes, bool) {
		r := l.Replica(src.Range)
		if r == nil {
			return ranges.SyncTimes{}, false
		}
		return r.Machine.SyncTimes(src, name)
	})
}

// unforked is stats.Of where no stream of the account has forked; where one has, or
// nobody receives who could tell, there is no time to promise (R16).
func (l *Location) unforked(a *catalog.Account, s geo.Service, sync stats.SyncTimes) stats.Replication {
	return stats.Of(a.Primary, a.Name, s, func(src ranges.Source, name geo.Account) (ranges.SyncTimes, bool) {
		if known, forked := l.Forked(src.Range, name); !known || forked {
			return ranges.SyncTimes{}, false
		}
		return sync(src, name)
	})
}

// Forked reports whether a stream of an account in a source range has forked (R16); known
// says whether this process receives, and so can tell.
func (l *Location) Forked(id geo.RangeID, a geo.Account) (known, forked bool) {
	r := l.receiving.receiver.Load()
	return r != nil, r != nil && r.Forked(id, a)
}

// Receives reports whether this process takes the stream of the other location now.
func (l *Location) Receives() bool { return l.receiving.receiver.Load() != nil }
