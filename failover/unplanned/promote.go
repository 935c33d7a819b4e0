package unplanned

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// The unplanned failover of an account (R20), at its secondary, which asks the primary nothing:
//
//	claiming, where there is a witness: see claim.go
//	  ──the claim is registered, and no lease from before it holds any more──>
//	applying: what is here of the streams is applied
//	  ──everything of before the promotion is, or nothing has moved for a while, or the time for that is over──>
//	freezing ──the gates of all ranges are closed in the primary's epoch: see freeze.go──>
//	  ──promoted, in the catalog: the record of a later epoch, its gate, and the fork record of each range, which is where
//	    the frozen cursors are. This is the one commit point (R19)──>
//	no promotion; the operation of the account is taken: see rejoin.Rejoiner.Resume
//
// A promotion goes from any phase to thawing if an operator ends it, if it has not come to its commit in time, since a range
// does not answer or this location was off, or if the stream brings a record of a later epoch of the primary, as of an
// account that has become LRS there: the commit is out of the epoch in which the copy is frozen, so it cannot come any
// more, and as long as the promotion is there, the primary waits for it, and its claim keeps clients from writing.
//
//	thawing ──the gates of all ranges open again in that epoch──> no promotion, unless it may have a claim:
//	withdrawing ──the witness has forgotten the claim──> no promotion
//
// Every step is committed before the next begins, and may be repeated. As in a move the gates have a turn, so that a freeze
// that is late does not close what was opened again. While there is a promotion, nothing that the primary asks for
// replaces the account's record here.

const (
	// promotionWithin is after what time a promotion that has not come to its commit ends by itself.
	promotionWithin = 2 * time.Minute
	// applyPause is the pause between two looks at the cursors.
	applyPause = 100 * time.Millisecond
)

// Promote begins the unplanned failover of an account whose secondary is here to this location (R20). It returns the
// account as it is here: Resume goes on. Errors that change nothing: AccountNotFound; OperationInProgress, also where a
// promotion is under way; InvalidInput where the secondary is elsewhere or the copy here is not whole; ServerBusy.
func (u *Promoter) Promote(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	return u.PromoteAs(ctx, name, Insisted{})
}

// PromoteAs is Promote as an operator insists. With WithoutWitness a promotion that is under way and waits for the witness
// goes on without it.
func (u *Promoter) PromoteAs(ctx context.Context, name geo.Account, by Insisted) (*catalog.Account, error) {
	if !by.AcceptPart {
		if err := u.checkPart(ctx, name); err != nil {
			return nil, err
		}
	}
	why := ""
	if by.WithoutWitness {
		why = "without the witness, by an operator's word"
	}
	return u.beginPromotion(ctx, u.newPromotion(name, by), why)
}

func (u *Promoter) newPromotion(name geo.Account, by Insisted) *beginPromotion {
	return &beginPromotion{name: name, claims: u.claims != nil, by: by, within: u.times.Within}
}

// beginPromotion begins a promotion; why is said with it.
func (u *Promoter) beginPromotion(ctx context.Context, cmd *beginPromotion, why string) (*catalog.Account, error) {
	if err := u.stamp.Commit(ctx, cmd); err != nil {
		return nil, err
	}
	u.waits.Set(&cmd.found, nil) // What one before has waited for.
	u.moved(record.MoveBegun, &cmd.found, why)
	return &cmd.found, nil
}

// beginPromotion begins a promotion.
type beginPromotion struct {
	name geo.Account
	// within is how long the promotion may take.
	within time.Duration
	// claims: there is a witness. by: with WithoutWitness it is not asked, nor by a promotion that is under way and waits
	// for it.
	claims bool
	by     Insisted
	// dry stages nothing.
	dry   bool
	found catalog.Account
}

