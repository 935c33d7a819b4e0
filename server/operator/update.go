package operator

import (
	"context"
	"fmt"
	"net/http"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
	"antipode/services/storageerr"
	"antipode/stats"
)

// primaryWait bounds how long an answer waits for the primary of an account, which knows its changes first.
const primaryWait = 500 * time.Millisecond

// endWait bounds how long the end of a failover waits for the secondary before it asks the primary.
const endWait = 2 * time.Second

// atPrimary returns an account as its primary has it, if that answers soon, else a. After an unplanned failover a location
// that was not asked, and has not heard of it, still takes itself for the primary: the higher epoch counts (R19). What is
// under way is an unplanned failover where the secondary has one, of which the primary does not know (R20).
func (b *Backend) atPrimary(ctx context.Context, a wire.Account) wire.Account {
	if len(b.o.Locations) < 2 {
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, primaryWait)
	defer cancel()
	answers := each(b, func(l Location) answer[wire.Account] { return answerOf(accountOf(ctx, l, a.Name)) })
	latest, unheld := b.withoutPrimary(ctx, b.recordsOf(answers))
	if unheld {
		a = latest
	}
	for i, there := range answers {
		if there.err == nil && !unheld && owns(b.o.Locations[i].Name(), there.value, a) {
			a = there.value
		}
	}
	for i, there := range answers {
		if there.err == nil {
			promotes(&a, there.value, b.o.Locations[i].Name())
		}
	}
	return a
}

// promotes shows in an account the unplanned failover that is under way at a location, by what that answers of the account.
func promotes(a *wire.Account, there wire.Account, l geo.Location) {
	if l == a.Secondary && there.Epoch == a.Epoch && there.Promoting() {
		a.FailoverPhase, a.Operation, a.OperationWaits = there.FailoverPhase, there.Operation, there.OperationWaits
	}
}

// owns reports whether a location's record of an account counts for more than another one's: it is the primary, and
// in no lower epoch. After a failover the former primary may not know yet that it is none (R19).
func owns(l geo.Location, a, other wire.Account) bool {
	return a.Primary == l && geo.Epoch(a.Epoch).Compare(geo.Epoch(other.Epoch)) >= 0
}

// takeOwn puts the accounts of which a location is the primary in a list as that location has them. What another
// one still computes of an account without a secondary is left out.
func takeOwn(list, own []wire.AccountStatus, l geo.Location) {
	at := byName(list)
	for _, a := range own {
		if i, is := at[a.Name]; is && owns(l, a.Account, list[i].Account) {
			list[i].Account = a.Account
		}
	}
	for i := range list {
		if list[i].Secondary == "" {
			list[i].Services = nil
		}
	}
}

// takePromotions shows in a list the unplanned failovers of its accounts that are under way at a location.
func takePromotions(list, there []wire.AccountStatus, l geo.Location) {
	at := byName(list)
	for _, a := range there {
		if i, is := at[a.Name]; is {
			promotes(&list[i].Account, a.Account, l)
		}
	}
}

// takeFormer shows in a list which of its accounts a location still has as their primary, in an earlier epoch, while their
// present one has not reached it. During a planned failover it takes no writes of them.
func takeFormer(list, there []wire.AccountStatus, l geo.Location) {
	at := byName(list)
	for _, a := range there {
		i, is := at[a.Name]
		if !is || list[i].FailoverPhase != wire.FailoverTaken || list[i].Diverged {
			continue // A process of a location that has followed may be behind, and not know yet.
		}
		if a.Primary == l && list[i].Secondary == l && a.FailoverPhase == "" && !owns(l, a.Account, list[i].Account) {
			list[i].FormerEpoch = &a.Epoch
		}
	}
}

// byName returns where each account is in a list.
func byName(list []wire.AccountStatus) map[geo.Account]int {
	at := make(map[geo.Account]int, len(list))
	for i, a := range list {
		at[a.Name] = i
	}
	return at
}

