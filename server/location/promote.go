package location

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	wire "antipode/client/admin"
	"antipode/failover/confirm"
	"antipode/failover/unplanned"
	"antipode/failover/witness"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stats"
)

// Promote begins the unplanned failover of an account whose secondary is this location, or as a dry run changes nothing. It
// returns the account as it is here, and what the failover loses, or has lost: see directory.Directory.Promote. The
// catalog's leader must be in this process.
func (l *Location) Promote(ctx context.Context, name geo.Account, f wire.Failover) (wire.AccountUpdated, error) {
	if _, err := l.Stamp(); err != nil {
		return wire.AccountUpdated{}, err
	}
	by := insisted(f)
	if !f.DryRun {
		if _, err := l.Directory.Promoter().PromoteAs(ctx, name, by); err != nil {
			return wire.AccountUpdated{}, err
		}
	}
	// Before the account: no promotion then, and this location not the primary later, means that it has ended without effect.
	p, err := l.Directory.Promoter().Promotion(ctx, name)
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	a, err := l.Directory.Account(ctx, name)
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	forks, err := l.Directory.Promoter().Losses(ctx, name)
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	out := wire.AccountUpdated{AccountInfo: wire.AccountInfo{Account: DescribeAccount(a)}, Loss: l.losses(name, forks)}
	if a.Primary == l.o.Name {
		return out, nil
	}
	l.describeFollowed(a, &out.Account)
	l.describePromotion(a, p, &out.Account)
	if f.DryRun && p == nil {
		if err := l.Directory.Promoter().Check(ctx, name, by); err != nil {
			row, ours := storageerr.Of(err)
			if !ours || row.Status >= http.StatusInternalServerError {
				return wire.AccountUpdated{}, err
			}
			out.Refused = row.Message
		}
	}
	return out, nil
}

// insisted is what an operator insists on for an unplanned failover.
func insisted(f wire.Failover) unplanned.Insisted {
	return unplanned.Insisted{WithoutWitness: f.WithoutWitness, AcceptPart: f.AcceptPart}
}

// DescribePromotion adds to the description of an account whose secondary is this location its unplanned failover to here
// that is under way. It adds nothing where the catalog does not answer within ctx.
func (l *Location) DescribePromotion(ctx context.Context, a *catalog.Account, out *wire.Account) {
	if _, err := l.Stamp(); err != nil || a.Secondary != l.o.Name {
		return
	}
	if p, err := l.Directory.Promoter().Promotion(ctx, a.Name); err == nil {
		l.describePromotion(a, p, out)
	}
}

// DescribePromotions is DescribePromotion for many accounts; out returns the description of each.
func (l *Location) DescribePromotions(ctx context.Context, of []*catalog.Account, out func(i int) *wire.Account) {
	if _, err := l.Stamp(); err != nil {
		return
	}
	list, err := l.Directory.Promotions(ctx)
	if err != nil || len(list) == 0 {
		return
	}
	for i, a := range of {
		if a.Secondary == l.o.Name {
			l.describePromotion(a, list[a.Name], out(i))
		}
	}
}

// describePromotion adds a promotion to the description of an account, nil for none.
func (l *Location) describePromotion(a *catalog.Account, p *catalog.Promotion, out *wire.Account) {
	if p == nil {
		return
	}
	out.FailoverPhase, out.Operation, out.OperationWaits = string(p.Phase), p.Describe(), l.Directory.Waits(a)
}

// Witness is the witness as a process of a location calls it: see witness.Client.
type Witness interface {
	Renew(ctx context.Context, after uint64) (witness.Grant, error)
	Claim(ctx context.Context, epochs map[geo.Account]geo.EpochNumber, here geo.Location) (until time.Duration, err error)
	Withdraw(ctx context.Context, a geo.Account, n geo.EpochNumber) error
}

// claims returns those that the witness is known to have.
func (c *confirming) claims() confirm.Epochs {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.machine == nil {
		return nil
	}
	return c.machine.Claims()
}

// claims is the witness as the directory calls it.
type claims struct{ Witness }

// Claim implements directory.Claims.
func (c claims) Claim(ctx context.Context, epochs map[geo.Account]geo.EpochNumber, here geo.Location) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	until, err := c.Witness.Claim(ctx, epochs, here)
	if errors.Is(err, witness.ErrPassed) {
		err = fmt.Errorf("%w: %w", unplanned.ErrClaimed, err)
	}
	return until, err
}

// Withdraw implements directory.Claims.
func (c claims) Withdraw(ctx context.Context, a geo.Account, n geo.EpochNumber) error {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	return c.Witness.Withdraw(ctx, a, n)
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
		in := stats.Inputs{Account: name, Service: s, Primary: origin, From: l.from, Known: known}
		rep := stats.Compute(in)
		if rep.UpTo != 0 { // They are partly by the clock.
			in.Now = l.o.Clock.Now()
			rep = stats.Compute(in)
		}
		switch {
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
				contact = min(contact, p.Shown())
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
		Source: geo.SourceRange{Origin: f.Location, Range: f.Range}, Closed: f.Closed, Wall: f.Wall,
		Span: geo.Span{Start: string(f.Start), End: string(f.End)}, Descriptor: f.Descriptor,
	}
	for _, s := range f.Streams {
		st := geo.Stream{Account: a, Epoch: f.GeoEpoch(), Range: f.Range, Lane: s.Lane}
		p.Streams = append(p.Streams, cursor.StreamProgress{
			Stream: st, Applied: geo.Head{Seq: s.Seq, Hash: s.Hash}, Behind: s.Behind, Sync: s.Sync, SyncWall: s.SyncWall,
		})
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
