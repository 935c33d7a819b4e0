package operator

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	wire "antipode/client/admin"
)

var (
	startLocation = operation[wire.None, wire.Changed]{
		Call: wire.CallStartLocation, place: everyProcess, process: startProcess,
		here: func(ctx context.Context, l *Local, at wire.At, _ wire.None) (wire.Changed, error) {
			return wire.Changed{Name: string(at.Location), State: wire.Running}, l.Server.Begin(ctx)
		},
	}
	stopLocation = operation[wire.None, wire.Changed]{
		Call: wire.CallStopLocation, place: everyProcess, process: stopProcess,
		here: func(_ context.Context, l *Local, at wire.At, _ wire.None) (wire.Changed, error) {
			return wire.Changed{Name: string(at.Location), State: wire.Stopped}, l.Server.Stop()
		},
	}
	confirmEpochs = operation[wire.None, wire.Epochs]{
		Call: wire.CallConfirmEpochs, members: confirmEverywhere, process: confirmHere, passesAway: true,
		here: func(ctx context.Context, l *Local, _ wire.At, _ wire.None) (wire.Epochs, error) {
			return l.Location.ConfirmEpochs(ctx)
		},
	}
	showLocationFailover = operation[wire.None, wire.LocationFailover]{
		Call: wire.CallLocationFailover,
		here: func(ctx context.Context, l *Local, _ wire.At, _ wire.None) (wire.LocationFailover, error) {
			return l.Location.LocationFailover(ctx)
		},
	}
	failLocationOver = operation[wire.Failover, wire.LocationFailover]{
		Call: wire.CallFailLocationOver,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.Failover) (wire.LocationFailover, error) {
			return l.Location.FailLocationOver(ctx, in)
		},
	}
	raiseLevels = operation[wire.Levels, wire.Levels]{
		Call: wire.CallRaiseLevels,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.Levels) (wire.Levels, error) {
			return in, l.Location.RaiseLevels(ctx, in)
		},
	}
	// The link has an end in each process. One that cannot be reached comes back with a link that is up.
	cutLink = operation[wire.None, wire.Link]{
		Call: wire.CallCutLink, place: everyProcess, passesAway: true,
		here: func(_ context.Context, l *Local, _ wire.At, _ wire.None) (wire.Link, error) {
			return l.setLink(wire.Link{State: wire.LinkCut})
		},
	}
	healLink = operation[wire.None, wire.Link]{
		Call: wire.CallHealLink, place: everyProcess, passesAway: true,
		here: func(_ context.Context, l *Local, _ wire.At, _ wire.None) (wire.Link, error) {
			return l.setLink(wire.Link{State: wire.LinkUp})
		},
	}
	delayLink = operation[wire.Delay, wire.Link]{
		Call: wire.CallDelayLink, place: everyProcess, passesAway: true,
		here: func(_ context.Context, l *Local, _ wire.At, in wire.Delay) (wire.Link, error) {
			return l.setLink(wire.Link{State: wire.LinkDelayed, DelaySeconds: in.Seconds})
		},
	}
)

