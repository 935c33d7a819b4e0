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
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// Taken is the record of an account at the location that has become its primary.
type Taken struct {
	Account catalog.Account
	// Opened: all ranges there have the gates of the epoch, and nothing any more of former ones.
	Opened bool
	// Forks are the fork records of an unplanned failover (R20), which the location that adopts has not been asked for.
	Forks []catalog.Fork
	// Catalog: the location that adopts may be rewound also where its catalog has diverged, since this one sends what it
	// lacks of that. Former versions do not.
	Catalog bool
}

// fork returns that of a range; nil after a planned move. A range without one had no copy.
func (t Taken) fork(r geo.RangeID) *catalog.Fork {
	if op := t.Account.Operation; op == nil || !op.Unplanned {
		return nil
	}
	for _, f := range t.Forks {
		if f.Range == r {
			return &f
		}
	}
	return &catalog.Fork{Range: r}
}

// ErrDiverged: the former primary of an account has committed what the present one has not. It serves nothing of the
// account until an operator has the copy made again from the present primary (account rebuild), which deletes that.
var ErrDiverged = errors.New("directory: the former primary has changes of the account that the present one does not have")

// Adopt makes this location, the former primary of an account, its secondary: it implements Peer, and is the end of a move
// from here. After nil, the record is committed, and in every range the gate under which changes of the present primary are
// applied; with Opened the former streams have ended, too. It may be repeated at any time. Errors: PassedError, the account
// has gone on in a later epoch; ServerBusy, it was promoted here out of this one; ErrDiverged, the location serves and takes nothing of the account any more, or errRewinds
// where it may be rewound.
func (j *Rejoiner) Adopt(ctx context.Context, t Taken) error {
	a := t.Account
	if a.Primary == j.stamp.Location() || a.Secondary != j.stamp.Location() {
		return fmt.Errorf("directory: account %s of %s is not one that %s adopts", a.Name, a.Primary, j.stamp.Location())
	}
	cmd := &adopt{of: a, fork: t.fork(j.stamp.Route().Catalog())}
	if err := j.stamp.Commit(ctx, cmd); err != nil {
		return err
	}
	if cmd.done {
		j.moved(record.MoveFollowed, &a, "")
	}
	catalogLost, early := cmd.diverged, false // early: a node of a former version has opened a gate before the catalog is rewound.
	var diverged []route.Range
	if r, ok := j.stamp.Route().Range(j.stamp.Route().Catalog()); ok && catalogLost {
		diverged = append(diverged, r)
	}
	for _, r := range j.stamp.Route().Data(a.Name) {
		cmd := &follow{SetGate: record.SetGate{Account: a.Name, Gate: record.SecondaryGate(&a)}, fork: t.fork(r.ID), after: catalogLost}
		if err := j.stamp.Submit(ctx, r.ID, cmd); err != nil {
			return fmt.Errorf("account %s: its gate in the %s range: %w", a.Name, r.Service, err)
		}
		if cmd.Found.Compare(cmd.Gate.Epoch) > 0 {
			return &record.PassedError{Seen: cmd.Found}
		}
		if cmd.diverged {
			diverged = append(diverged, r)
		}
		early = early || !cmd.diverged
	}
	rewinds := !catalogLost || t.Catalog && !early
	for _, r := range diverged {
		f := t.fork(r.ID)
		if f == nil {
			return ErrDiverged // After a planned move: what it has alone stays in its outbox.
		}
		claim, err := j.keepLost(ctx, r, a, *f)
		if err != nil {
			return err
		}
		rewinds = rewinds && !claim.Incomplete
	}
	if t.Opened {
		if err := j.stamp.End(ctx, j.stamp.Route().Everywhere(a.Name), a.Name, a.GeoEpoch()); err != nil {
			return err
		}
	}
	switch {
	case len(diverged) == 0:
		return nil
	case rewinds && t.Opened:
		return ErrRewinds
	}
	return ErrDiverged
}

// adopt replaces the record of an account by that of the location that has become its primary, in the catalog.
type adopt struct {
	of             catalog.Account
	fork           *catalog.Fork
	diverged, done bool
}

