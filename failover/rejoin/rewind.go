package rejoin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// A former primary that has diverged is rewound where its lost changes are all known (R22): its rows are those of the fork
// but for the rows that these changed. It gets everything that the present primary has numbered since, and these rows
// once more:
//
//	taken ──Adopt: the lost changes are kept, all of them, and the streams of the former epoch have ended──>
//	rewinding, a row of the present primary that the other location has before it opens a gate of rows: nobody reads the
//	copy there, and it cannot become the primary
//	  ──where lost changes have created, changed or deleted containers: its catalog is rewound first, see rewindcatalog.go──>
//	  ──Rejoin: the gates there open──>
//	joined: the streams of the epoch are sent (Withheld)
//	  ──for each range, in pages: which rows were changed, and changes here that set them to what they are; the position──>
//	  ──the other location has applied these, and what the catalog had committed when the last page was numbered──>
//	no operation
//
// The rows of a container that was deleted meanwhile are not numbered, so that the other location has to know of its deletion
// before its copy is whole.
//
// A row is set to what it is here when the command is evaluated, so that what clients change meanwhile is never undone, and
// each step may be repeated.
//
// Where a range may have lost changes of which it does not know nothing is rewound: the copy is made again, by an operator's
// command.

// errRewinds: the former primary has kept all of its lost changes, and may be rewound.
var ErrRewinds = errors.New("directory: the former primary has changes of the account that the present one does not have, and has kept them")

// rewind goes on with the rewinding of the former primary of an account.
func (j *Rejoiner) rewind(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	op := a.Operation
	if op.RewoundCatalog && !op.Joined {
		if applied, err := j.rewoundIn(ctx, a, j.stamp.CatalogRange()); !applied || err != nil {
			return record.ApplyWait, err
		}
	}
	switch err := j.peer.Rejoin(ctx, a); {
	case errors.Is(err, ErrCatalogLost):
		return j.rewindRange(ctx, a, j.stamp.CatalogRange())
	case errors.Is(err, ErrDiverged):
		return 0, errors.Join(err, j.stamp.Commit(ctx, divergedTaken{of: a}))
	case err != nil:
		return 0, err
	}
	if !op.Joined {
		return record.MovePause, j.stamp.Commit(ctx, rewindTaken{of: a, joined: true, catalog: op.RewoundCatalog})
	}
	in := j.stamp.Route().Data(a.Name)
	if op.Rewound < len(in) {
		return j.rewindRange(ctx, a, in[op.Rewound])
	}
	if applied, err := j.rewoundIn(ctx, a, in...); !applied || err != nil {
		return record.ApplyWait, err
	}
	switch step, err := j.images.StepImage(ctx, j.stamp.CatalogRange(), a.Name, a.GeoEpoch(), 0); {
	case err != nil:
		return 0, err
	case step.Uncounted: // A node of a former version has numbered the last page.
		return record.MovePause, j.endRewound(ctx, a, j.stamp.CatalogRange())
	case !step.Applied:
		return record.ApplyWait, nil
	}
	return 0, j.endTaken(ctx, a)
}

// rewoundIn reports whether the other location has applied all that was numbered of an account for a rewind in some ranges.
func (j *Rejoiner) rewoundIn(ctx context.Context, a catalog.Account, in ...route.Range) (applied bool, err error) {
	for _, r := range in {
		step, err := j.images.StepImage(ctx, r, a.Name, a.GeoEpoch(), 0)
		if err != nil || !step.Applied {
			return false, err
		}
	}
	return true, nil
}

// Bounds of one turn of rewindRange: pages of rows, and bytes with payload, but for the last command.
const (
	rewindPagesMax = 8
	rewindBytesMax = 16 << 20
)

