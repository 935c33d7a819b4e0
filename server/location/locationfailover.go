package location

import (
	"context"
	"time"

	wire "antipode/client/admin"
	"antipode/directory"
	"antipode/failover/planned"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// LocationFailover describes the failover of all accounts of a location that is under way here, or was last: see
// directory.Directory.LocationProgress.
func (l *Location) LocationFailover(ctx context.Context) (wire.LocationFailover, error) {
	out := wire.LocationFailover{Moving: map[string]int{}}
	if _, err := l.Stamp(); err != nil {
		return out, err
	}
	m, err := l.Directory.LocationMove(ctx)
	if err != nil || m == nil {
		return out, err
	}
	p, err := l.Directory.LocationProgress(ctx, m)
	if err != nil {
		return out, err
	}
	out = describeLocationMove(m)
	out.Waiting, out.Moving, out.Moved, out.Alone = p.Waiting, p.Moving, p.Moved, p.Alone
	return out, nil
}

func describeLocationMove(m *catalog.LocationMove) wire.LocationFailover {
	out := wire.LocationFailover{
		From: m.From, To: m.To, Type: wire.FailoverPlanned, Phase: string(m.Phase), Round: m.Round, Reason: m.Reason,
		Begun: wire.Time{Time: m.Begun.Time()}, Refused: m.RefusedCount,
	}
	if m.Unplanned {
		out.Type = wire.FailoverUnplanned
	}
	if m.Over != 0 {
		out.Over = wire.Time{Time: m.Over.Time()}
	}
	for _, r := range m.Refused {
		out.RefusedAccounts = append(out.RefusedAccounts, wire.RefusedFailover{Account: r.Account, Why: r.Why})
	}
	return out
}

// FailLocationOver begins or ends the failover of all accounts: see directory.Directory.MoveLocation.
func (l *Location) FailLocationOver(ctx context.Context, f wire.Failover) (out wire.LocationFailover, err error) {
	if _, err := l.Stamp(); err != nil {
		return out, err
	}
	if f.DryRun {
		return l.checkLocation(ctx, f)
	}
	switch f.Type {
	case wire.FailoverPlanned:
		_, err = l.Directory.MoveLocation(ctx, withinOf(f))
	case wire.FailoverUnplanned:
		_, err = l.Directory.PromoteLocation(ctx, insisted(f))
	case wire.FailoverEnd:
		_, err = l.Directory.EndLocation(ctx)
	default:
		return out, storageerr.InvalidInput.Saying("not a type of a failover")
	}
	if err != nil {
		return out, err
	}
	return l.LocationFailover(ctx)
}

// checkLocation describes what the failover of a location would meet.
func (l *Location) checkLocation(ctx context.Context, f wire.Failover) (out wire.LocationFailover, err error) {
	var c directory.LocationCheck
	switch f.Type {
	case wire.FailoverPlanned:
		c, err = l.Directory.CheckLocationFlow(ctx)
	case wire.FailoverUnplanned:
		c, err = l.Directory.CheckLocation(ctx, insisted(f))
	default:
		err = storageerr.InvalidInput.Saying("a dry run is of a planned or an unplanned failover")
	}
	if err != nil {
		return out, err
	}
	out = describeLocationMove(&c.Move)
	out.Begun, out.Unchecked = wire.Time{}, c.Unchecked
	out.Waiting, out.Moving, out.Moved, out.Alone = c.Waiting, c.Moving, c.Moved, c.Alone
	return out, nil
}

// withinOf is how long a planned failover may take.
func withinOf(f wire.Failover) time.Duration {
	if f.WithinSeconds == 0 {
		return planned.MoveWithin
	}
	return time.Duration(min(max(f.WithinSeconds, 0), 2*planned.MoveWithinMax.Seconds()) * float64(time.Second))
}
