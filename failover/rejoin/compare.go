package rejoin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// A range that was recovered with loss may be as it was before steps of operations that the catalog holds for done
// (R4). Whatever is under way of them is repeated, and what has ended is done again, by the process that leads the
// range:
//
//	uncompared ──the accounts and gates of the catalog──> for each account:
//	  here is its primary    an operation that is under way begins again in its epoch, at its first step;
//	                         if the gate under which changes have numbers is lost, the copy is made again in its epoch;
//	                         then the gate, and the end of what the outbox has of former epochs
//	  here is its secondary  if the gate is lost, it is set again in the group that wipes what came back
//	──> compared
//
//   - Nothing can come between. An uncompared range takes no change of an account that is primary here and no gate of
//     an operation, see ranges.Machine.Uncompared, and the catalog is read after the recovery. A step that was
//     committed in the range before the recovery belongs to an operation that is seen here, or has ended; one that
//     comes later finds the range compared. A wipe may come before: it is of a later epoch, or the same.
//   - A pass over the steps of an operation may have seen a step done that is lost since. Its end names the operation
//     as it was (finish, startCopy), which Operation.Again makes another one.
//   - A copy that is made again in its epoch begins with what the secondary has of the epoch: nothing, in the lanes of
//     which it has no record. Where it has one, it is ahead of the source, and finds the fork (R16): the operator
//     decides, as ever. So nothing is deleted there that the source has lost. A rebuild, which would, is for an
//     operator to ask for. That he can decide while the operation waits for such streams, it is Operation.Whole.
//   - Its begin is a record of the catalog's stream, and the range commits above it (Operation.After). So no Last Sync
//     Time passes a change that the range makes from then on before the secondary knows that its copy is not whole (R13).
//
// Each step may be repeated, and is, after a crash or by another leader, until the range is compared.

// Compare compares the gates of a range that this process leads with the catalog, if the range was recovered with loss
// and that has not been done since.
func (j *Rejoiner) Compare(ctx context.Context, r *ranges.Range) error {
	if !r.Machine.Uncompared() {
		return nil
	}
	c := comparison{j: j, r: r, as: r.Machine.Incarnation()}
	// While its other replicas are away a range takes nothing (R2). Then the catalog is left as it is: each attempt would
	// begin operations again, and commit that.
	if err := j.stamp.Submit(ctx, r.ID(), takes{}); err != nil {
		return fmt.Errorf("range %d, which was recovered with loss: %w", r.ID(), err)
	}
	// The list first: a gate that is newer than its record is left to the operation that has set it.
	accounts, err := j.accounts.List(ctx, func(*catalog.Account) bool { return true })
	if err != nil {
		return err
	}
	if c.gates, err = j.stamp.Gates(ctx, accounts); err != nil {
		return err
	}
	gates, err := c.begin(ctx, accounts)
	if err != nil {
		return err
	}
	for _, a := range accounts {
		if a.Primary == j.stamp.Location() {
			err = c.primary(ctx, a, gates[a.Name])
		} else {
			err = c.copied(ctx, a)
		}
		if err != nil {
			return c.failed(a, err)
		}
	}
	return j.stamp.Submit(ctx, r.ID(), compared{c.as})
}

// comparison is one Compare.
type comparison struct {
	j *Rejoiner
	r *ranges.Range
	// as is the incarnation of the range, gates are those of the catalog.
	as    geo.Incarnation
	gates map[geo.Account]change.Gate
}

func (c comparison) failed(a *catalog.Account, err error) error {
	return fmt.Errorf("account %s: its gate in range %d, which was recovered with loss: %w", a.Name, c.r.ID(), err)
}

// begin begins what is made again, of all accounts whose primary is here, and returns the gates that the range is to have.
// None is set before: with the first the range promises a time, which counts for the streams of all accounts (R13).
func (c comparison) begin(ctx context.Context, accounts []*catalog.Account) (map[geo.Account]*record.SetGate, error) {
	gates, last := map[geo.Account]*record.SetGate{}, geo.Timestamp(0)
	for _, a := range accounts {
		if a.Primary != c.j.stamp.Location() {
			continue
		}
		gate, err := c.beginOne(ctx, a)
		switch {
		case err != nil:
			return nil, c.failed(a, err)
		case gate != nil:
			gates[a.Name], last = gate, max(last, gate.After)
		}
	}
	for _, gate := range gates {
		if gate.After != 0 {
			gate.After = last
		}
	}
	return gates, nil
}