// rewindRange numbers the next rows of a range once more that lost changes have changed, in a turn, and commits how far it
// is. The next turn begins once the other location has applied those of this one: what is numbered is in the outbox, and on
// the link, with its payload. After an error, and in a new process, it goes on where the last turn, or page, has ended.
func (j *Rejoiner) rewindRange(ctx context.Context, a catalog.Account, r route.Range) (again time.Duration, err error) {
	next := &LostRow{Change: []byte(a.Operation.RewoundTo), Row: a.Operation.RewoundRow}
	if len(next.Change) > 0 {
		if applied, err := j.rewoundIn(ctx, a, r); !applied || err != nil {
			return record.ApplyWait, err
		}
	}
	if plantedbugs.Planted(plantedbugs.RewoundUnsent) {
		next = nil
	}
	pages, bytes := 0, uint64(0)
	for ; next != nil && pages < rewindPagesMax && bytes < rewindBytesMax; pages++ {
		var page LostRows
		if page, err = j.lostPage(ctx, a, r, *next); err != nil {
			break
		}
		room := rewindBytesMax - bytes
		if !page.hasPlaces() {
			room = 0 // The other location is of a former version: only the end of the page is a place.
		}
		var done int
		var took uint64
		if done, took, err = j.images.Rewind(ctx, r, a.Name, a.GeoEpoch(), page.Keys, room); err != nil {
			break
		}
		bytes, next = bytes+took, page.place(done)
	}
	if err != nil {
		err = fmt.Errorf("the rows of the %s range that lost changes have changed: %w", r.Service, err)
	}
	if err != nil && pages == 0 {
		return 0, err
	}
	failed := j.endRewound(ctx, a, r)
	if last := a.Operation.Rewound+1 == len(j.stamp.Route().Data(a.Name)); failed == nil && last && next == nil && r.Service != geo.Catalog {
		failed = j.endRewound(ctx, a, j.stamp.CatalogRange())
	}
	if failed != nil {
		return 0, errors.Join(err, failed)
	}
	done := rewindTaken{of: a, joined: a.Operation.Joined, catalog: a.Operation.RewoundCatalog, rewound: a.Operation.Rewound}
	switch {
	case next != nil:
		done.to = *next
	case r.Service == geo.Catalog:
		done.catalog = true
	default:
		done.rewound++
	}
	return record.MovePause, errors.Join(err, j.stamp.Commit(ctx, done))
}

// endRewound commits that what is numbered of an account in a range is what the other location has to apply.
func (j *Rejoiner) endRewound(ctx context.Context, a catalog.Account, r route.Range) error {
	return j.stamp.Submit(ctx, r.ID, &rewound{record.SetGate{Account: a.Name, Gate: record.PrimaryGate(&a)}})
}

// rewound commits that rows of a range were numbered once more: the image of the epoch is complete with them.
type rewound struct{ record.SetGate }

// Evaluate implements ranges.Command.
func (c *rewound) Evaluate(tx *ranges.Tx) error {
	if tx.Gate(c.Account) != c.Gate {
		return kv.ErrBusy
	}
	tx.SetImage(c.Account, change.Image{Epoch: c.Gate.Epoch, Done: record.ImageEnds(tx, c.Account, c.Gate.Epoch)})
	return nil
}

// kindRewound is the kind of rewound. It is on the wire: never rename it.
const kindRewound = "directory.rewound"

// Kind implements ranges.Portable.
func (c *rewound) Kind() string { return kindRewound }

func parseRewound(b []byte) (*rewound, error) {
	c, err := record.ParseSetGate(b)
	if err != nil {
		return nil, err
	}
	if c.Gate.Role != change.RolePrimary || !c.Gate.Numbered || !c.Gate.Open {
		return nil, fmt.Errorf("%w: a copy is rewound with gate %+v", record.ErrCommand, c.Gate)
	}
	return &rewound{*c}, nil
}

// rewindTaken commits how far the former primary of an account is rewound: whether its catalog is, and whether it takes the
// streams of the epoch, how many ranges are rewound, and up to where the next one is.
type rewindTaken struct {
	of      catalog.Account
	catalog bool
	joined  bool
	rewound int
	to      LostRow
}

