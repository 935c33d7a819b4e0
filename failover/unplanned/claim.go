package unplanned

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services/catalog"
	"antipode/stamp/ranges"
)

// The claim of a promotion at the witness (R21). The witness lists it in its answers to the present primary, whose lease
// does not hold for the account from then on. So once the leases are over that were granted before, the primary
// acknowledges nothing more, whether it can reach this location or not; R19's commit is not before.
//
// The number of the claimed epoch is durable here before the witness is asked, and the commit is in that epoch. A claim
// that may be registered and has no effect keeps the primary from its account, so the witness must forget it. Before it is
// asked for that the epoch counts as seen here: no later promotion claims the same one, and a late call takes nothing from
// it. While the witness is away, a promotion that has ended waits in the phase withdrawing, and holds the account's lock.
//
// A promotion without the witness, by an operator's word, claims its epoch after its commit, as soon as the witness can be
// reached and unless the former primary was reached before: claimTaken. Until then, and until the leases from before are over,
// nothing but that word keeps a former primary from its writes that reaches the witness alone.
//
// A planned move claims nothing. The former primary offers the account, its gates are closed before that, durably and in
// every range, and it opens them only once it knows that the offer is refused for ever (R19): it acknowledges nothing from
// the offer on, whatever lease it has.

// Claims is the witness of both locations, as this one calls it: see failover/witness.
type Claims interface {
	// Claim registers that the location is about to become the primary of accounts in given epochs, and returns the
	// monotonic time, of the clock of SetPace, from which no lease of another location holds for them. The same claims
	// again are no error. ErrClaimed: an account has a claim of a higher epoch. After any other error it is not known
	// whether they are registered.
	Claim(ctx context.Context, epochs map[geo.Account]geo.EpochNumber, here geo.Location) (until time.Duration, err error)
	// Withdraw takes back the claim of an account in an epoch of this location. One that is not registered is no error.
	Withdraw(ctx context.Context, name geo.Account, n geo.EpochNumber) error
}

// ErrClaimed: the account has a claim of a higher epoch at the witness.
var ErrClaimed = errors.New("directory: the account is claimed in a higher epoch")

// errUnclaimed: a promotion was begun by a process with a witness.
var errUnclaimed = errors.New("no witness is configured in this process, as there was where the failover was begun")

// PromoteWithoutWitness is Promote by an operator who knows that the present primary takes no writes: the witness is not
// asked. A promotion that is under way and waits for the witness goes on without it.
func (u *Promoter) PromoteWithoutWitness(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	return u.PromoteAs(ctx, name, Insisted{WithoutWitness: true})
}

// ClaimTaken registers the claim of an epoch that has begun without the witness, once the witness can be reached. From then
// on no lease that is granted to the former primary holds for the account; those of before end by themselves.
func (u *Promoter) ClaimTaken(ctx context.Context, a catalog.Account) error {
	if u.claims == nil {
		return nil
	}
	_, err := u.claims.Claim(ctx, map[geo.Account]geo.EpochNumber{a.Name: a.Epoch}, u.stamp.Location())
	if err != nil && !errors.Is(err, ErrClaimed) { // A higher claim does as much.
		return fmt.Errorf("the witness does not have its claim, after the failover without it: %w", err)
	}
	return u.stamp.Commit(ctx, claimedTaken{a})
}

// claimedTaken commits that the witness has the claim of an account that this location has taken without it.
type claimedTaken struct{ of catalog.Account }

