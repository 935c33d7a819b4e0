package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"antipode/directory/batch"
	"antipode/directory/record"
	"antipode/failover/planned"
	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// The failover of all accounts of a location: a row in the catalog of the location that begins the failovers, which is their
// primary for a planned one, and their secondary for an unplanned one.
//
//	moving ──waves of failovers of accounts, by name; those that did not move are tried again in later rounds──> over
//	moving ──an operator ends it──> ending ──no failover is under way──> over
//	moving, unplanned ──an operator has it go on without the witness──> moving, from the first account on
//
// A wave bounds how long the writes of one account stand, however many accounts there are: its gates close and open with
// those of its wave. The steps of a wave share their groups: see together. What happened to an account is in its own record.
// A crash repeats the beginning of a wave at most, which finds failovers that are under way.

const (
	// moveWave is how many accounts have a planned failover at once. The next wave begins once a quarter of it is left.
	moveWave = 250
	// promotionWave is how many accounts have an unplanned one at once: nobody writes them meanwhile.
	promotionWave = 2000
	// locationRounds is how often an account is tried that has not moved.
	locationRounds = 3
)

// MoveLocation begins the planned failover of all accounts that have a copy and whose primary is here. within is how long
// that of an account may take. Resume goes on. OperationInProgress: a failover of a location is under way here. ServerBusy:
// the other location does not answer.
func (d *Directory) MoveLocation(ctx context.Context, within time.Duration) (*catalog.LocationMove, error) {
	if within <= 0 || within > planned.MoveWithinMax {
		return nil, storageerr.InvalidInput.Saying(fmt.Sprintf("a move takes up to %s, not %s", planned.MoveWithinMax, within))
	}
	m := catalog.LocationMove{From: d.stamp.Location(), To: d.other, Within: within}
	w, err := d.work(ctx)
	if err != nil {
		return nil, err
	}
	if left := w.waiting(&m); len(left) > 0 {
		if err := d.mover.CheckMove(ctx, left[0].Name); err != nil {
			return nil, err
		}
	}
	return d.beginLocation(ctx, m)
}

// PromoteLocation begins the unplanned failover of all accounts whose secondary is here (R20), without asking their primary,
// each as an operator insists for all: see PromoteAs. With WithoutWitness one that is under way, and asks the witness, goes on
// without it. Other errors are as of MoveLocation.
func (d *Directory) PromoteLocation(ctx context.Context, by unplanned.Insisted) (*catalog.LocationMove, error) {
	return d.beginLocation(ctx, d.promotesLocation(by))
}

func (d *Directory) promotesLocation(by unplanned.Insisted) catalog.LocationMove {
	return catalog.LocationMove{
		From: d.other, To: d.stamp.Location(), Unplanned: true, WithoutWitness: by.WithoutWitness, AcceptPart: by.AcceptPart,
	}
}

// errLocation refuses to begin the failover of a location beside another one.
func errLocation(m *catalog.LocationMove) error {
	return record.ErrOperation.Saying(fmt.Sprintf("a failover of location %s is under way: antipodectl failover show --location %s", m.From, m.From))
}

func (d *Directory) beginLocation(ctx context.Context, want catalog.LocationMove) (*catalog.LocationMove, error) {
	want.Phase, want.Round = catalog.LocationMoving, 1
	for {
		have, err := d.LocationMove(ctx)
		if err != nil {
			return nil, err
		}
		to := want
		switch {
		case stopsAsking(have, want):
			to = *have
			to.WithoutWitness, to.AcceptPart = true, have.AcceptPart || want.AcceptPart
			to.Round, to.After, to.Refused, to.RefusedCount = 1, "", nil, 0
		case have.Active():
			return nil, errLocation(have)
		}
		if done, err := d.locationTo(ctx, have, to); err != nil || done {
			return &to, err
		}
	}
}

// stopsAsking reports whether what is asked for has the failover that is under way go on without the witness.
func stopsAsking(have *catalog.LocationMove, want catalog.LocationMove) bool {
	return have != nil && have.Phase == catalog.LocationMoving && have.Unplanned && want.Unplanned &&
		want.WithoutWitness && !have.WithoutWitness
}

// LocationMove returns the failover of a location that is under way here, or was last; nil for none.
func (d *Directory) LocationMove(ctx context.Context) (m *catalog.LocationMove, err error) {
	err = d.stamp.Read(ctx, d.stamp.Route().Catalog(), func(s ranges.State) (err error) {
		m, err = catalog.GetLocationMove(s)
		return err
	})
	return m, err
}