// Evaluate implements ranges.Command.
func (c rewindTaken) Evaluate(tx *ranges.Tx) error {
	a, _, err := record.OfTaken(tx, c.of)
	if a == nil || err != nil {
		return err
	}
	op := *a.Operation
	op.Rewinding, op.RewoundCatalog, op.Joined, op.Rewound, a.Operation = true, c.catalog, c.joined, c.rewound, &op
	op.RewoundTo, op.RewoundRow = catalog.Key(c.to.Change), c.to.Row
	return record.StageAccount(tx, tx.Timestamp(0), a)
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (rewindTaken) Reclaims() {}

// Rejoin implements Peer at the former primary: it opens the gates of the ranges that have kept all of their lost changes,
// that of the catalog first. The record that says so arrives in the catalog's stream before the others open; else ServerBusy.
// errCatalogLost: the catalog is to be rewound before. ErrDiverged: a range has lost what it had kept.
func (j *Rejoiner) Rejoin(ctx context.Context, a catalog.Account) error {
	have, err := j.accounts.Account(ctx, a.Name)
	switch {
	case err != nil:
		return err
	case have.GeoEpoch().Compare(a.GeoEpoch()) > 0:
		return &record.PassedError{Seen: have.GeoEpoch()}
	case have.GeoEpoch() != a.GeoEpoch():
		return kv.ErrBusy
	}
	if err := j.rejoin(ctx, a, j.stamp.CatalogRange()); err != nil {
		return err
	}
	if have.Operation == nil || !have.Operation.Rewinding {
		return kv.ErrBusy
	}
	lost, err := j.catalogRejoins(ctx, a)
	if err != nil {
		return err
	}
	for _, r := range j.stamp.Route().Data(a.Name) {
		if lost {
			err = j.regain(ctx, a, r)
		} else {
			err = j.rejoin(ctx, a, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rejoin opens the gate of an account in a range that has diverged.
func (j *Rejoiner) rejoin(ctx context.Context, a catalog.Account, r route.Range) error {
	cmd := &rejoin{SetGate: record.SetGate{Account: a.Name, Gate: record.SecondaryGate(&a)}}
	if err := j.stamp.Submit(ctx, r.ID, cmd); err != nil {
		return fmt.Errorf("account %s: its gate in the %s range: %w", a.Name, r.Service, err)
	}
	return cmd.outcome()
}

// outcome is the error that says what a range has found.
func (c *rejoin) outcome() error {
	switch {
	case c.Found.Compare(c.Gate.Epoch) > 0:
		return &record.PassedError{Seen: c.Found}
	case c.diverged:
		return ErrDiverged
	}
	return nil
}

// rejoin opens the gate of a range that has diverged, once it has kept all of its lost changes.
type rejoin struct {
	record.SetGate
	diverged bool
}

// Evaluate implements ranges.Command.
func (c *rejoin) Evaluate(tx *ranges.Tx) error {
	claim, err := c.closed(tx)
	if claim != nil {
		tx.SetGate(c.Account, c.Gate)
	}
	return err
}

// closed returns the claim of a range whose gate may be opened, and is closed; nil for another one.
func (c *rejoin) closed(tx *ranges.Tx) (*change.LostClaim, error) {
	have := tx.Gate(c.Account)
	c.Found, c.diverged = have.Epoch, false
	copied := have.Epoch == c.Gate.Epoch && have.Role == change.RoleSecondary
	switch {
	case have.Epoch.Compare(c.Gate.Epoch) > 0 || copied && have.Open: // It may have been frozen, and thawed, since.
		return nil, nil
	case copied && have.Turn%2 == 1:
		return nil, kv.ErrBusy
	}
	claim, err := claimOf(tx, tx.Range(), c.Account, c.Gate.Epoch)
	if err != nil {
		return nil, err
	}
	if c.diverged = !copied || claim == nil || claim.Incomplete; c.diverged {
		return nil, nil
	}
	return claim, nil
}

// kindRejoin is the kind of rejoin. It is on the wire: never rename it.
const kindRejoin = "directory.rejoin"

// Kind implements ranges.Portable.
func (c *rejoin) Kind() string { return kindRejoin }

func parseRejoin(b []byte) (*rejoin, error) {
	c, err := record.ParseSetGate(b)
	if err != nil {
		return nil, err
	}
	if c.Gate.Role != change.RoleSecondary || !c.Gate.Open || c.Gate.Numbered {
		return nil, fmt.Errorf("%w: a former primary with gate %+v", record.ErrCommand, c.Gate)
	}
	return &rejoin{SetGate: *c}, nil
}

// EncodeResult implements ranges.Portable: as that of follow.
func (c *rejoin) EncodeResult() []byte {
	return (&follow{SetGate: c.SetGate, diverged: c.diverged}).EncodeResult()
}

// DecodeResult implements ranges.Portable.
func (c *rejoin) DecodeResult(b []byte) error {
	var f follow
	err := f.DecodeResult(b)
	c.Found, c.diverged = f.Found, f.diverged
	return err
}

// claimOf reads what a range claims about the lost changes of an account in the epoch that the present primary began, nil
// for nothing.
func claimOf(get kv.Getter, r geo.RangeID, a geo.Account, by geo.Epoch) (*change.LostClaim, error) {
	return catalog.LostClaim(get, ranges.Service(r), a, by)
}

// ParseRejoined parses an account of the location other that is rewound here.
func ParseRejoined(body []byte, here, other geo.Location) (*catalog.Account, error) {
	return record.ParseOf(body, here, other, func(a *catalog.Account) bool {
		return a.Active && a.Operation != nil && a.Operation.Kind == catalog.OperationTaken && a.Operation.Rewinding
	})
}
