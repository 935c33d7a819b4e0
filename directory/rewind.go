package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// A former primary that has diverged is rewound where its lost changes are all known (R22): its rows are those of the fork
// but for the rows that these changed. It gets everything that the present primary has numbered since, and these rows
// once more:
//
//	taken ──Adopt: the lost changes are kept, all of them, and the streams of the former epoch have ended──>
//	rewinding, a row of the present primary that the other location has before it opens a gate: nobody reads the copy there,
//	and it cannot become the primary
//	  ──Rejoin: the gates there open──>
//	joined: the streams of the epoch are sent (Withheld)
//	  ──for each range, in pages: which rows were changed, and changes here that set them to what they are; the position──>
//	  ──the other location has applied these──>
//	no operation
//
// A row is set to what it is here when the command is evaluated, so that what clients change meanwhile is never undone, and
// each step may be repeated.
//
// Where a container was created, changed or deleted by a lost change nothing is rewound: rows of a container that one side
// does not have are no rows of its streams. Nor is it where a range may have lost changes of which it does not know. The
// copy is made again there, by an operator's command.

// errRewinds: the former primary has kept all of its lost changes, and may be rewound.
var errRewinds = errors.New("directory: the former primary has changes of the account that the present one does not have, and has kept them")

// rewind goes on with the rewinding of the former primary of an account.
func (d *Directory) rewind(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	if err := d.peer.Rejoin(ctx, a); err != nil {
		if errors.Is(err, ErrDiverged) {
			err = errors.Join(err, d.submit(ctx, divergedTaken{of: a}))
		}
		return 0, err
	}
	if !a.Operation.Joined {
		return movePause, d.submit(ctx, rewindTaken{of: a, joined: true})
	}
	in := d.stamp.Route().Data(a.Name)
	if n := a.Operation.Rewound; n < len(in) {
		again, err := d.rewindRange(ctx, a, in[n])
		if err != nil {
			return 0, fmt.Errorf("the rows of the %s range that lost changes have changed: %w", in[n].Service, err)
		}
		return again, nil
	}
	for _, r := range in {
		step, err := d.images.StepImage(ctx, r, a.Name, a.GeoEpoch(), 0)
		if err != nil {
			return 0, err
		}
		if !step.Applied {
			return bootstrapWaits, nil
		}
	}
	return 0, d.endTaken(ctx, a)
}

// Bounds of one turn of rewindRange: pages of rows, and bytes with payload, but for the last command.
const (
	rewindPagesMax = 8
	rewindBytesMax = 16 << 20
)

// rewindRange numbers the next rows of a range once more that lost changes have changed, in a turn, and commits how far it
// is. The next turn begins once the other location has applied those of this one: what is numbered is in the outbox, and on
// the link, with its payload. After an error, and in a new process, it goes on where the last turn, or page, has ended.
func (d *Directory) rewindRange(ctx context.Context, a catalog.Account, r route.Range) (again time.Duration, err error) {
	next := &LostRow{Change: []byte(a.Operation.RewoundTo), Row: a.Operation.RewoundRow}
	if len(next.Change) > 0 {
		step, err := d.images.StepImage(ctx, r, a.Name, a.GeoEpoch(), 0)
		if err != nil {
			return 0, err
		}
		if !step.Applied {
			return bootstrapWaits, nil
		}
	}
	if plantedbugs.Planted(plantedbugs.RewoundUnsent) {
		next = nil
	}
	pages, bytes := 0, uint64(0)
	for ; next != nil && pages < rewindPagesMax && bytes < rewindBytesMax; pages++ {
		var page LostRows
		if page, err = d.peer.LostRows(ctx, a, r.ID, *next); err != nil {
			break
		}
		room := uint64(rewindBytesMax - bytes)
		if len(page.Changes) == 0 {
			room = 0 // The other location is of a former version: only the end of the page is a place.
		}
		var done int
		var took uint64
		if done, took, err = d.images.Rewind(ctx, r, a.Name, a.GeoEpoch(), page.Keys, room); err != nil {
			break
		}
		bytes, next = bytes+took, page.place(done)
	}
	if err != nil && pages == 0 {
		return 0, err
	}
	if failed := d.stamp.Submit(ctx, r.ID, &rewound{setGate{account: a.Name, gate: primaryGate(&a)}}); failed != nil {
		return 0, errors.Join(err, failed)
	}
	done := rewindTaken{of: a, joined: true, rewound: a.Operation.Rewound}
	if next == nil {
		done.rewound++
	} else {
		done.to = *next
	}
	return movePause, errors.Join(err, d.submit(ctx, done))
}

// rewound commits that rows of a range were numbered once more: the image of the epoch is complete with them.
type rewound struct{ setGate }

// Evaluate implements ranges.Command.
func (c *rewound) Evaluate(tx *ranges.Tx) error {
	if tx.Gate(c.account) != c.gate {
		return kv.ErrBusy
	}
	m := change.Image{Epoch: c.gate.Epoch, Done: make([]geo.Seq, geo.LaneCount)}
	for lane := range m.Done {
		m.Done[lane] = tx.Head(geo.Stream{Account: c.account, Epoch: c.gate.Epoch, Range: tx.Range(), Lane: geo.Lane(lane)}).Seq
	}
	tx.SetImage(c.account, m)
	return nil
}

// kindRewound is the kind of rewound. It is on the wire: never rename it.
const kindRewound = "directory.rewound"

// Kind implements ranges.Portable.
func (c *rewound) Kind() string { return kindRewound }