// locationTo commits that the failover of a location begins, or has gone on; false: it was not as it is expected to be.
func (d *Directory) locationTo(ctx context.Context, of *catalog.LocationMove, to catalog.LocationMove) (done bool, err error) {
	cmd := &setLocation{Of: of, To: to}
	if err := d.stamp.Commit(ctx, cmd); err != nil {
		return false, err // It may be evaluated yet.
	}
	return cmd.done, nil
}

// setLocation replaces the failover of a location, if it is as expected; nil expects none. Any process of the location
// submits it for an operator.
type setLocation struct {
	Of   *catalog.LocationMove `json:"of"`
	To   catalog.LocationMove  `json:"to"`
	done bool
}

// Evaluate implements ranges.Command. The times are the catalog's.
func (c *setLocation) Evaluate(tx *ranges.Tx) error {
	have, err := catalog.GetLocationMove(tx)
	if c.done = err == nil && reflect.DeepEqual(have, c.Of); !c.done {
		return err
	}
	at, to := tx.Timestamp(0), c.To
	if to.Begun == 0 {
		to.Begun = at
	}
	if to.Phase == catalog.LocationOver {
		to.Over = at
	}
	op, err := catalog.LocationMoveOp(&to)
	if err != nil {
		return err
	}
	p := catalog.LocationPartition()
	return tx.Local(p, change.Record{CommitTime: at, Partition: p.Append(nil), Ops: []change.Op{op}})
}

// Reclaims implements ranges.Reclaimer: see alter.
func (*setLocation) Reclaims() {}

// kindSetLocation is the kind of setLocation. It is on the wire: never rename it.
const kindSetLocation = "directory.setLocation"

// Kind implements ranges.Portable.
func (*setLocation) Kind() string { return kindSetLocation }

// Encode implements ranges.Portable.
func (c *setLocation) Encode() []byte {
	b, _ := json.Marshal(c) // It has no value that JSON lacks.
	return b
}

func parseSetLocation(b []byte) (*setLocation, error) {
	c := &setLocation{}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, errors.Join(record.ErrCommand, err)
	}
	return c, nil
}

// EncodeResult implements ranges.Portable: a byte if it was as expected.
func (c *setLocation) EncodeResult() []byte { return record.EncodeMore(c.done) }

// DecodeResult implements ranges.Portable.
func (c *setLocation) DecodeResult(b []byte) error {
	c.done = len(b) > 0
	return nil
}

// moveLocation goes on with the failover of a location. again is after what time it may go on, 0 if it is over.
func (d *Directory) moveLocation(ctx context.Context, w *work) (again time.Duration, err error) {
	m := w.location
	under := w.moving(m)
	to := *m
	switch {
	case m.Phase != catalog.LocationMoving && m.Phase != catalog.LocationEnding:
		return 0, fmt.Errorf("directory: phase %q of the failover of location %s: %w", m.Phase, m.From, feature.ErrLater)
	case m.Phase == catalog.LocationEnding && len(under) > 0:
		return record.MovePause, d.endAll(ctx, m, w.endable(m))
	case m.Phase == catalog.LocationEnding:
		to.Phase = catalog.LocationOver
	default:
		wave := moveWave
		if m.Unplanned {
			wave = promotionWave
		}
		next := w.waiting(m)
		switch {
		case len(under) > wave/4:
			return record.MovePause, nil
		case len(next) > 0:
			if m.Round == 1 && m.After == "" {
				d.endings.forget()
			}
			to = d.beginWave(ctx, m, next[:min(len(next), wave-len(under))])
		case len(under) > 0:
			return record.MovePause, nil
		case m.Round < locationRounds && len(w.left(m)) > 0:
			to.Round, to.After, to.Refused, to.RefusedCount = m.Round+1, "", nil, 0
		default:
			to.Phase = catalog.LocationOver
		}
	}
	if to.Phase == catalog.LocationOver {
		p := w.progress(m)
		if to.Reason == "" {
			to.Reason = d.remain(w, m)
		}
		to.Ended = &catalog.LocationMoveEnded{Waiting: p.Waiting, Moved: p.Moved, Alone: p.Alone}
	}
	if _, err := d.locationTo(ctx, m, to); err != nil || to.Phase == catalog.LocationOver {
		return 0, err
	}
	return record.MovePause, nil
}

