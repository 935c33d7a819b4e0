package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"antipode/directory/batch"
	"antipode/directory/record"
	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/feature"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// The other location learns of an account with a secondary from its streams. An account without one
// has no streams: its record there is written by Peer.Announce. Until that has succeeded, the record
// at the primary has an operation:
//
//	created as LRS: complete, with an operation ──Announce, then finish──> complete
//	changed to LRS: the row, the epoch and the catalog's gate ──gates of all other ranges, their outboxes
//	dropped, Announce, which deletes the copy, gates that need no word of R21 any more, the former streams ended in all
//	ranges, finish──> complete
//
// Resume goes on with it, whichever leader, process or call began it.

// Resume goes on with the operations of all accounts whose primary is this location, and with the promotions of others to
// it. It returns the
// errors of those that cannot go on now. again is after what time the first of the others may go on, 0 if there is
// none. Only one call at a time is useful.
func (d *Directory) Resume(ctx context.Context) (again time.Duration, err error) {
	version, err := d.stamp.Version(ctx)
	if err != nil {
		return 0, err
	}
	if version != 0 && d.idle.Load() == version {
		return 0, nil // The catalog is as it was without an operation.
	}
	w, err := d.work(ctx)
	if err != nil {
		return 0, err
	}
	list, promotions := w.list, w.promotions
	operations, promoted := namesOf(list), namesOf(accountsOf(promotions))
	d.copier.Keep(operations)
	d.mover.Keep(operations)
	d.promoter.Keep(promoted)
	d.waits.Keep(operations, promoted)
	if w.none() {
		d.idle.Store(version)
	}
	var errs []error
	one := func(a *catalog.Account, does string, f func() (time.Duration, error)) {
		after, err := f()
		if after > 0 && (again == 0 || after < again) {
			again = after
		}
		d.waits.Set(a, err)
		if err != nil {
			errs = append(errs, fmt.Errorf("account %s: %s: %w", a.Name, does, err))
		}
	}
	batch.Run(ctx, len(promotions), func(ctx context.Context, i int) {
		p := promotions[i]
		one(p.Account, p.Promotion.Describe(), func() (time.Duration, error) { return d.promoter.Resume(ctx, p) })
	})
	resume := func(ctx context.Context, a *catalog.Account) {
		one(a, a.Operation.Describe(), func() (time.Duration, error) { return d.resume(ctx, *a) })
	}
	var alone []*catalog.Account // What copies is not one step as that of another account is.
	list = slices.DeleteFunc(list, func(a *catalog.Account) bool {
		if a.Bootstraps() {
			alone = append(alone, a)
		}
		return a.Bootstraps()
	})
	batch.Run(ctx, len(list), func(ctx context.Context, i int) { resume(ctx, list[i]) })
	for _, a := range alone {
		resume(ctx, a)
	}
	if w.location.Active() {
		after, err := d.moveLocation(ctx, w)
		if errs = append(errs, err); after > 0 && (again == 0 || after < again) {
			again = after
		}
	}
	return again, errors.Join(errs...)
}