// beginOne is begin for one account. It returns no gate for one that is being created: its creation begins again in a
// later epoch, and sets its gates once the other location has reserved the name, which the catalog does not say. One that
// is set before may be above the epoch of the account that the other location completes, whose records the range would
// refuse for ever (attempt).
func (c comparison) beginOne(ctx context.Context, a *catalog.Account) (*record.SetGate, error) {
	want, have := record.PrimaryGate(a), c.r.Machine.Gate(a.Name)
	cmp := have.Epoch.Compare(want.Epoch)
	lost := cmp < 0 || cmp == 0 && want.Numbered && !have.Numbered
	if plantedbugs.Planted(plantedbugs.GateStaysLost) && lost && a.Active {
		return nil, nil
	}
	set := &record.SetGate{Account: a.Name, Gate: want}
	cmd := &again{account: a.Name, Epoch: a.GeoEpoch(), Lost: lost && want.Numbered, Rate: c.j.rate}
	if a.Active && a.Operation == nil && !cmd.Lost {
		return set, nil
	}
	if err := c.j.stamp.Commit(ctx, cmd); err != nil {
		return nil, err
	}
	switch set.After = cmd.after; {
	case set.After == 0 && (cmd.Lost || !a.Active):
		return nil, kv.ErrBusy // The account has gone on meanwhile. The next attempt sees how.
	case !a.Active:
		return nil, nil
	case a.Moves():
		// The other location may have taken it before the command, which then has done nothing: the range is one of the
		// secondary, and has lost what no cursor shows.
		if now, err := c.j.accounts.Account(ctx, a.Name); err != nil {
			return nil, err
		} else if now.GeoEpoch() != a.GeoEpoch() {
			return nil, kv.ErrBusy
		}
	}
	return set, nil
}

// primary compares an account whose primary is here, after begin.
func (c comparison) primary(ctx context.Context, a *catalog.Account, gate *record.SetGate) error {
	if gate == nil {
		return nil
	}
	if err := c.j.stamp.Submit(ctx, c.r.ID(), restore{as: c.as, gate: *gate}); err != nil {
		return err
	}
	if a.Operation != nil && a.Operation.Kind != catalog.OperationAnnounce && !a.Copying() {
		return nil // The other location may not know of the epoch. The operation ends the streams.
	}
	if c.r.Machine.Gate(a.Name).Epoch.Compare(gate.Gate.Epoch) > 0 {
		return nil // The catalog was recovered to before that epoch, of which the other location may not know either.
	}
	known := geo.Epoch{} // Of an account that is not complete the other location may have a former epoch.
	if a.Active {
		known = a.GeoEpoch()
	}
	return c.j.stamp.End(ctx, []route.Range{{ID: c.r.ID(), Service: ranges.Service(c.r.ID())}}, a.Name, known)
}

// copied compares an account whose primary is the other location. The gate of a copy that is still to be made is closed
// in the catalog: it is set by the call that has it made.
func (c comparison) copied(ctx context.Context, a *catalog.Account) error {
	want, have := c.gates[a.Name], c.r.Machine.Gate(a.Name)
	open := want.Role == change.RoleSecondary && (want.Open || want.Turn%2 == 1) // Odd: it is frozen, see package unplanned.
	ended := a.Active && !a.Redundancy.Geo() && want.Epoch == a.GeoEpoch()
	cmp := have.Epoch.Compare(want.Epoch)
	if !open && !ended || cmp > 0 || cmp == 0 && (have.Open || !want.Open) || plantedbugs.Planted(plantedbugs.CopyRevived) {
		return nil
	}
	return c.wipe(ctx, a, want)
}

// wipe sets the gate of a copy, in the group that deletes what came back. Where the range has come back with a gate of
// this location as the primary, that is either one of a creation that never completed, since the account is another one's
// (R8): there is nothing to delete. A wipe leaves such a gate alone, so it is replaced as in Reserve. Or the account has
// moved to the other location since (R19), and the range has lost what that one had acknowledged, or has had from here:
// its streams of the epoch are stopped as lost, until the copy is made again. No cursor of them would show it. That is so
// too where the range has come back to an earlier epoch in which it was a copy already.
func (c comparison) wipe(ctx context.Context, a *catalog.Account, want change.Gate) error {
	failedOver := a.LastFailover != 0 && want.Role == change.RoleSecondary && !a.Copying()
	cmd := &wipeRevived{as: c.as, wipe: record.Wipe{Account: a.Name, Gate: want}, lost: failedOver}
	if err := c.j.stamp.Submit(ctx, c.r.ID(), cmd); err != nil || cmd.wipe.Found.Role != change.RolePrimary {
		return err
	}
	return c.j.stamp.Submit(ctx, c.r.ID(), restore{c.as, record.SetGate{Account: a.Name, Gate: want}, a.LastFailover != 0})
}

// wipeRevived is wipe in a range that was recovered with loss.
type wipeRevived struct {
	as   geo.Incarnation
	wipe record.Wipe
	// lost: the epoch began with a failover, so what the copy had before is in no stream of it. An empty copy of which no
	// record follows would look whole.
	lost bool
}