func locationCalls() []call {
	return []call{
		answered(&startLocation, port[wire.None, wire.Changed]{
			verb: "start", what: aLocation[wire.None], scope: ofLocation, log: logChange,
			do: func(ctx context.Context, b *Backend, q asked, _ wire.None) (wire.Changed, error) {
				out, err := at(ctx, b, &startLocation, q.At, wire.None{})
				if err != nil {
					return out, err
				}
				if out.Waiting = b.awaitServing(ctx, q); out.Waiting != "" {
					out.State = wire.Starting
				}
				return out, nil
			},
		}),
		answered(&stopLocation, port[wire.None, wire.Changed]{verb: "stop", what: aLocation[wire.None], scope: ofLocation, log: logChange}),
		answered(&confirmEpochs, port[wire.None, wire.Epochs]{
			verb: "confirm", what: func(at wire.At, _ wire.None) string { return "the epochs of " + string(at.Location) }, scope: ofLocation,
			log: func(l *slog.Logger, q asked, _ wire.None, out wire.Epochs) {
				l.Warn("an operator has a location take writes without an answer of the other one", "location", q.At.Location,
					"confirmed_by", out.By, "refused_accounts", len(out.Refused))
			},
		}),
		answered(&showLocationFailover, port[wire.None, wire.LocationFailover]{
			verb: "show", what: func(at wire.At, _ wire.None) string { return "the failover of location " + string(at.Location) }, scope: ofLocation,
		}),
		answered(&failLocationOver, port[wire.Failover, wire.LocationFailover]{
			verb: "change", what: aFailover, scope: ofLocation, wrong: wrongFailover,
			do: func(ctx context.Context, b *Backend, q asked, in wire.Failover) (wire.LocationFailover, error) {
				return b.failLocationOver(ctx, q.At.Location, in)
			},
			log: func(l *slog.Logger, q asked, in wire.Failover, _ wire.LocationFailover) {
				l.Warn("an operator changes the failover of a location", "location", q.At.Location, "type", in.Type)
			},
		}),
		answered(&raiseLevels, port[wire.Levels, wire.Levels]{
			verb: "raise", what: func(at wire.At, _ wire.Levels) string { return "the feature levels of " + string(at.Location) }, scope: ofLocation,
			wrong: func(in *wire.Levels) string {
				if in.Active == 0 || in.Active > in.Floor {
					return "the active level must be at least 1, and at most the floor"
				}
				return ""
			},
			log: func(l *slog.Logger, q asked, in, _ wire.Levels) {
				l.Warn("feature levels raised by an operator", "location", q.At.Location, "floor", in.Floor, "active", in.Active)
			},
		}),
		composed(wire.CallFinalize, port[wire.Finalize, wire.Finalized]{ // A port of one location does not see the other one's nodes.
			verb: "finalize", what: saying[wire.Finalize]("the upgrade of the cluster"), scope: ofProcess,
			do: func(ctx context.Context, b *Backend, _ asked, in wire.Finalize) (wire.Finalized, error) {
				return b.Finalize(ctx, in)
			},
			log: func(l *slog.Logger, _ asked, in wire.Finalize, out wire.Finalized) {
				if out.Raised {
					l.Warn("upgrade finalized by an operator: no node goes back to a version that does not know the level",
						"level", out.Level, "without", in.Without)
				}
			},
		}),
		// A link has two ends.
		answered(&cutLink, linkPort("cut", func(wire.None) wire.Link { return wire.Link{State: wire.LinkCut} }, nil)),
		answered(&healLink, linkPort("heal", func(wire.None) wire.Link { return wire.Link{State: wire.LinkUp} }, nil)),
		answered(&delayLink, linkPort("delay", func(d wire.Delay) wire.Link {
			return wire.Link{State: wire.LinkDelayed, DelaySeconds: d.Seconds}
		}, wrongDelay)),
	}
}

func linkPort[Req any](verb string, to func(Req) wire.Link, wrong func(*Req) string) port[Req, wire.Link] {
	return port[Req, wire.Link]{
		verb: verb, what: saying[Req]("the link between the locations"), scope: ofProcess, wrong: wrong,
		do: func(ctx context.Context, b *Backend, _ asked, in Req) (wire.Link, error) {
			return to(in), b.SetLink(ctx, to(in))
		},
		log: func(l *slog.Logger, _ asked, _ Req, out wire.Link) {
			l.Info("link changed by an operator", "state", string(out.State), "delay_seconds", out.DelaySeconds)
		},
	}
}

// delayMax bounds a delay of the link.
const delayMax = time.Hour

func wrongDelay(d *wire.Delay) string {
	if d.Seconds > 0 && d.Seconds <= delayMax.Seconds() {
		return ""
	}
	return fmt.Sprintf("the delay must be above 0 and at most %s: to end one, heal the link", delayMax)
}

// aFailover is what messages name. What is changed may be of the other location.
func aFailover(at wire.At, in wire.Failover) string {
	switch {
	case !in.Plans():
		return "the failover at location " + string(at.Location)
	case in.Type == wire.FailoverUnplanned:
		return "the accounts with a copy at " + string(at.Location)
	}
	return "location " + string(at.Location)
}

// wrongFailover says what does not belong to the failover of a location.
func wrongFailover(in *wire.Failover) string {
	switch {
	case in.Type != wire.FailoverPlanned && in.Type != wire.FailoverUnplanned && in.Type != wire.FailoverEnd:
		return fmt.Sprintf("type is %s, %s or %s", wire.FailoverPlanned, wire.FailoverUnplanned, wire.FailoverEnd)
	case in.WithoutWitness && in.Type != wire.FailoverUnplanned:
		return "without_witness goes with an unplanned failover"
	case in.AcceptPart && in.Type != wire.FailoverUnplanned:
		return "accept_part goes with an unplanned failover"
	case in.DryRun && in.Type == wire.FailoverEnd:
		return "dry_run goes with a planned or an unplanned failover"
	case in.To != "" || in.NotTaken || in.WithinSeconds < 0 || in.WithinSeconds > 0 && in.Type != wire.FailoverPlanned:
		return "beside type it has within_seconds of a planned failover, without_witness and accept_part of an unplanned one, and dry_run of both"
	}
	return ""
}

// setLink changes this end of the link.
func (l *Local) setLink(to wire.Link) (wire.Link, error) {
	l.Location.SetLink(to)
	return to, nil
}
