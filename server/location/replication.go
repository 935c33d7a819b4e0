package location

import (
	"context"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/cursor"
	"antipode/stats"
)

// Replication computes the replication state of a service of an account whose secondary is
// this location.
func (l *Location) Replication(ctx context.Context, a *catalog.Account, s geo.Service) (stats.Replication, error) {
	stamp, err := l.Stamp()
	if err != nil {
		return stats.Replication{}, err
	}
	// Each range is read under its lease: an isolated former leader would show a time older
	// than the last one shown (R13).
	var inputs []stats.Input
	for _, src := range stats.Sources(a.Primary, s) {
		p, err := stamp.Progress(ctx, src.Range, src, a.Name)
		if err != nil {
			return stats.Replication{}, err
		}
		inputs = append(inputs, l.input(p, a.Name))
	}
	return stats.Of(a.Primary, a.Name, s, inputs...), nil
}

// ReplicationNow is Replication from what this process knows, without waiting for a lease, for
// metrics and status. If the ranges are led by other processes it is a little behind.
func (l *Location) ReplicationNow(a *catalog.Account, s geo.Service) stats.Replication {
	stamp, err := l.Stamp()
	if err != nil {
		return stats.Replication{Status: stats.Unavailable}
	}
	var inputs []stats.Input
	for _, src := range stats.Sources(a.Primary, s) {
		if p, ok := stamp.ProgressNow(src.Range, src, a.Name); ok {
			inputs = append(inputs, l.input(p, a.Name))
		}
	}
	return stats.Of(a.Primary, a.Name, s, inputs...)
}

// input adds to a progress whether a stream has forked. It is called after the progress was
// read, so that a fork found meanwhile counts.
func (l *Location) input(p cursor.Progress, a geo.Account) stats.Input {
	known, forked := l.Forked(p.Source.Range, a)
	return stats.Input{Progress: p, Forked: forked || !known}
}

// Forked reports whether a stream of an account in a source range has forked (R16). known is
// false if this process does not receive, and so cannot know.
func (l *Location) Forked(id geo.RangeID, a geo.Account) (known, forked bool) {
	r := l.receiving.receiver.Load()
	return r != nil, r != nil && r.Forked(id, a)
}

// Receives reports whether this process receives the stream of the other location now.
func (l *Location) Receives() bool { return l.receiving.receiver.Load() != nil }
