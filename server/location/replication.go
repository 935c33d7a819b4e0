package location

import (
	"cmp"
	"context"

	"antipode/geo"
	"antipode/server/flow"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/cursor"
	"antipode/stamp/route"
	"antipode/stats"
)

// Replication computes the replication state of a service of an account whose secondary is
// this location.
func (l *Location) Replication(ctx context.Context, a *catalog.Account, s geo.Service) (stats.Replication, error) {
	stamp, err := l.Stamp()
	if err != nil {
		return stats.Replication{}, err
	}
	l.Look(ctx)
	for {
		// Each range is read under its lease: an isolated former leader would show a time older
		// than the last one shown (R13).
		var known []cursor.Progress
		for _, d := range stats.Sources(l.from, a.Name, s) {
			src := geo.SourceRange{Origin: a.Primary, Range: d.ID}
			for _, own := range l.o.Route.Holding(d.Span) {
				p, err := stamp.Progress(ctx, own.ID, src, a.Name)
				if err != nil {
					return stats.Replication{}, err
				}
				known = append(known, p)
			}
		}
		// The record is read again behind the progress, which may be that of a copy that has begun since.
		now, err := l.Directory.Account(ctx, a.Name)
		if err != nil {
			return stats.Replication{}, err
		}
		if now.GeoEpoch() != a.GeoEpoch() {
			a = now
			continue
		}
		in := flow.Inputs(now, s, l.from, known)
		in.Now = l.o.Clock.Now()
		return stats.Compute(in), nil
	}
}

// CopyWhole reports whether the copy of an account that is made is whole in the ranges here, one of which may have been recovered
// with a loss since, to before it was (R4). Where one was, a copy without a Last Sync Time counts as a part.
func (l *Location) CopyWhole(ctx context.Context, a *catalog.Account, s geo.Service) (bool, error) {
	stamp, err := l.Stamp()
	if err != nil || a.Copied <= a.LastFailover || a.Primary == l.o.Name {
		return err == nil, err
	}
	recovered := false
	for _, d := range stats.Sources(l.from, a.Name, s) {
		for _, own := range l.o.Route.Holding(d.Span) {
			r := stamp.Replica(own.ID)
			recovered = recovered || r != nil && r.Machine.Incarnation() > 0
		}
	}
	if !recovered {
		return true, nil
	}
	out, err := l.Replication(ctx, a, s)
	return out.Known(), err
}

// ReplicationNow is Replication from what this process knows, without waiting for a lease, for
// metrics, status and events. If the ranges are led by other processes it is a little behind.
func (l *Location) ReplicationNow(a *catalog.Account, s geo.Service) stats.Replication {
	stamp, err := l.Stamp()
	if err != nil {
		return stats.UnavailableFor(stats.NotHeard)
	}
	var known []cursor.Progress
	for _, d := range stats.Sources(l.from, a.Name, s) {
		src := geo.SourceRange{Origin: a.Primary, Range: d.ID}
		for _, own := range l.o.Route.Holding(d.Span) {
			p, ok := stamp.ProgressNow(own.ID, src, a.Name)
			if !ok {
				p = cursor.Progress{Source: src}
			}
			known = append(known, p)
		}
	}
	in := flow.Inputs(a, s, l.from, known)
	if applied := l.accountNow(stamp, a.Name); applied != nil {
		in.Copy = cmp.Or(in.Copy, flow.CopyOf(applied))
	}
	in.Now, in.Held = l.o.Clock.Now(), l.waitsForClock(a, s)
	return stats.Compute(in)
}

// accountNow returns the record of an account as a replica of the catalog in this process has applied it, nil if it
// has none.
func (l *Location) accountNow(s *stamp.Stamp, name geo.Account) *catalog.Account {
	r := s.Replica(l.o.Route.Catalog())
	if r == nil {
		return nil
	}
	a, err := l.Directory.AccountIn(r.State(), name)
	if err != nil {
		return nil
	}
	return a
}

// waitsForClock reports whether the receiver in this process holds something back of a source range of
// the service because its time is too far ahead of the clock here (R6). Its Last Sync Time stands
// meanwhile, and would be false if the clock here were the wrong one of the two.
func (l *Location) waitsForClock(a *catalog.Account, s geo.Service) bool {
	r := l.receiving.receiver.Load()
	if r == nil || a.Primary != l.o.Other {
		return false
	}
	for _, d := range stats.Sources(l.from, a.Name, s) {
		if r.Ahead(d.ID) {
			return true
		}
	}
	return false
}

// sourcesOf returns the ranges of a location whose records a range here takes: for this location the range itself.
func (l *Location) sourcesOf(d route.Range, origin geo.Location) (out []geo.SourceRange) {
	if origin == l.o.Name {
		return []geo.SourceRange{{Origin: origin, Range: d.ID}}
	}
	for _, from := range l.from.Holding(d.Span) {
		out = append(out, geo.SourceRange{Origin: origin, Range: from.ID})
	}
	return out
}

// Receives reports whether this process receives the stream of the other location now.
func (l *Location) Receives() bool { return l.receiving.receiver.Load() != nil }