// Evaluate implements ranges.Command.
func (c *beginPromotion) Evaluate(tx *ranges.Tx) error {
	have, err := record.Look(tx, c.name)
	if err != nil {
		return err
	}
	a, gate := have.Account, tx.Gate(c.name)
	switch {
	case a == nil || !a.Active:
		return storageerr.AccountNotFound
	case a.Primary == tx.Location():
		return storageerr.InvalidInput.Saying(fmt.Sprintf("the primary of account %s is %s already", a.Name, a.Primary))
	case a.Secondary != tx.Location():
		return storageerr.InvalidInput.Saying(fmt.Sprintf("account %s is %s: there is no copy at %s", a.Name, a.Redundancy, tx.Location()))
	case have.Promotion != nil && c.by.WithoutWitness && have.Promotion.Phase == catalog.PromotionClaiming:
		at := tx.Timestamp(0)
		c.found = *a
		return c.stage(tx, at, overridden(*have.Promotion, tx.Now().Add(c.within)))
	case have.Promotion != nil && (!c.by.WithoutWitness || have.Promotion.Phase != catalog.PromotionWithdrawing):
		return record.ErrOperation.Saying(fmt.Sprintf("account %s: an operation is under way: %s", a.Name, have.Promotion.Describe()))
	case !a.Promotable():
		return record.ErrOperation.Saying(fmt.Sprintf("account %s: an operation is under way: %s", a.Name, a.Operation.Describe()))
	case gate.Epoch != a.GeoEpoch() || gate.Role != change.RoleSecondary || !gate.Open:
		return errUnwhole
	}
	at := tx.Timestamp(0)
	c.found = *a
	p := &catalog.Promotion{
		Number: a.Epoch, Location: a.Primary, Phase: catalog.PromotionApplying, Turn: gate.Turn + 1,
		Begun: at, Until: geo.TimestampOf(tx.Now().Add(c.within)), Unwitnessed: c.by.WithoutWitness,
		AcceptPart: c.by.AcceptPart,
	}
	switch {
	case have.Promotion != nil: // Its end waited for the witness, with a claim that may be registered.
		p.Claim = have.Promotion.Claim
	case c.claims && !c.by.WithoutWitness:
		p.Phase, p.Claim = catalog.PromotionClaiming, have.Seen.Number+1
	}
	return c.stage(tx, at, p)
}

// stage begins the promotion, unless that is to be checked alone.
func (c *beginPromotion) stage(tx *ranges.Tx, at geo.Timestamp, p *catalog.Promotion) error {
	if c.dry {
		return nil
	}
	return stagePromotion(tx, at, c.name, p)
}

// CheckIn returns why a promotion would not begin, by the catalog alone.
func CheckIn(tx *ranges.Tx, name geo.Account, by Insisted) error {
	return (&beginPromotion{name: name, by: by, dry: true}).Evaluate(tx)
}

// errUnwhole refuses to promote a copy that never was whole, or of which something was deleted.
var errUnwhole = storageerr.InvalidInput.Saying("the copy of the account at this location is not whole: it cannot become the primary")

// stagePromotion changes the promotion of an account at this location alone, with other rows of its partition.
func stagePromotion(tx *ranges.Tx, at geo.Timestamp, name geo.Account, p *catalog.Promotion, more ...change.Op) error {
	op, err := catalog.PromotionOp(p)
	if err != nil {
		return err
	}
	part := catalog.AccountPartition(name)
	return tx.Local(part, change.Record{CommitTime: at, Partition: part.Append(nil), Ops: append([]change.Op{op}, more...)})
}

// EndPromotion has the unplanned failover of an account to this location end without effect, unless it is committed.
// Resume goes on. ok is false if none is under way that could be ended.
func (u *Promoter) EndPromotion(ctx context.Context, name geo.Account) (ok bool, err error) {
	cmd := &promotionTo{name: name, to: catalog.PromotionThawing, why: "an operator ended it"}
	if err := u.stamp.Commit(ctx, cmd); err != nil {
		return false, err // It may be evaluated yet.
	}
	return cmd.done, nil
}

// promotionTo commits the next phase of a promotion.
type promotionTo struct {
	name geo.Account
	// of is the promotion as it was; nil for any.
	of *catalog.Promotion
	to catalog.PromotionPhase
	// why is the reason of one that ends.
	why string
	// until is the new time after which it ends, zero for none.
	until time.Time
	done  bool
}