func parseRewound(b []byte) (*rewound, error) {
	c, err := parseSetGate(b)
	if err != nil {
		return nil, err
	}
	if c.gate.Role != change.RolePrimary || !c.gate.Numbered || !c.gate.Open {
		return nil, fmt.Errorf("%w: a copy is rewound with gate %+v", errCommand, c.gate)
	}
	return &rewound{*c}, nil
}

// rewindTaken commits how far the former primary of an account is rewound: whether it takes the streams of the epoch, how
// many ranges are rewound, and up to where the next one is.
type rewindTaken struct {
	of      catalog.Account
	joined  bool
	rewound int
	to      LostRow
}

// Evaluate implements ranges.Command.
func (c rewindTaken) Evaluate(tx *ranges.Tx) error {
	a, _, err := ofTaken(tx, c.of)
	if a == nil || err != nil {
		return err
	}
	op := *a.Operation
	op.Rewinding, op.Joined, op.Rewound, a.Operation = true, c.joined, c.rewound, &op
	op.RewoundTo, op.RewoundRow = catalog.Key(c.to.Change), c.to.Row
	return stageAccount(tx, tx.Timestamp(0), a)
}

// Reclaims implements ranges.Reclaimer: see alter.
func (rewindTaken) Reclaims() {}

// Rejoin implements Peer at the former primary: it opens the gates of the ranges that have kept all of their lost changes.
// The record that says so arrives in the catalog's stream before; else ServerBusy. ErrDiverged: a range has lost what it
// had kept.
func (d *Directory) Rejoin(ctx context.Context, a catalog.Account) error {
	have, err := d.Account(ctx, a.Name)
	switch {
	case err != nil:
		return err
	case have.GeoEpoch().Compare(a.GeoEpoch()) > 0:
		return &PassedError{have.GeoEpoch()}
	case have.GeoEpoch() != a.GeoEpoch() || have.Operation == nil || !have.Operation.Rewinding:
		return kv.ErrBusy
	}
	for _, r := range d.stamp.Route().Data(a.Name) {
		cmd := &rejoin{setGate: setGate{account: a.Name, gate: secondaryGate(&a)}}
		if err := d.stamp.Submit(ctx, r.ID, cmd); err != nil {
			return fmt.Errorf("account %s: its gate in the %s range: %w", a.Name, r.Service, err)
		}
		switch {
		case cmd.found.Compare(cmd.gate.Epoch) > 0:
			return &PassedError{cmd.found}
		case cmd.diverged:
			return ErrDiverged
		}
	}
	return nil
}

// rejoin opens the gate of a range that has diverged, once it has kept all of its lost changes.
type rejoin struct {
	setGate
	diverged bool
}

// Evaluate implements ranges.Command.
func (c *rejoin) Evaluate(tx *ranges.Tx) error {
	have := tx.Gate(c.account)
	c.found, c.diverged = have.Epoch, false
	copied := have.Epoch == c.gate.Epoch && have.Role == change.RoleSecondary
	switch {
	case have.Epoch.Compare(c.gate.Epoch) > 0 || copied && have.Open: // It may have been frozen, and thawed, since.
		return nil
	case copied && have.Turn%2 == 1:
		return kv.ErrBusy
	}
	claim, err := claimOf(tx, tx.Range(), c.account, c.gate.Epoch)
	if err != nil {
		return err
	}
	if c.diverged = !copied || claim == nil || claim.Incomplete; !c.diverged {
		tx.SetGate(c.account, c.gate)
	}
	return nil
}

// kindRejoin is the kind of rejoin. It is on the wire: never rename it.
const kindRejoin = "directory.rejoin"

// Kind implements ranges.Portable.
func (c *rejoin) Kind() string { return kindRejoin }

func parseRejoin(b []byte) (*rejoin, error) {
	c, err := parseSetGate(b)
	if err != nil {
		return nil, err
	}
	if c.gate.Role != change.RoleSecondary || !c.gate.Open || c.gate.Numbered {
		return nil, fmt.Errorf("%w: a former primary with gate %+v", errCommand, c.gate)
	}
	return &rejoin{setGate: *c}, nil
}

// EncodeResult implements ranges.Portable: as that of follow.
func (c *rejoin) EncodeResult() []byte {
	return (&follow{setGate: c.setGate, diverged: c.diverged}).EncodeResult()
}

// DecodeResult implements ranges.Portable.
func (c *rejoin) DecodeResult(b []byte) error {
	var f follow
	err := f.DecodeResult(b)
	c.found, c.diverged = f.found, f.diverged
	return err
}

// claimOf reads what a range claims about the lost changes of an account in the epoch that the present primary began, nil
// for nothing.
func claimOf(get kv.Getter, r geo.RangeID, a geo.Account, by geo.Epoch) (*change.LostClaim, error) {
	b, ok, err := get.Get(append(keys.LostClaims(ranges.Service(r), a).Append(nil), keys.ClaimRow(by)...))
	if err != nil || !ok {
		return nil, err
	}
	claim, err := change.ParseLostClaim(b)
	return &claim, err
}

// parseRejoined parses an account of the location other that is rewound here.
func parseRejoined(body []byte, here, other geo.Location) (*catalog.Account, error) {
	return parseOf(body, here, other, func(a *catalog.Account) bool {
		return a.Active && a.Operation != nil && a.Operation.Kind == catalog.OperationTaken && a.Operation.Rewinding
	})
}
