package location

import (
	"context"
	"errors"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// Replication computes the replication state of a service of an account, as this
// location, the account's secondary, holds it.
func (l *Location) Replication(ctx context.Context, a *catalog.Account, s geo.Service) (stats.Replication, error) {
	stamp, err := l.Stamp()
	if err != nil {
		return stats.Replication{}, err
	}
	// Each range under its lease: an isolated leader of before would show an older time than
	// the one shown last (R13).
	var failed error
	out := l.unforked(a, s, func(src ranges.Source, name geo.Account) (ranges.SyncTimes, bool) {
		t, ok, err := stamp.SyncTimes(ctx, src.Range, src, name)
		failed = errors.Join(failed, err)
		return t, ok
	})
	return out, failed
}

// ReplicationNow is Replication without waiting for a lease, by what this process knows:
// for metrics and status. Where no range leads here, it is a little behind.
func (l *Location) ReplicationNow(a *catalog.Account, s geo.Service) stats.Replication {
	return l.unforked(a, s, func(src ranges.Source, name geo.Account) (ranges.SyncTimes, bool) {
		stamp, err := l.Stamp()
		if err != nil {
			return ranges.SyncTimes{}, false
		}
		r, ok := stamp.Received(src.Range, src)
		if !ok {
			return ranges.SyncTimes{}, false
		}
		return r.SyncTimes(src, name)
	})
}

// unforked is stats.Of where no stream of the account has forked; where one has, or
// nobody receives who could tell, there is no time to promise (R16).
func (l *Location) unforked(a *catalog.Account, s geo.Service, sync stats.SyncTimes) stats.Replication {
	return stats.Of(a.Primary, a.Name, s, func(src ranges.Source, name geo.Account) (ranges.SyncTimes, bool) {
		t, ok := sync(src, name)
		known, forked := l.Forked(src.Range, name) // After the read: of a fork that was found meanwhile too.
		return t, ok && known && !forked
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
