package location

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	wire "antipode/client/admin"
	"antipode/directory"
	"antipode/failover/planned"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/node"
)

// Link describes what operators made of the link, at this end.
func (l *Location) Link() wire.Link {
	switch cut, delay := l.o.Link.State(); {
	case cut:
		return wire.Link{State: wire.LinkCut}
	case delay > 0:
		return wire.Link{State: wire.LinkDelayed, DelaySeconds: delay.Seconds()}
	}
	return wire.Link{State: wire.LinkUp}
}

// The kinds of events about the link: what an operator made of this process's end of it.
const (
	LinkCut     node.EventKind = "link-cut"
	LinkDelayed node.EventKind = "link-delayed"
	LinkHealed  node.EventKind = "link-healed"
)

// SetLink cuts, delays or heals the link at this end. What changes it is an event.
func (l *Location) SetLink(to wire.Link) {
	was, e := l.Link(), wire.Event{}
	switch to.State {
	case wire.LinkCut:
		l.o.Link.Cut()
		e.Kind = string(LinkCut)
	case wire.LinkDelayed:
		l.o.Link.Delay(to.Delay())
		e.Kind, e.Reason = string(LinkDelayed), "by "+to.Delay().String()
	default:
		l.o.Link.Heal()
		e.Kind = string(LinkHealed)
	}
	if l.Link() == was {
		return
	}
	if len(l.o.Local) == 1 { // Else it is that of the whole location.
		e.Node = l.ownName()
	}
	l.report(e)
}

// StartNode starts a node of this process that was stopped or has failed.
func (l *Location) StartNode(id geo.NodeID) error {
	s, err := l.stampOf(id)
	if err != nil {
		return err
	}
	return s.Start(id)
}

// startNode starts a node of a location that starts, unless ctx has ended.
func startNode(ctx context.Context, s *stamp.Stamp, id geo.NodeID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.Start(id); err != nil {
		return unopened{id, err}
	}
	return nil
}

// StopNode stops a node of this process.
func (l *Location) StopNode(id geo.NodeID) error {
	s, err := l.stampOf(id)
	if err != nil {
		return err
	}
	return s.Stop(id, true)
}

// HasNode reports whether a node belongs to this process.
func (l *Location) HasNode(id geo.NodeID) bool { return slices.Contains(l.o.Local, id) }

// stampOf returns the stamp of a node that belongs to this process.
func (l *Location) stampOf(id geo.NodeID) (*stamp.Stamp, error) {
	if !l.HasNode(id) {
		return nil, wire.NoNode(l.o.Name, id)
	}
	s, err := l.Stamp()
	if err != nil {
		return nil, fmt.Errorf("%s is stopped; start it first", l.Subject())
	}
	return s, nil
}

// Keys returns the keys of an account.
func Keys(a *catalog.Account) wire.Keys {
	encode := base64.StdEncoding.EncodeToString
	return wire.Keys{Name: a.Name, Key1: encode(a.Key1), Key2: encode(a.Key2)}
}

// CreateAccount makes an account whose primary is this location: see
// directory.Directory.CreateAs and EnsureAs; InvalidInput for a key below 16 bytes. The catalog's leader must be in this process.
func (l *Location) CreateAccount(ctx context.Context, n wire.NewAccount) (*catalog.Account, error) {
	key1, err := base64.StdEncoding.DecodeString(n.Key1)
	if err != nil {
		return nil, storageerr.InvalidInput.Saying("key1 is not base64")
	}
	key2, err := base64.StdEncoding.DecodeString(n.Key2)
	if err != nil {
		return nil, storageerr.InvalidInput.Saying("key2 is not base64")
	}
	want := directory.Wanted{Name: n.Name, Key1: key1, Key2: key2}
	if n.Redundancy != "" {
		if want.Redundancy, err = catalog.ParseRedundancy(n.Redundancy); err != nil {
			return nil, storageerr.InvalidInput.Saying(err.Error())
		}
	}
	if n.Ensure {
		return l.Directory.EnsureAs(ctx, want, nil)
	}
	if err := want.CheckKeys(); err != nil {
		return nil, err
	}
	return l.Directory.CreateAs(ctx, want)
}

// UpdateAccount changes the redundancy of an account whose primary is this location, has its copy made again (see
// CheckRebuild), changes the rate of that or the policy for late changes, or begins or ends a failover: see directory.Directory.Update, Rebuild,
// SetRate, SetWhenLate, Move and EndMove. The catalog's leader must be in this process.
func (l *Location) UpdateAccount(ctx context.Context, name geo.Account, u wire.UpdateAccount) (a *catalog.Account, behind, err error) {
	if u.Failover == nil {
		if err := checkUpdate(name, u); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case u.Failover != nil:
		a, err = l.failover(ctx, name, u)
		return a, nil, err
	case u.WhenLate != "":
		return l.setWhenLate(ctx, name, u)
	case u.Rebuild && u.Redundancy != "":
		return nil, nil, storageerr.InvalidInput.Saying("a rebuild changes no redundancy: give one of the two")
	case u.Rebuild:
		return l.rebuild(ctx, name, u)
	case u.Redundancy == "" && u.BytesPerSecond != nil:
		a, err = l.Directory.SetRate(ctx, name, *u.BytesPerSecond)
		return a, nil, err
	}
	to, err := catalog.ParseRedundancy(u.Redundancy)
	if err != nil {
		return nil, nil, storageerr.InvalidInput.Saying(err.Error())
	}
	return l.Directory.Update(ctx, name, to, u.BytesPerSecond)
}