// Evaluate implements ranges.Command.
func (c claimedTaken) Evaluate(tx *ranges.Tx) error {
	a, _, err := record.OfTaken(tx, c.of)
	if a == nil || err != nil {
		return err
	}
	op := *a.Operation
	op.Unclaimed, a.Operation = false, &op
	return record.StageAccount(tx, tx.Timestamp(0), a)
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (claimedTaken) Reclaims() {}

// overridden returns a promotion that goes on without the witness. It keeps its claim, which may be registered, so that its
// end withdraws that.
func overridden(of catalog.Promotion, until time.Time) *catalog.Promotion {
	of.Phase, of.Unwitnessed = catalog.PromotionApplying, true
	of.Until = geo.TimestampOf(until)
	return &of
}

// awaitWitness registers the claim of a promotion, and waits for the leases from before it.
func (u *Promoter) awaitWitness(ctx context.Context, of Promoting) (again time.Duration, err error) {
	name, p := of.Account.Name, of.Promotion
	if u.claims == nil {
		return 0, errUnclaimed
	}
	until, known := u.registered.of(of)
	if !known || u.clock.Mono() >= until {
		// Also at the end: the witness may have been restored meanwhile, from a file without the claim. Then this registers it again,
		// and the leases that the witness has granted until now have to end, too.
		until, err = u.claims.Claim(ctx, map[geo.Account]geo.EpochNumber{name: p.Claim}, u.stamp.Location())
		switch {
		case errors.Is(err, ErrClaimed):
			return u.thawFor(ctx, of, err.Error())
		case err != nil:
			return 0, err
		}
		u.registered.set(of, until)
	}
	left := until - u.clock.Mono()
	if left <= 0 || plantedbugs.Planted(plantedbugs.ClaimUnawaited) {
		return applyPause, u.stamp.Commit(ctx, &promotionTo{name: name, of: p, to: catalog.PromotionApplying})
	}
	within := u.times.Within
	if needs := u.clock.Now().Add(left + within/2); p.Until.Time().Before(needs) { // The leases are long.
		return applyPause, u.stamp.Commit(ctx, &promotionTo{name: name, of: p, to: p.Phase, until: needs.Add(within / 2)})
	}
	return max(applyPause, left), nil
}

// releaseWitness has the witness forget the claim of a promotion that has ended, which then is no more.
func (u *Promoter) releaseWitness(ctx context.Context, of Promoting) error {
	if u.claims != nil { // Else there is no witness any more, and no lease.
		if err := u.claims.Withdraw(ctx, of.Account.Name, of.Promotion.Claim); err != nil {
			return err
		}
	}
	return u.stamp.Commit(ctx, &withdrawn{name: of.Account.Name, of: *of.Promotion})
}

// stageWithdrawal has a promotion end but for its claim. From here on the claimed epoch can never begin.
func stageWithdrawal(tx *ranges.Tx, p *catalog.Promotion, name geo.Account) error {
	have, err := record.Look(tx, name)
	if err != nil {
		return err
	}
	seen, err := catalog.SeenOp(record.Later(have.Seen, geo.Epoch{Number: p.Claim, Location: tx.Location()}))
	if err != nil {
		return err
	}
	next := *p
	next.Phase = catalog.PromotionWithdrawing
	return stagePromotion(tx, tx.Timestamp(0), name, &next, seen)
}

// withdrawn ends a promotion whose claim the witness has forgotten.
type withdrawn struct {
	name geo.Account
	of   catalog.Promotion
}

// Evaluate implements ranges.Command.
func (c *withdrawn) Evaluate(tx *ranges.Tx) error {
	p, err := catalog.GetPromotion(tx, c.name)
	if err != nil || p == nil || *p != c.of {
		return err
	}
	return stagePromotion(tx, tx.Timestamp(0), c.name, nil)
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (*withdrawn) Reclaims() {}

// registrations remembers until when claims have to wait that this process has registered. The zero value has none. Methods may
// be called concurrently.
type registrations struct {
	mu sync.Mutex
	at map[geo.Account]registration // guarded by mu
}

// registration is a claim at the witness.
type registration struct {
	number geo.EpochNumber
	until  time.Duration
}

func (r *registrations) of(p Promoting) (until time.Duration, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.at[p.Account.Name]
	return at.until, known && at.number == p.Promotion.Claim
}

func (r *registrations) set(p Promoting, until time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[geo.Account]registration{}
	}
	r.at[p.Account.Name] = registration{p.Promotion.Claim, until}
}

// keep forgets the accounts that have no promotion any more.
func (r *registrations) keep(promoted map[geo.Account]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.at, func(name geo.Account, _ registration) bool { return !promoted[name] })
}
