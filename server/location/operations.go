package location

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	wire "antipode/client/admin"
	"antipode/directory"
	"antipode/directory/record"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/ranges"
)

// resumeEvery is how often a location goes on with the operations of its accounts, if none asks for more.
const resumeEvery = time.Second

// resumeOperations goes on with the operations of accounts whose primary is this location, until ctx ends: see
// directory.Directory.Resume.
func (l *Location) resumeOperations(ctx context.Context, s *stamp.Stamp) {
	said, pause := "", resumeEvery
	for clock.Wait(ctx, pause) == nil {
		pause = resumeEvery
		if s.Leader(l.o.Route.Catalog()) == nil {
			continue // The process with the catalog's leader does it.
		}
		again, err := l.Directory.Resume(ctx)
		if again > 0 {
			pause = min(pause, again)
		}
		if err == nil || ctx.Err() != nil {
			said = ""
		} else if why := err.Error(); why != said {
			said = why
			l.o.Logger.Info("operations of accounts wait", "location", l.o.Name, "error", err)
		}
	}
}

// releaseEvery is how often a location looks for claims that the witness need not keep.
const releaseEvery = 30 * time.Second

// releaseClaims withdraws claims of this location that are over, until ctx ends: see directory.Directory.ReleaseClaims.
func (l *Location) releaseClaims(ctx context.Context, s *stamp.Stamp) {
	for clock.Wait(ctx, releaseEvery) == nil {
		if s.Leader(l.o.Route.Catalog()) == nil {
			continue // The process with the catalog's leader does it.
		}
		if err := l.Directory.Promoter().ReleaseClaims(ctx, l.confirming.claims()); err != nil && ctx.Err() == nil {
			l.o.Logger.Info("claims that are over stay at the witness", "location", l.o.Name, "error", err)
		}
	}
}

// SubmitAll is Submit for many commands of a range: see stamp.Stamp.SubmitAll.
func (l *Location) SubmitAll(ctx context.Context, r geo.RangeID, cmds []ranges.Command) []error {
	s, err := l.Stamp()
	if err != nil {
		return slices.Repeat([]error{err}, len(cmds))
	}
	return s.SubmitAll(ctx, r, cmds)
}

// reportMove keeps an event of a step of a failover.
func (l *Location) reportMove(m record.Moved) {
	why := fmt.Sprintf("%s to %s, epoch %s", m.Primary, m.Secondary, m.Epoch)
	if m.Step == record.MoveTaken || m.Step == record.MoveFollowed {
		why = fmt.Sprintf("the primary is %s, the secondary %s, epoch %s", m.Primary, m.Secondary, m.Epoch)
	}
	if m.Reason != "" {
		why += ": " + m.Reason
	}
	l.o.Notify(l.report(wire.Event{Kind: string(m.Step), Account: m.Account, Reason: why}))
}

// compareEvery is how often a process looks for ranges that it leads and whose gates are not compared.
const compareEvery = 200 * time.Millisecond

// compareGates compares the gates of ranges that were recovered with loss and that this process leads, until ctx
// ends: see directory.Directory.Compare.
func (l *Location) compareGates(ctx context.Context, s *stamp.Stamp) {
	said := ""
	for clock.Wait(ctx, compareEvery) == nil {
		var err error
		for _, r := range l.o.Route.Ranges() {
			if led := s.Leader(r.ID); led != nil {
				err = errors.Join(err, l.Directory.Rejoiner().Compare(ctx, led))
			}
		}
		if err == nil || ctx.Err() != nil {
			said = ""
		} else if why := err.Error(); why != said {
			said = why
			l.o.Logger.Warn("a range that was recovered takes no writes yet", "location", l.o.Name, "error", err)
		}
	}
}

// committed passes on how long a commit of a range took.
func (l *Location) committed(id geo.RangeID, took time.Duration) {
	if r, ok := l.o.Route.Range(id); ok {
		l.o.OnCommit(r.Service, took)
	}
}

// sweeper returns the sweeper of the ranges that this process leads.
func (l *Location) sweeper(s *stamp.Stamp) *directory.Sweeper {
	o := directory.SweeperOptions{
		Stamp: s, Leader: s.Leader, Catalog: l.o.Route.Catalog(), Every: l.o.SweepEvery, Logger: l.o.Logger.With("location", l.o.Name),
	}
	for _, d := range l.o.Route.Ranges() {
		if d.Service != geo.Catalog {
			o.Ranges = append(o.Ranges, d.ID)
		}
	}
	return directory.NewSweeper(o)
}
