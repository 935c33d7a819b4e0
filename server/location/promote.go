package location

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stats"
)

// Promote begins the unplanned failover of an account whose secondary is this location, or with dry changes nothing. It
// returns the account as it is here, and what the failover loses, or has lost: see directory.Directory.Promote. The
// catalog's leader must be in this process.
func (l *Location) Promote(ctx context.Context, name geo.Account, dry bool) (wire.AccountUpdated, error) {
	if _, err := l.Stamp(); err != nil {
		return wire.AccountUpdated{}, err
	}
	if !dry {
		if _, err := l.Directory.Promote(ctx, name); err != nil {
			return wire.AccountUpdated{}, err
		}
	}
	a, err := l.Directory.Account(ctx, name)
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	forks, err := l.Directory.Losses(ctx, name)
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	out := wire.AccountUpdated{AccountInfo: wire.AccountInfo{Account: DescribeAccount(a)}, Loss: l.losses(name, forks)}
	if a.Primary == l.o.Name {
		return out, nil
	}
	p, err := l.Directory.Promotion(ctx, name)
	if err == nil && p != nil {
		out.FailoverPhase, out.Operation = string(p.Phase), p.Describe()
		out.OperationWaits = l.Directory.Waits(a)
	}
	return out, err
}

// losses returns what an account loses where its copy ends as forks say. The times are of the former primary's commits, so
// no clock of this location counts.
func (l *Location) losses(name geo.Account, forks []catalog.Fork) (out []wire.ServiceLoss) {
	var known []cursor.Progress
	for _, f := range forks {
		known = append(known, progressOf(name, f))
	}
	if len(known) == 0 {
		return nil
	}
	origin := known[0].Source.Origin
	for _, s := range append([]geo.Service{geo.Catalog}, geo.Services[:]...) {
		loss := wire.ServiceLoss{Service: s.String()}
		switch rep := stats.Of(l.from, origin, name, s, known...); {
		case rep.Known():
			loss.LastSyncTime = wire.Time{Time: rep.LastSync.Time()}
		case rep.Kept != 0:
			loss.LastSyncTime, loss.Reason = wire.Time{Time: rep.Kept.Time()}, string(rep.Reason)
		default:
			loss.Reason = string(rep.Reason)
		}
		contact := ^geo.Timestamp(0)
		for _, p := range known {
			d, _ := l.from.Range(p.Source.Range)
			if d.Service == s {
				loss.KnownRecords += unapplied(p)
			}
			if d.Service == s || d.Service == geo.Catalog {
				contact = min(contact, p.Closed)
			}
		}
		if contact != 0 {
			loss.UnboundedSince = wire.Time{Time: contact.Time()}
		}
		out = append(out, loss)
	}
	return out
}

// progressOf returns how far the streams of an account were when its copy ended as a fork record says.
func progressOf(a geo.Account, f catalog.Fork) cursor.Progress {
	p := cursor.Progress{
		Source: geo.SourceRange{Origin: f.Location, Range: f.Range}, Closed: f.Closed,
		Span: geo.Span{Start: string(f.Start), End: string(f.End)}, Descriptor: f.Descriptor,
	}
	for _, s := range f.Streams {
		st := geo.Stream{Account: a, Epoch: f.GeoEpoch(), Range: f.Range, Lane: s.Lane}
		p.Streams = append(p.Streams, cursor.StreamProgress{Stream: st, Applied: geo.Head{Seq: s.Seq, Hash: s.Hash}, Behind: s.Behind, Sync: s.Sync})
		if s.Stopped != change.NotStopped {
			p.Stops = append(p.Stops, cursor.StreamStop{Stream: st, Stop: change.Stop{Reason: s.Stopped}})
		}
	}
	return p
}

// unapplied counts the records that closed records have named and that are not applied.
func unapplied(p cursor.Progress) (n uint64) {
	for _, s := range p.Streams {
		if s.Behind > s.Applied.Seq {
			n += uint64(s.Behind - s.Applied.Seq)
		}
	}
	return n
}