// Evaluate implements ranges.Command.
func (c *promotionTo) Evaluate(tx *ranges.Tx) error {
	c.done = false
	p, err := catalog.GetPromotion(tx, c.name)
	if err != nil || p == nil || ends(p) || c.of != nil && *p != *c.of {
		return err
	}
	p.Phase, p.Reason, c.done = c.to, c.why, true
	if !c.until.IsZero() {
		p.Until = geo.TimestampOf(c.until)
	}
	return stagePromotion(tx, tx.Timestamp(0), c.name, p)
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (*promotionTo) Reclaims() {}

// Promotion returns the promotion of an account to this location, nil for none.
func (u *Promoter) Promotion(ctx context.Context, name geo.Account) (p *catalog.Promotion, err error) {
	err = u.stamp.Read(ctx, u.stamp.Route().Catalog(), func(s ranges.State) (err error) {
		p, err = catalog.GetPromotion(s, name)
		return err
	})
	return p, err
}

// Promoting is an account with its promotion.
type Promoting struct {
	Account   *catalog.Account
	Promotion *catalog.Promotion
}

// Resume goes on with a promotion. again is after what time it may go on, 0 if it ended.
func (u *Promoter) Resume(ctx context.Context, of Promoting) (again time.Duration, err error) {
	a, p := of.Account, of.Promotion
	if !ends(p) && !u.clock.Now().Before(p.Until.Time()) {
		return u.thawFor(ctx, of, u.lateFor(of))
	}
	switch p.Phase {
	case catalog.PromotionClaiming, catalog.PromotionApplying, catalog.PromotionFreezing:
		if a.GeoEpoch() != p.GeoEpoch() { // The epoch of a record never goes back, so the commit cannot come.
			why := fmt.Sprintf("its primary has changed the account to %s meanwhile, in epoch %s", a.Redundancy, a.GeoEpoch())
			return u.thawFor(ctx, of, why)
		}
	}
	switch p.Phase {
	case catalog.PromotionClaiming:
		return u.awaitWitness(ctx, of)
	case catalog.PromotionApplying:
		return u.applyHere(ctx, of)
	case catalog.PromotionFreezing:
		return u.freezeAll(ctx, of)
	case catalog.PromotionThawing:
		if err := u.thaw(ctx, a.Name, p); err != nil {
			return 0, err
		}
		u.moved(record.MoveEnded, a, p.Reason)
		if p.Claim != 0 {
			return applyPause, nil
		}
		return 0, nil
	case catalog.PromotionWithdrawing:
		return 0, u.releaseWitness(ctx, of)
	}
	return 0, fmt.Errorf("directory: phase %q of the promotion of account %s: %w", p.Phase, a.Name, feature.ErrLater)
}

// ends reports whether a promotion ends without effect.
func ends(p *catalog.Promotion) bool {
	return p.Phase == catalog.PromotionThawing || p.Phase == catalog.PromotionWithdrawing
}

// lateFor is why a promotion has not come to its commit in time.
func (u *Promoter) lateFor(of Promoting) string {
	why := fmt.Sprintf("it had not come to its commit within %s", u.times.Within)
	if of.Promotion.Phase == catalog.PromotionClaiming {
		why = fmt.Sprintf("the witness had not let it go on within %s", u.times.Within)
	}
	if waits := u.waits.Why(of.Account); waits != "" {
		why += ": " + waits
	}
	return why
}

// thawFor has a promotion end without effect, for a reason.
func (u *Promoter) thawFor(ctx context.Context, of Promoting, why string) (again time.Duration, err error) {
	return applyPause, u.stamp.Commit(ctx, &promotionTo{name: of.Account.Name, of: of.Promotion, to: catalog.PromotionThawing, why: why})
}

// applyHere waits until what was here is applied: until the cursors rest, or, beside a primary that goes on writing, until
// all of before the promotion is.
func (u *Promoter) applyHere(ctx context.Context, of Promoting) (again time.Duration, err error) {
	forks, err := u.frozen(ctx, of.Account.Name, of.Promotion.GeoEpoch(), 0)
	if errors.Is(err, errUnwhole) {
		return u.thawFor(ctx, of, errUnwhole.Message)
	}
	if err != nil {
		return 0, err
	}
	if !arrived(forks, of.Promotion.Begun, u.clock.Now()) && !u.rests.rest(of, forks, u.clock.Mono(), u.times, u.heldBack(of.Account)) {
		return applyPause, nil
	}
	return applyPause, u.stamp.Commit(ctx, &promotionTo{name: of.Account.Name, of: of.Promotion, to: catalog.PromotionFreezing})
}

// freezeAll freezes all ranges, and commits.
func (u *Promoter) freezeAll(ctx context.Context, of Promoting) (again time.Duration, err error) {
	forks, err := u.frozen(ctx, of.Account.Name, of.Promotion.GeoEpoch(), of.Promotion.Turn)
	if errors.Is(err, errUnwhole) {
		return u.thawFor(ctx, of, errUnwhole.Message)
	}
	if err != nil {
		return 0, err
	}
	if why := partial(of.Account, u.stamp.Location(), PartsOf(of.Account, u.stamp.Route(), forks)); why != "" && !of.Promotion.AcceptPart {
		return u.thawFor(ctx, of, why)
	}
	cmd := &promoted{name: of.Account.Name, of: *of.Promotion, forks: forks}
	switch err := u.stamp.Commit(ctx, cmd); {
	case err != nil:
		return applyPause, err
	case cmd.passed:
		return u.thawFor(ctx, of, fmt.Sprintf("the epoch %d that it has claimed was passed meanwhile: begin it again", of.Promotion.Claim))
	case cmd.unwhole:
		return u.thawFor(ctx, of, errUnwhole.Message)
	case cmd.taken == nil:
		return applyPause, nil
	}
	u.moved(record.MoveTaken, cmd.taken, "")
	_ = u.taken.OpenGates(ctx, *cmd.taken) // Resume follows. Clients wait for it, and for nothing else.
	return record.MovePause, nil
}

// promoted is the commit of a promotion (R19): from it on this location is the primary.
type promoted struct {
	name  geo.Account
	of    catalog.Promotion
	forks []catalog.Fork
	// taken is nil if the promotion has gone on otherwise. passed: its claim is not above every epoch that was seen.
	// unwhole: what the primary has begun meanwhile, as the record says, leaves a copy here that is not whole.
	taken           *catalog.Account
	passed, unwhole bool
}

// Evaluate implements ranges.Command.
func (c *promoted) Evaluate(tx *ranges.Tx) error {
	c.taken, c.passed, c.unwhole = nil, false, false
	have, err := record.Look(tx, c.name)
	if err != nil || have.Promotion == nil || *have.Promotion != c.of {
		return err // It has gone on, or it ends.
	}
	if c.passed = c.of.Claim != 0 && !c.of.Unwitnessed && have.Seen.Number >= c.of.Claim; c.passed {
		return nil
	}
	frozen := change.Gate{Epoch: c.of.GeoEpoch(), Role: change.RoleSecondary, Turn: c.of.Turn}
	if a := have.Account; a == nil || !a.Active || a.GeoEpoch() != c.of.GeoEpoch() || tx.Gate(c.name) != frozen {
		return kv.ErrBusy
	}
	if c.unwhole = !have.Account.Promotable(); c.unwhole {
		return nil
	}
	at, a := tx.Timestamp(0), *have.Account
	a.Primary, a.Secondary = tx.Location(), have.Account.Primary
	a.Epoch, a.Turn = have.Seen.Number+1, 0
	a.FailOver(at, tx.Now())
	a.Operation = &catalog.Operation{Kind: catalog.OperationTaken, After: at, Unplanned: true, Unclaimed: c.of.Unwitnessed}
	seen, err := catalog.SeenOp(a.GeoEpoch())
	if err != nil {
		return err
	}
	rows := []change.Op{seen}
	for _, f := range c.forks {
		op, err := catalog.ForkOp(f)
		if err != nil {
			return err
		}
		rows = append(rows, op)
	}
	if err := stagePromotion(tx, at, c.name, nil, rows...); err != nil {
		return err
	}
	tx.SetGate(c.name, record.PrimaryGate(&a))
	c.taken = &a
	return record.StageAccount(tx, tx.Timestamp(0), &a)
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (*promoted) Reclaims() {}

// Keep forgets the accounts that have no promotion any more.
func (u *Promoter) Keep(promoted map[geo.Account]bool) {
	u.rests.keep(promoted)
	u.registered.keep(promoted)
}
