package unplanned

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// frozen freezes the copy of an account in all ranges under a turn, and returns where it ends in the streams of the
// primary's epoch. Turn 0 freezes nothing. errUnwhole: a range does not have the copy, or not all of it.
func (u *Promoter) frozen(ctx context.Context, name geo.Account, e geo.Epoch, turn uint32) (out []catalog.Fork, err error) {
	for _, r := range u.stamp.Route().Everywhere(name) {
		cmd := &freeze{freezeBody: freezeBody{Account: name, Epoch: e, Turn: turn}}
		if plantedbugs.Planted(plantedbugs.PromotedUnfrozen) && r.Service != geo.Catalog {
			cmd.Turn = 0
		}
		if err := u.stamp.Submit(ctx, r.ID, cmd); err != nil {
			return nil, fmt.Errorf("account %s: its copy in the %s range: %w", name, r.Service, err)
		}
		if !cmd.found.Whole {
			return nil, fmt.Errorf("account %s: its copy in the %s range: %w", name, r.Service, errUnwhole)
		}
		out = append(out, cmd.found.Fork)
	}
	return out, nil
}

// freezeBody is an encoded freeze or thaw.
type freezeBody struct {
	Account geo.Account `json:"account"`
	Epoch   geo.Epoch   `json:"epoch"`
	Turn    uint32      `json:"turn"`
}

// Encode implements ranges.Portable.
func (c freezeBody) Encode() []byte {
	b, _ := json.Marshal(c) // It has no value that JSON lacks.
	return b
}

func parseFreezeBody(b []byte) (c freezeBody, err error) {
	if err := json.Unmarshal(b, &c); err != nil {
		return c, errors.Join(record.ErrCommand, err)
	}
	if !c.Account.Valid() || c.Turn != 0 && c.Turn%2 == 0 {
		return c, fmt.Errorf("%w: a freeze of account %q with turn %d", record.ErrCommand, c.Account, c.Turn)
	}
	return c, nil
}

// gate is that of the frozen copy.
func (c freezeBody) gate() change.Gate {
	return change.Gate{Epoch: c.Epoch, Role: change.RoleSecondary, Turn: c.Turn}
}

// freeze closes the gate of a copy in its epoch, so that no cursor of it moves any more, and finds where the cursors are.
// Turn 0 is no freeze: it finds where they are now. A freeze that is late does not close a gate that was opened again.
type freeze struct {
	freezeBody
	found found
}

// found is where the copy of an account ends in the streams of a source range.
type found struct {
	Fork catalog.Fork `json:"fork"`
	// Whole: the range has the copy, and it is frozen if that was asked for.
	Whole bool `json:"whole"`
}

