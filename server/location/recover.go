package location

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/stamp/membership"
)

var (
	errPairSilent  = errors.New("the other location does not say up to which time it has received the range")
	errClockBehind = errors.New("the other location has received times that are ahead of the clock here")
)

// RecoverRange re-forms a range that has no quorum of trusted replicas:
// see stamp.Stamp.Recover. The operator has accepted the loss, or asks with DryRun what it would be.
func (l *Location) RecoverRange(ctx context.Context, id geo.RangeID, in wire.RecoverRange) (wire.RangeRecovered, error) {
	refused := func(status int, code string, err error) error {
		return &wire.Error{Status: status, Code: code, Message: fmt.Sprintf("could not recover range %d of %s: %v", id, l.o.Name, err)}
	}
	if _, ok := l.o.Route.Range(id); !ok {
		return wire.RangeRecovered{}, refused(http.StatusNotFound, "RangeNotFound", errors.New("there is no such range: antipodectl status shows them"))
	}
	s, err := l.Stamp()
	if err != nil {
		return wire.RangeRecovered{}, err
	}
	floor := func(ctx context.Context) (geo.Timestamp, error) { return l.receivedAtPair(ctx, id) }
	if in.WithoutPair {
		floor = nil
	}
	act := s.Recover
	if in.DryRun {
		act = s.PlanRecovery
	}
	r, err := act(ctx, id, in.Untrusted, floor)
	switch {
	case errors.Is(err, errPairSilent):
		err = refused(http.StatusConflict, "PairSilent", err)
	case errors.Is(err, errClockBehind):
		err = refused(http.StatusConflict, "ClockBehind", err)
	case errors.Is(err, membership.ErrQuorum), errors.Is(err, membership.ErrChanged):
		err = refused(http.StatusConflict, "QuorumPresent", err)
	case errors.Is(err, membership.ErrNoSurvivor):
		err = refused(http.StatusConflict, "NoSurvivor", err)
	}
	if err != nil {
		return wire.RangeRecovered{}, err
	}
	out := wire.RangeRecovered{
		Location: l.o.Name, Range: id, Recovery: r.Recovery.String(), Survivor: wire.NodeName(l.o.Name, r.Survivor.Node),
		Replica: r.Replica, Trusted: r.Survivor.Trusted, KeptIndex: r.Survivor.Index, KeptTerm: r.Survivor.Term,
		KnownCommitted: r.Survivor.Commit, LostIndex: r.Ahead, TimesUnchecked: in.WithoutPair, DryRun: in.DryRun,
	}
	if r.Floor > 0 {
		out.Above = wire.Time{Time: r.Floor.Time()}
	}
	for _, n := range r.Silent {
		out.SilentNodes = append(out.SilentNodes, wire.NodeName(l.o.Name, n))
	}
	for _, v := range r.Others {
		out.GivenUp = append(out.GivenUp, wire.GivenUp{Node: wire.NodeName(l.o.Name, v.Node), Index: v.Index, Term: v.Term, Reason: v.Why})
	}
	return out, nil
}

// receivedAtPair returns the greatest time that the other location has committed of a range. The range
// may have lost commits up to there, so it must give no time at or before it again (R6).
func (l *Location) receivedAtPair(ctx context.Context, id geo.RangeID) (geo.Timestamp, error) {
	const nothing = "nothing was changed"
	t, err := l.far.Received(ctx, geo.SourceRange{Origin: l.o.Name, Range: id})
	if err != nil {
		return 0, fmt.Errorf("%w (%s: %w); %s; --without-pair goes on without: the streams of the range are then forked if what it commits next is not later",
			errPairSilent, l.o.Other, err, nothing)
	}
	if now := l.o.Clock.Now(); t.AheadOf(now) {
		return 0, fmt.Errorf("%w: %s is at %s, %s ahead; %s; set the clocks right and try again, or go on with --without-pair",
			errClockBehind, l.o.Other, t, t.Time().Sub(now).Round(time.Second), nothing)
	}
	return t, nil
}