// beginWave begins the failovers of accounts, and returns the location's as it is then.
func (d *Directory) beginWave(ctx context.Context, m *catalog.LocationMove, wave []*catalog.Account) catalog.LocationMove {
	to, errs := *m, make([]error, len(wave))
	batch.Run(ctx, len(wave), func(ctx context.Context, i int) {
		switch {
		case m.Unplanned:
			_, errs[i] = d.promoter.PromoteAs(ctx, wave[i].Name, unplanned.Insisted{WithoutWitness: m.WithoutWitness, AcceptPart: m.AcceptPart})
		default:
			_, errs[i] = d.mover.Begin(ctx, wave[i].Name, m.Within)
		}
	})
	for i, err := range errs {
		if err != nil && !errors.Is(err, kv.ErrUnknown) { // Else it may have begun. The next round finds whether it has.
			to.Refuse(wave[i].Name, err.Error())
			d.endings.set(wave[i].Name, ending{err.Error(), true})
		}
		to.After = wave[i].Name
	}
	return to
}

// work is what a catalog has to go on with.
type work struct {
	// all are the complete accounts, by name.
	all []*catalog.Account
	// list are those whose primary is here and that have an operation.
	list       []*catalog.Account
	promotions []unplanned.Promoting
	// location is the failover of a location, nil for none; here is this location.
	location *catalog.LocationMove
	here     geo.Location
}

// none reports whether there is nothing.
func (w *work) none() bool { return len(w.list)+len(w.promotions) == 0 && !w.location.Active() }

// moving are the accounts whose failover is under way, of those that a location's is of.
func (w *work) moving(m *catalog.LocationMove) (out []*catalog.Account) {
	if m.Unplanned {
		return accountsOf(w.promoting(m))
	}
	for _, a := range w.list {
		if a.Moves() {
			out = append(out, a)
		}
	}
	return out
}

// promoting are the unplanned failovers that are under way, for that of a location. While the witness is away a claim stays,
// so the location's must not wait for it: without the witness it begins those failovers again, and its end is over where
// claims alone are to be withdrawn.
func (w *work) promoting(m *catalog.LocationMove) []unplanned.Promoting {
	return slices.DeleteFunc(slices.Clone(w.promotions), func(p unplanned.Promoting) bool {
		switch p.Promotion.Phase {
		case catalog.PromotionWithdrawing:
			return m.WithoutWitness || m.Phase == catalog.LocationEnding
		case catalog.PromotionClaiming:
			return m.WithoutWitness && m.Phase != catalog.LocationEnding
		}
		return false
	})
}

// left are the accounts that have a copy and have not moved.
func (w *work) left(m *catalog.LocationMove) (out []*catalog.Account) {
	for _, a := range w.all {
		if a.Redundancy.Geo() && a.Primary == m.From {
			out = append(out, a)
		}
	}
	return out
}

// waiting are those whose turn has not come in the round.
func (w *work) waiting(m *catalog.LocationMove) []*catalog.Account {
	under := map[geo.Account]bool{}
	for _, a := range w.moving(m) {
		under[a.Name] = true
	}
	return slices.DeleteFunc(w.left(m), func(a *catalog.Account) bool { return a.Name <= m.After || under[a.Name] })
}

// LocationProgress is how far the failover of a location is: numbers of accounts.
type LocationProgress struct {
	// Waiting have a copy, and their failover has not begun. Moving are those of which one is under way, by phase.
	Waiting int
	Moving  map[string]int
	// Moved have their primary at the other location since the failover began. Alone have no copy, and stay.
	Moved, Alone int
}

// LocationProgress counts the accounts of the failover of a location that is under way here, or was last. Of one that is
// over it returns the numbers at the end: accounts that went back since have moved all the same.
func (d *Directory) LocationProgress(ctx context.Context, m *catalog.LocationMove) (LocationProgress, error) {
	if e := m.Ended; e != nil {
		return LocationProgress{Waiting: e.Waiting, Moved: e.Moved, Alone: e.Alone, Moving: map[string]int{}}, nil
	}
	w, err := d.work(ctx)
	if err != nil {
		return LocationProgress{}, err
	}
	return w.progress(m), nil
}

// progress counts the accounts of the failover of a location, as they are now.
func (w *work) progress(m *catalog.LocationMove) LocationProgress {
	out := LocationProgress{Waiting: len(w.left(m)) - len(w.moving(m)), Moving: map[string]int{}}
	for _, a := range w.list {
		if !m.Unplanned && a.Moves() {
			out.Moving[string(a.Operation.Move.Phase)]++
		}
	}
	if m.Unplanned {
		for _, p := range w.promoting(m) {
			out.Moving[string(p.Promotion.Phase)]++
		}
	}
	for _, a := range w.all {
		switch {
		case a.Primary == m.To && a.Redundancy.Geo() && a.LastFailover > m.Begun:
			out.Moved++
		case a.Primary == m.From && !a.Redundancy.Geo():
			out.Alone++
		}
	}
	return out
}