// Evaluate implements ranges.Command.
func (c *adopt) Evaluate(tx *ranges.Tx) error {
	c.done = false
	have, err := record.Look(tx, c.of.Name)
	if err != nil {
		return err
	}
	switch cmp := have.Seen.Compare(c.of.GeoEpoch()); {
	case cmp > 0:
		return c.passed(tx, have)
	case have.Account == nil || !have.Account.Active: // The location was made again: it has nothing of the account.
	case have.Account.Created != c.of.Created:
		return fmt.Errorf("directory: account %s is another one here", c.of.Name)
	case have.Account.GeoEpoch() == c.of.GeoEpoch():
		claim, err := claimOf(tx, tx.Range(), c.of.Name, c.of.GeoEpoch())
		c.diverged = closedFor(tx.Gate(c.of.Name)) || claim != nil
		return err // A second call. The record may have gone on in its stream.
	}
	gate := record.SecondaryGate(&c.of)
	if c.diverged, err = diverged(tx, c.of.Name, c.fork); err != nil {
		return err
	}
	lost := lostSince(have.Account, c.fork)
	c.diverged = c.diverged || lost
	gate.Open = !c.diverged
	if err := claimBefore(tx, c.of.Name, gate.Epoch, c.fork, lost); err != nil {
		return err
	}
	tx.SetGate(c.of.Name, gate)
	seen, err := catalog.SeenOp(c.of.GeoEpoch())
	if err != nil {
		return err
	}
	c.done = true
	return record.StageLocal(tx, tx.Timestamp(0), &c.of, seen)
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (*adopt) Reclaims() {}

// errPromotedSince refuses a late call.
var errPromotedSince = storageerr.ServerBusy.Saying("the account has become this location's by an unplanned failover out of that epoch")

// passed is why an epoch is not adopted any more. Where this location was promoted out of it, or a later one, the caller is
// a former primary that does not know so yet: an epoch that it raised above the promotion would take that back.
func (c *adopt) passed(tx *ranges.Tx, have record.Known) error {
	f, err := catalog.GetFork(tx, c.of.Name, tx.Range())
	if err != nil {
		return err
	}
	a := have.Account
	if f != nil && a != nil && a.Active && a.Primary == tx.Location() && f.GeoEpoch().Compare(c.of.GeoEpoch()) >= 0 {
		return errPromotedSince
	}
	return &record.PassedError{Seen: have.Seen}
}

// lostSince reports whether the location may have lost something of an account that is the other one's now, and that no
// head shows: all of it, or what a range had when the account was offered and was recovered without (R4). A fork record
// names the heads.
func lostSince(a *catalog.Account, f *catalog.Fork) bool {
	return a == nil || !a.Active || f == nil && a.Offered() && a.Operation.Again > 0
}

// closedFor reports whether the gate of a copy is closed since the location has diverged, and not frozen (R20).
func closedFor(g change.Gate) bool { return !g.Open && g.Turn%2 == 0 }

// diverged reports whether this location, as the primary of an account, has numbered a change in the range that the other
// location has not acknowledged. After an unplanned failover what counts is where the copy there ended: this location may
// have more than that, whatever it knows to be acknowledged, or less, if it came back with former disks.
func diverged(tx *ranges.Tx, a geo.Account, f *catalog.Fork) (bool, error) {
	gate := tx.Gate(a)
	if f == nil && gate.Epoch.Location != tx.Location() {
		return false, nil
	}
	if tx.Uncompared() {
		return false, kv.ErrBusy // What it had of its last epoch may be lost.
	}
	if f != nil && (gate.Epoch != f.GeoEpoch() || gate.Role == change.RolePrimary && !gate.Numbered) {
		return true, nil
	}
	for lane := range geo.Lane(geo.LaneCount) {
		s := geo.Stream{Account: a, Epoch: gate.Epoch, Range: tx.Range(), Lane: lane}
		head := tx.Head(s)
		same := head.Seq == tx.Acknowledged(s)
		if f != nil {
			at := f.Of(lane)
			same = head == (geo.Head{Seq: at.Seq, Hash: at.Hash}) && at.Behind <= head.Seq && at.Stopped == change.NotStopped
		}
		if !same && !plantedbugs.Planted(plantedbugs.DivergedFollows) {
			return true, nil // A stop here says nothing: the other location has dropped its cursors, so it comes in any case.
		}
	}
	return false, nil
}

// follow is setGate at the former primary of an account. The gate stays closed where the range has what the present
// primary has not, and where the location's catalog has: before that is rewound, what follows may be of a container which
// is deleted there, and would be left out; and a sweep could take it for deleted.
type follow struct {
	record.SetGate
	fork *catalog.Fork
	// after: the catalog has diverged, and is rewound before.
	after    bool
	diverged bool
}

// Evaluate implements ranges.Command.
func (c *follow) Evaluate(tx *ranges.Tx) (err error) {
	have := tx.Gate(c.Account)
	c.Found = have.Epoch
	switch cmp := have.Epoch.Compare(c.Gate.Epoch); {
	case cmp > 0:
		c.diverged = false
		return nil
	case cmp == 0:
		claim, err := claimOf(tx, tx.Range(), c.Account, have.Epoch)
		c.diverged = closedFor(have) || claim != nil // One that was rewound is not known to be, where the operation is lost.
		return err
	}
	if c.diverged, err = diverged(tx, c.Account, c.fork); err != nil {
		return err
	}
	c.diverged = c.diverged || c.after
	gate := c.Gate
	gate.Open = !c.diverged
	if err := claimBefore(tx, c.Account, gate.Epoch, c.fork, false); err != nil {
		return err
	}
	tx.SetGate(c.Account, gate)
	return nil
}

// kindFollow is the kind of follow. It is on the wire: never rename it.
const kindFollow = "directory.follow"

// Kind implements ranges.Portable.
func (c *follow) Kind() string { return kindFollow }

// followBody is an encoded follow.
type followBody struct {
	Set   []byte        `json:"set"`
	Fork  *catalog.Fork `json:"fork,omitempty"`
	After bool          `json:"after,omitempty"`
}

// Encode implements ranges.Portable.
func (c *follow) Encode() []byte {
	b, _ := json.Marshal(followBody{c.SetGate.Encode(), c.fork, c.after}) // It has no value that JSON lacks.
	return b
}

func parseFollow(b []byte) (*follow, error) {
	var body followBody
	if err := json.Unmarshal(b, &body); err != nil {
		return nil, errors.Join(record.ErrCommand, err)
	}
	c, err := record.ParseSetGate(body.Set)
	if err != nil {
		return nil, err
	}
	if c.Gate.Role != change.RoleSecondary || !c.Gate.Open || c.Gate.Numbered {
		return nil, fmt.Errorf("%w: a former primary with gate %+v", record.ErrCommand, c.Gate)
	}
	return &follow{SetGate: *c, fork: body.Fork, after: body.After}, nil
}

// EncodeResult implements ranges.Portable: the epoch that the range had, in the form of a gate, which is open unless the
// range has diverged.
func (c *follow) EncodeResult() []byte {
	return change.AppendGate(nil, change.Gate{Epoch: c.Found, Open: !c.diverged})
}

// DecodeResult implements ranges.Portable.
func (c *follow) DecodeResult(b []byte) error {
	g, err := change.ParseGate(b)
	c.Found, c.diverged = g.Epoch, !g.Open
	return err
}