// Evaluate implements ranges.Command. A range that was recovered with loss may show what it had.
func (c *freeze) Evaluate(tx *ranges.Tx) error {
	c.found = found{}
	if tx.Uncompared() {
		return kv.ErrBusy
	}
	have := tx.Gate(c.Account)
	copied := have.Epoch == c.Epoch && have.Role == change.RoleSecondary
	if copied && have.Open && have.Turn < c.Turn {
		have = c.gate()
		tx.SetGate(c.Account, have)
	}
	c.found.Whole = copied && (have == c.gate() || c.Turn == 0 && (have.Open || have.Turn%2 == 1))
	c.found.Fork = forkIn(tx, c.Account, c.Epoch)
	return nil
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (c *freeze) Reclaims() {}

// forkIn returns where the copy of an account is in the streams of an epoch. The records of a range of the other location
// are in the range here that has its id (R14).
func forkIn(tx *ranges.Tx, a geo.Account, e geo.Epoch) catalog.Fork {
	known := tx.Known(geo.SourceRange{Origin: e.Location, Range: tx.Range()})
	out := catalog.Fork{
		Number: e.Number, Location: e.Location, Range: tx.Range(), Closed: known.Closed, Wall: known.Wall,
		Start: []byte(known.Span.Start), End: []byte(known.Span.End), Descriptor: known.Descriptor, Recovered: tx.Incarnation() > 0,
	}
	for lane := range geo.Lane(geo.LaneCount) {
		st := geo.Stream{Account: a, Epoch: e, Range: tx.Range(), Lane: lane}
		at := tx.Cursor(st)
		why, _ := tx.Stopped(st)
		s := catalog.ForkStream{Lane: lane, Seq: at.Applied.Seq, Hash: at.Applied.Hash, Stopped: why.Reason}
		if n := len(at.Pairs); n > 0 {
			s.Behind, s.Sync, s.SyncWall = at.Pairs[n-1].Head.Seq, at.Sync, at.SyncWall
		}
		if s != (catalog.ForkStream{Lane: lane}) && (lane%8 != 1 || !plantedbugs.Planted(plantedbugs.ForkLaneLost)) {
			out.Streams = append(out.Streams, s)
		}
	}
	return out
}

// The kinds of freeze and thaw. They are on the wire: never rename them.
const (
	kindFreeze = "directory.freeze"
	kindThaw   = "directory.thaw"
)

// Kind implements ranges.Portable.
func (c *freeze) Kind() string { return kindFreeze }

func parseFreeze(b []byte) (*freeze, error) {
	body, err := parseFreezeBody(b)
	return &freeze{freezeBody: body}, err
}

// EncodeResult implements ranges.Portable.
func (c *freeze) EncodeResult() []byte {
	b, _ := json.Marshal(c.found) // It has no value that JSON lacks.
	return b
}

// DecodeResult implements ranges.Portable.
func (c *freeze) DecodeResult(b []byte) error {
	c.found = found{}
	return json.Unmarshal(b, &c.found)
}

// thaw opens the gate of a copy again, in its epoch, with the turn that follows. Where no freeze came yet it sees that none
// has an effect. The gate of a copy that is closed for another reason stays closed.
type thaw struct{ freezeBody }

// Evaluate implements ranges.Command.
func (c *thaw) Evaluate(tx *ranges.Tx) error {
	if tx.Uncompared() {
		return kv.ErrBusy
	}
	c.set(tx)
	return nil
}

// set stages the gate.
func (c thaw) set(tx *ranges.Tx) {
	have := tx.Gate(c.Account)
	if have == c.gate() || have.Epoch == c.Epoch && have.Role == change.RoleSecondary && have.Open && have.Turn < c.Turn {
		open := c.gate()
		open.Open, open.Turn = true, c.Turn+1
		tx.SetGate(c.Account, open)
	}
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (c *thaw) Reclaims() {}

// Kind implements ranges.Portable.
func (c *thaw) Kind() string { return kindThaw }

func parseThaw(b []byte) (*thaw, error) {
	body, err := parseFreezeBody(b)
	if err == nil && body.Turn == 0 {
		err = fmt.Errorf("%w: a thaw with turn 0", record.ErrCommand)
	}
	return &thaw{body}, err
}

// EncodeResult implements ranges.Portable.
func (c *thaw) EncodeResult() []byte { return nil }

// DecodeResult implements ranges.Portable.
func (c *thaw) DecodeResult(b []byte) error {
	if len(b) != 0 {
		return record.ErrCommand
	}
	return nil
}

// thaw opens the gates of a promotion that ends without effect, and ends it.
func (u *Promoter) thaw(ctx context.Context, name geo.Account, p *catalog.Promotion) error {
	for _, r := range u.stamp.Route().Data(name) {
		cmd := &thaw{freezeBody{Account: name, Epoch: p.GeoEpoch(), Turn: p.Turn}}
		if err := u.stamp.Submit(ctx, r.ID, cmd); err != nil {
			return fmt.Errorf("account %s: its gate in the %s range: %w", name, r.Service, err)
		}
	}
	return u.stamp.Commit(ctx, &thawed{name: name, of: *p})
}

// thawed ends a promotion without effect, but for its claim, and opens the catalog's gate.
type thawed struct {
	name geo.Account
	of   catalog.Promotion
}

// Evaluate implements ranges.Command.
func (c *thawed) Evaluate(tx *ranges.Tx) error {
	p, err := catalog.GetPromotion(tx, c.name)
	if err != nil || p == nil || *p != c.of {
		return err
	}
	thaw{freezeBody{Account: c.name, Epoch: p.GeoEpoch(), Turn: p.Turn}}.set(tx)
	if p.Claim != 0 {
		return stageWithdrawal(tx, p, c.name)
	}
	return stagePromotion(tx, tx.Timestamp(0), c.name, nil)
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (*thawed) Reclaims() {}

// Losses returns where the copy of an account ends in the streams of its former primary, if this location has become the
// primary by an unplanned failover, else where the copy here would end now.
func (u *Promoter) Losses(ctx context.Context, name geo.Account) ([]catalog.Fork, error) {
	for {
		a, err := u.accounts.Account(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case a.Primary == u.stamp.Location():
			return u.taken.Forks(ctx, name)
		}
		now, err := u.frozen(ctx, name, a.GeoEpoch(), 0)
		if !errors.Is(err, errUnwhole) {
			return now, err
		}
		if again, err := u.accounts.Account(ctx, name); err != nil || again.GeoEpoch() == a.GeoEpoch() {
			return nil, errors.Join(errUnwhole, err)
		}
	}
}

// How long a promotion waits for what is on its way.
const (
	// applyQuiet is for how long no cursor may have moved before what is here counts as applied; applyMax is how long
	// that is waited for at most.
	applyQuiet = time.Second
	applyMax   = 10 * time.Second
)

// Times bound the steps of promotions.
type Times struct {
	// Within is after what time a promotion that has not come to its commit ends by itself.
	Within time.Duration
	// Quiet is for how long no cursor may have moved before what is here counts as applied; Most is how long that is
	// waited for at most.
	Quiet, Most time.Duration
}

// promotionTimes are those that hold if nobody says otherwise.
func promotionTimes() Times {
	return Times{Within: promotionWithin, Quiet: applyQuiet, Most: applyMax}
}

// SetTimes sets the bounds of the promotions that begin from now on, for a run under virtual time.
func (u *Promoter) SetTimes(t Times) { u.times = t }

// rests remembers when the cursors of copies moved last, as this process saw it. The zero value knows none. Methods may be
// called concurrently.
type rests struct {
	mu sync.Mutex
	of map[geo.Account]rest // guarded by mu
}

// rest is what was seen of the cursors of one promotion.
type rest struct {
	begun geo.Timestamp
	// applied is how many records were applied at the last look; since and moved are when the first look was, and when
	// they had moved last.
	applied      uint64
	since, moved time.Duration
}

// rest takes what a look at the cursors of a promotion showed, and reports whether they have rested for long enough, or
// were looked at for the longest time. While something is held back that has arrived, rest shows nothing: it is tried now and
// then, one record of a stream after the other, and on a machine without time for it a try may take longer than Quiet.
func (r *rests) rest(of Promoting, forks []catalog.Fork, now time.Duration, within Times, heldBack bool) bool {
	applied := uint64(0)
	for _, f := range forks {
		for _, s := range f.Streams {
			applied += uint64(s.Seq)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.of[of.Account.Name]
	switch {
	case !known || at.begun != of.Promotion.Begun:
		at = rest{begun: of.Promotion.Begun, applied: applied, since: now, moved: now}
	case at.applied != applied:
		at.applied, at.moved = applied, now
	}
	if r.of == nil {
		r.of = map[geo.Account]rest{}
	}
	r.of[of.Account.Name] = at
	return now-at.moved >= within.Quiet && !heldBack || now-at.since >= within.Most
}

// keep forgets the accounts that have no promotion any more.
func (r *rests) keep(promoted map[geo.Account]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.of, func(name geo.Account, _ rest) bool { return !promoted[name] })
}