// Evaluate implements ranges.Command.
func (c *wipeRevived) Evaluate(tx *ranges.Tx) error {
	if tx.Incarnation() != c.as {
		return kv.ErrBusy
	}
	had := tx.Gate(c.wipe.Account)
	if err := c.wipe.Evaluate(tx); err != nil {
		return err
	}
	if c.lost && had != c.wipe.Gate && tx.Gate(c.wipe.Account) == c.wipe.Gate {
		stopLost(tx, c.wipe.Account, c.wipe.Gate.Epoch)
	}
	return nil
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (*wipeRevived) Reclaims() {}

// stopLost stops the streams of an account's epoch: the range has lost what it had received of them, or of before.
func stopLost(tx *ranges.Tx, a geo.Account, e geo.Epoch) {
	for lane := range geo.Lane(geo.LaneCount) {
		st := geo.Stream{Account: a, Epoch: e, Range: tx.Range(), Lane: lane}
		tx.Stop(st, change.Stop{Reason: change.StopLost, Here: tx.Cursor(st).Applied})
	}
}

// takes is a command without an effect, which a range takes if it would take a gate.
type takes struct{}

// Evaluate implements ranges.Command.
func (takes) Evaluate(*ranges.Tx) error { return nil }

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (takes) Reclaims() {}

// restore sets a gate again that the recovery of a range has lost.
type restore struct {
	as   geo.Incarnation
	gate record.SetGate
	// lost: what the range had of the account is lost with the gate.
	lost bool
}

// Evaluate implements ranges.Command.
func (c restore) Evaluate(tx *ranges.Tx) error {
	if tx.Incarnation() != c.as {
		return kv.ErrBusy
	}
	c.gate.Set(tx)
	if !c.lost || tx.Gate(c.gate.Account) != c.gate.Gate {
		return nil
	}
	stopLost(tx, c.gate.Account, c.gate.Gate.Epoch)
	return nil
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (restore) Reclaims() {}

// compared commits that the gates of a range are compared, under the incarnation in which that was done.
type compared struct{ as geo.Incarnation }

// Evaluate implements ranges.Command.
func (c compared) Evaluate(tx *ranges.Tx) error {
	if tx.Incarnation() != c.as {
		return kv.ErrBusy
	}
	if tx.Uncompared() {
		tx.Compared(c.as)
	}
	return nil
}

// Reclaims implements ranges.Reclaimer: without it the range takes no change.
func (compared) Reclaims() {}

// again begins the operation of an account again in its epoch, or the copy of one that has none and whose gate is lost. A
// creation that has not completed begins again in a later epoch.
type again struct {
	account geo.Account
	Epoch   geo.Epoch
	// Lost: a range has lost the gate under which the account's changes have numbers.
	Lost bool
	// Rate is that of a bootstrap that begins.
	Rate uint64
	// after is Operation.After then, or when the creation began again; zero if the account has gone on or has no operation.
	after geo.Timestamp
}

// Evaluate implements ranges.Command.
func (c *again) Evaluate(tx *ranges.Tx) error {
	c.after = 0
	have, err := record.Look(tx, c.account)
	if err != nil {
		return err
	}
	a := have.Account
	switch {
	case a == nil || a.GeoEpoch() != c.Epoch || a.Primary != tx.Location():
		return nil
	case !a.Active:
		a.Epoch, c.after = have.Seen.Number+1, tx.Timestamp(0)
		return record.Stage(tx, a, c.after)
	case a.Operation == nil && (!c.Lost || !a.Redundancy.Geo()):
		return nil
	}
	at, op := tx.Timestamp(0), catalog.Operation{Kind: catalog.OperationBootstrap, Copying: true, Rate: c.Rate, Whole: true}
	switch {
	case a.Moves() && c.Lost && !a.Offered(): // The copy is made again, and the account stays.
		if a.Closed() {
			a.Turn++
			tx.SetGate(a.Name, record.PrimaryGate(a))
		}
	case a.Operation != nil: // Of an account that was offered the other location finds what is lost, as a fork.
		op = *a.Operation
	}
	if c.Lost {
		op.After = at
	}
	op.Again++
	op.Imaged = false
	a.Operation, c.after = &op, op.After
	return record.StageMoving(tx, at, a)
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (c *again) Reclaims() {}

// kindAgain is the kind of again. It is on the wire: never rename it.
const kindAgain = "directory.again"

// Kind implements ranges.Portable.
func (c *again) Kind() string { return kindAgain }

// againBody is an encoded again.
type againBody struct {
	Account geo.Account
	again
}

// Encode implements ranges.Portable.
func (c *again) Encode() []byte {
	b, _ := json.Marshal(againBody{c.account, *c}) // It has no value that JSON lacks.
	return b
}

func parseAgain(b []byte) (*again, error) {
	var body againBody
	if err := json.Unmarshal(b, &body); err != nil {
		return nil, errors.Join(record.ErrCommand, err)
	}
	if body.account = body.Account; !body.account.Valid() {
		return nil, fmt.Errorf("%w: account %q", record.ErrCommand, body.account)
	}
	return &body.again, nil
}

// EncodeResult implements ranges.Portable.
func (c *again) EncodeResult() []byte {
	b, _ := json.Marshal(c.after)
	return b
}

// DecodeResult implements ranges.Portable.
func (c *again) DecodeResult(b []byte) error { return json.Unmarshal(b, &c.after) }