// CheckFailover refuses what a failover of its type does not do: a field without an effect may be one that was to keep the
// account where it is.
func CheckFailover(u wire.UpdateAccount) error {
	f := *u.Failover
	unplanned := f.Type == wire.FailoverUnplanned
	switch u.Failover = nil; {
	case u != (wire.UpdateAccount{}):
		return storageerr.InvalidInput.Saying("a failover changes nothing else: ask for it alone")
	case f.DryRun && f.Type == wire.FailoverEnd:
		return storageerr.InvalidInput.Saying("dry_run is of a planned or an unplanned failover")
	case f.To != "" && !unplanned:
		return storageerr.InvalidInput.Saying("to is of an unplanned failover: a planned one goes to the account's secondary")
	case f.NotTaken && f.Type != wire.FailoverEnd:
		return storageerr.InvalidInput.Saying("not_taken is of the end of a failover")
	case f.WithoutWitness && !unplanned:
		return storageerr.InvalidInput.Saying("without_witness is of an unplanned failover: a planned one asks no witness")
	case f.AcceptPart && !unplanned:
		return storageerr.InvalidInput.Saying("accept_part is of an unplanned failover: a planned one waits until the copy is whole")
	case f.WithinSeconds != 0 && f.Type != wire.FailoverPlanned:
		return storageerr.InvalidInput.Saying("within_seconds is of a planned failover")
	case f.WithinSeconds < 0 || f.WithinSeconds > planned.MoveWithinMax.Seconds():
		return storageerr.InvalidInput.Saying(fmt.Sprintf("within_seconds is a time above 0, of %.0f at most", planned.MoveWithinMax.Seconds()))
	}
	return nil
}

func (l *Location) failover(ctx context.Context, name geo.Account, u wire.UpdateAccount) (*catalog.Account, error) {
	if err := CheckFailover(u); err != nil {
		return nil, err
	}
	f := *u.Failover
	switch f.Type {
	case wire.FailoverPlanned:
		if f.DryRun {
			if err := l.Directory.Mover().CheckFlow(ctx, name); err != nil {
				return nil, err
			}
			return l.Directory.Account(ctx, name)
		}
		return l.Directory.Mover().Move(ctx, name, withinOf(f))
	case wire.FailoverEnd:
		if f.NotTaken {
			return l.Directory.Mover().EndMoveAlone(ctx, name)
		}
		return l.endFailover(ctx, name)
	}
	return nil, storageerr.InvalidInput.Saying(fmt.Sprintf(
		"%q is no type of failover: %s, %s or %s", f.Type, wire.FailoverPlanned, wire.FailoverUnplanned, wire.FailoverEnd))
}

// endFailover ends the failover of an account to this location, or from it.
func (l *Location) endFailover(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	ended, err := l.Directory.Promoter().EndPromotion(ctx, name)
	if err != nil {
		return nil, err
	}
	if !ended {
		p, err := l.Directory.Promoter().Promotion(ctx, name)
		if err != nil {
			return nil, err
		}
		ended = p != nil // It ends already.
	}
	if ended {
		return l.Directory.Account(ctx, name)
	}
	return l.Directory.Mover().EndMove(ctx, name)
}

func (l *Location) setWhenLate(ctx context.Context, name geo.Account, u wire.UpdateAccount) (a *catalog.Account, behind, err error) {
	if u.Rebuild || u.Redundancy != "" || u.BytesPerSecond != nil {
		return nil, nil, storageerr.InvalidInput.Saying("when_late is changed alone")
	}
	to, err := catalog.ParseWhenLate(u.WhenLate)
	if err != nil {
		return nil, nil, storageerr.InvalidInput.Saying(err.Error())
	}
	return l.Directory.SetWhenLate(ctx, name, to)
}

// Incomplete lists the accounts of this location whose creation has not ended: see
// directory.Directory.Incomplete.
func (l *Location) Incomplete(ctx context.Context) ([]*catalog.Account, error) {
	if _, err := l.Stamp(); err != nil {
		return nil, err
	}
	return l.Directory.Incomplete(ctx)
}

// Free gives up the creation of an account that has not ended: see directory.Directory.Free.
func (l *Location) Free(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	if _, err := l.Stamp(); err != nil {
		return nil, err
	}
	return l.Directory.Free(ctx, name)
}