// UpdateAccount changes an account. The primary of the account changes it.
func (b *Backend) UpdateAccount(ctx context.Context, name geo.Account, u wire.UpdateAccount) (wire.AccountUpdated, error) {
	a, err := known(ctx, b, func(ctx context.Context, l Location) (wire.Account, error) { return accountOf(ctx, l, name) })
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	a = b.atPrimary(ctx, a)
	if f := u.Failover; f != nil && f.Type == wire.FailoverEnd && !f.NotTaken {
		if out, err := b.endPromotion(ctx, a, u); err == nil {
			return out, nil
		}
	}
	at := a.Primary
	if f := u.Failover; f != nil && f.Type == wire.FailoverUnplanned {
		if at = f.To; at == "" {
			at = a.Secondary
		}
	}
	l, err := b.find(at)
	if err != nil {
		return wire.AccountUpdated{}, storageerr.InvalidInput.Saying(err.Error())
	}
	if f := u.Failover; f != nil && f.Type == wire.FailoverUnplanned {
		if why := unaware(ctx, l, a); why != "" && f.DryRun {
			return wire.AccountUpdated{AccountInfo: b.info(a), Refused: why}, nil
		} else if why != "" {
			return wire.AccountUpdated{}, storageerr.InvalidInput.Saying(why)
		}
	}
	if u.Rebuild && u.Force == "" {
		if err := b.waitsForClock(ctx, a); err != nil {
			return wire.AccountUpdated{}, err
		}
	}
	out, err := ask(ctx, l, &updateAccount, wire.At{Account: name}, u)
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	out.AccountInfo = b.info(out.Account)
	return out, nil
}

// unaware is why a location cannot become the primary of an account now: it still takes itself for the primary, of an epoch
// that is over, and does not know of the failover to the other one. Empty if it is not so, or that is not known.
func unaware(ctx context.Context, l Location, a wire.Account) string {
	ctx, cancel := context.WithTimeout(ctx, primaryWait)
	defer cancel()
	own, err := accountOf(ctx, l, a.Name)
	if err != nil || !behind(l.Name(), own, a) {
		return ""
	}
	return fmt.Sprintf("%s has not learned yet of the failover of account %s to %s, in epoch %s, and has epoch %s: "+
		"it can become the primary once it reaches %s, and its copy is whole; antipodectl why %s", l.Name(), a.Name, a.Primary, a.Epoch, own.Epoch, a.Primary, a.Name)
}

// behind reports whether a location takes itself for the primary of an account by its own record, while the account has a later
// primary.
func behind(l geo.Location, own, a wire.Account) bool {
	return a.Primary != l && own.Primary == l && geo.Epoch(own.Epoch).Compare(geo.Epoch(a.Epoch)) < 0
}

// clockWait bounds how long a rebuild waits for what the secondary says of its clock. Where it does not answer the primary
// refuses the rebuild.
const clockWait = 2 * time.Second

// waitsForClock refuses the rebuild of an account whose copy stands since the clocks of both locations disagree: its secondary
// knows. The copy lacks nothing that would not come once they agree.
func (b *Backend) waitsForClock(ctx context.Context, a wire.Account) error {
	l, err := b.find(a.Secondary)
	if err != nil {
		return nil //nolint:nilerr // This port does not reach it.
	}
	ctx, cancel := context.WithTimeout(ctx, clockWait)
	defer cancel()
	f, err := flowOf(ctx, l, a.Name)
	if err != nil {
		return nil //nolint:nilerr // The primary asks, too.
	}
	for _, s := range f.Services {
		if s.Reason == string(stats.Clock) {
			return &wire.Error{Status: http.StatusConflict, Code: wire.CodeClocks, Message: fmt.Sprintf(
				"could not rebuild account %s: its copy at %s stands since the clocks of the two locations disagree, and goes on once they agree: "+
					"docs/runbooks/clock-skew.md; antipodectl account rebuild %s --force %s deletes it all the same", a.Name, a.Secondary, a.Name, a.Name)}
		}
	}
	return nil
}

// endPromotion ends the unplanned failover of an account to its secondary. The primary knows of none.
func (b *Backend) endPromotion(ctx context.Context, a wire.Account, u wire.UpdateAccount) (out wire.AccountUpdated, err error) {
	l, err := b.find(a.Secondary)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	if out, err = ask(ctx, l, &updateAccount, wire.At{Account: a.Name}, u); err == nil {
		out.AccountInfo = b.info(out.Account)
	}
	return out, err
}

// update changes an account. The catalog's leader must be in this process.
func (l *Local) update(ctx context.Context, name geo.Account, u wire.UpdateAccount) (wire.AccountUpdated, error) {
	if f := u.Failover; f != nil && f.Type == wire.FailoverUnplanned {
		if err := location.CheckFailover(u); err != nil {
			return wire.AccountUpdated{}, err
		}
		return l.Location.Promote(ctx, name, *f)
	}
	a, behind, err := l.Location.UpdateAccount(ctx, name, u)
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	out := wire.AccountUpdated{AccountInfo: wire.AccountInfo{Account: location.DescribeAccount(a)}}
	if behind != nil {
		out.Behind = behind.Error()
	}
	return out, nil
}