// work lists the complete accounts, what is under way for those whose primary is this location, and the promotions.
func (d *Directory) work(ctx context.Context) (w *work, err error) {
	w = &work{here: d.stamp.Location()}
	err = d.each(ctx, func(s kv.Snapshot) (err error) {
		w.location, err = catalog.GetLocationMove(s)
		return err
	}, func(i *indexed) {
		a := i.account
		if !a.Active {
			return
		}
		w.all = append(w.all, a)
		switch {
		case a.Primary == w.here && a.Operation != nil:
			w.list = append(w.list, a)
		case a.Primary != w.here && i.promotion != nil:
			w.promotions = append(w.promotions, unplanned.Promoting{Account: a, Promotion: i.promotion})
		}
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// resumeNow goes on with the operation of an account for a short time. It ends without it if that does not
// suffice: Resume follows.
func (d *Directory) resumeNow(ctx context.Context, a *catalog.Account) error {
	if a.Operation == nil {
		return nil
	}
	ctx, cancel := d.within(ctx, record.OperationWait)
	defer cancel()
	for {
		again, err := d.resume(ctx, *a)
		if err != nil {
			return err
		}
		now, err := d.Account(ctx, a.Name)
		if err != nil {
			return err
		}
		if *a = *now; a.Operation == nil || a.Primary != d.stamp.Location() {
			return nil // It has ended, and a failover may have followed.
		}
		if d.wait(ctx, again) != nil {
			return storageerr.ServerBusy.Saying("under way: " + a.Operation.Describe())
		}
	}
}

// resume goes through the steps of the operation of an account. Each may be repeated. again is after what time it
// may go on, 0 if it ended. The operation of an account of the other location is that one's: here it would open the gates of a
// primary.
func (d *Directory) resume(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	if a.Primary != d.stamp.Location() {
		return 0, nil
	}
	switch a.Operation.Kind {
	case catalog.OperationBootstrap:
		return d.copier.Resume(ctx, a)
	case catalog.OperationMove:
		return d.mover.Resume(ctx, a)
	case catalog.OperationTaken:
		return d.rejoin.Resume(ctx, a)
	case catalog.OperationAnnounce, catalog.OperationLeave:
	default: // It must not be ended as one of these.
		return 0, fmt.Errorf("directory: operation %q of account %s: %w", a.Operation.Kind, a.Name, feature.ErrLater)
	}
	leaves := a.Operation.Kind == catalog.OperationLeave
	if leaves {
		if gone, err := d.stamp.CloseStreams(ctx, a); err != nil {
			return 0, err
		} else if gone {
			return record.NextTurn, nil
		}
	}
	if err := d.peer.Announce(ctx, a); err != nil {
		return 0, err
	}
	if leaves { // Not before: the last record of this stream was to say what the call has said now.
		if err := d.agreed(ctx, a); err != nil {
			return 0, err
		}
		if err := d.stamp.End(ctx, d.stamp.Route().Everywhere(a.Name), a.Name, a.GeoEpoch()); err != nil {
			return 0, err
		}
	}
	return 0, d.stamp.Commit(ctx, record.Finish{Of: a})
}

// agreed has the gates of every range but the catalog need nobody's word any more for writes of an account that has become
// LRS: the other location knows, so it cannot become the primary.
func (d *Directory) agreed(ctx context.Context, a catalog.Account) error {
	a.Operation = nil
	err := record.SetGates(ctx, d.stamp, a.Name, record.PrimaryGate(&a), 0, record.Once)
	var passed *record.PassedError
	if errors.As(err, &passed) { // The account has gone on since.
		return nil
	}
	return err
}

// Announce implements Peer at the other location.
func (d *Directory) Announce(ctx context.Context, a catalog.Account) error {
	if a.Redundancy.Geo() {
		return d.agree(ctx, a)
	}
	if a.Operation != nil && a.Operation.Kind == catalog.OperationLeave {
		if err := d.copier.KeepCopy(ctx, a); err != nil {
			return err
		}
	}
	if err := d.stamp.Commit(ctx, announced{a}); err != nil {
		return err
	}
	var err error
	if a.Operation != nil && a.Operation.Kind == catalog.OperationLeave {
		err = d.stamp.WipeCopy(ctx, a.Name, record.SecondaryGate(&a)) // Alone: a range with the gate of the epoch has no row then.
	} else {
		err = record.SetGates(ctx, d.stamp, a.Name, record.SecondaryGate(&a), 0, record.Once)
	}
	var passed *record.PassedError
	if errors.As(err, &passed) {
		return nil // The account has gone on since.
	}
	return err
}

// agree returns nil once the record of an account has arrived from its primary as it is there.
func (d *Directory) agree(ctx context.Context, a catalog.Account) error {
	have, err := d.Account(ctx, a.Name)
	if err != nil {
		return err
	}
	if have.GeoEpoch() != a.GeoEpoch() || have.Redundancy != a.Redundancy || have.WhenLate != a.WhenLate {
		return record.NotArrived(a.Name, d.stamp.Location())
	}
	return nil
}

// announced stores the record of a complete account without a secondary, whose primary is the other
// location, and closes the gate of its epoch in the catalog.
//
// Rules: the record of a later epoch stays. An incomplete record is replaced whatever its epoch: a
// creation of this location cannot complete any more, since the other one has refused it, or will.
type announced struct{ want catalog.Account }

// Evaluate implements ranges.Command.
func (c announced) Evaluate(tx *ranges.Tx) error {
	have, err := record.Look(tx, c.want.Name)
	if err != nil {
		return err
	}
	if err := have.Replaceable(); err != nil {
		return err
	}
	a := c.want
	a.Operation = nil
	switch old := have.Account; {
	case old == nil || !old.Active:
	case old.Primary != a.Primary:
		return storageerr.AccountAlreadyExists
	case old.GeoEpoch().Compare(a.GeoEpoch()) > 0:
		return nil
	case old.GeoEpoch() == a.GeoEpoch() && old.Operation == nil:
		return nil // A second call.
	}
	seen, err := catalog.SeenOp(record.Later(have.Seen, a.GeoEpoch()))
	if err != nil {
		return err
	}
	if err := record.StageAccount(tx, tx.Timestamp(0), &a, seen); err != nil {
		return err
	}
	if gate := record.SecondaryGate(&a); tx.Gate(a.Name).Epoch.Compare(gate.Epoch) <= 0 {
		tx.SetGate(a.Name, gate)
	}
	return nil
}

// Reclaims implements ranges.Reclaimer: the deletion of the copy follows.
func (announced) Reclaims() {}

// Promotions returns the unplanned failovers to this location that are under way.
func (d *Directory) Promotions(ctx context.Context) (map[geo.Account]*catalog.Promotion, error) {
	w, err := d.work(ctx)
	if err != nil {
		return nil, err
	}
	out := map[geo.Account]*catalog.Promotion{}
	for _, p := range w.promotions {
		out[p.Account.Name] = p.Promotion
	}
	return out, nil
}

// accountsOf returns the accounts of promotions.
func accountsOf(list []unplanned.Promoting) (out []*catalog.Account) {
	for _, p := range list {
		out = append(out, p.Account)
	}
	return out
}

// Waits returns why the operation of an account could not go on when Resume tried last; empty if it went on, and where
// Resume has not tried yet.
func (d *Directory) Waits(a *catalog.Account) string { return d.waits.Why(a) }

func namesOf(list []*catalog.Account) map[geo.Account]bool {
	out := make(map[geo.Account]bool, len(list))
	for _, a := range list {
		out[a.Name] = true
	}
	return out
}
