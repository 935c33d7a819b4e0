package operator

import (
	"context"
	"errors"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Accounts lists all accounts. It lists the accounts that any location knows: a new
// account is known at one location first, and a change at its primary.
func (b *Backend) Accounts(ctx context.Context) ([]wire.AccountInfo, error) {
	var out []wire.AccountInfo
	var errs []error
	known := map[geo.Account]int{}
	answers := each(b, func(l Location) answer[[]wire.Account] { return answerOf(accountsOf(ctx, l)) })
	for i, a := range answers {
		errs = append(errs, a.err)
		for _, account := range a.value {
			at, is := known[account.Name]
			if !is {
				known[account.Name] = len(out)
				out = append(out, b.info(account))
			} else if owns(b.o.Locations[i].Name(), account, out[at].Account) {
				out[at] = b.info(account)
			}
		}
	}
	for i, a := range answers { // Once all have what they are at their primary, which knows of no promotion.
		for _, account := range a.value {
			promotes(&out[known[account.Name]].Account, account, b.o.Locations[i].Name())
		}
	}
	answered := make([][]wire.Account, len(answers))
	for i, a := range answers {
		answered[i] = a.value
	}
	of := b.allRecords(answered)
	for i := range out {
		if latest, is := b.withoutPrimary(ctx, of[out[i].Name]); is {
			out[i] = b.info(latest)
		}
	}
	if len(out) == 0 {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// accountsOf are the accounts of a location's catalog.
func accountsOf(ctx context.Context, l Location) ([]wire.Account, error) {
	list, err := ask(ctx, l, &listAccounts, wire.At{}, wire.None{})
	out := make([]wire.Account, 0, len(list.Accounts))
	for _, a := range list.Accounts {
		out = append(out, a.Account)
	}
	return out, err
}

// accountOf is an account as a location's catalog has it.
func accountOf(ctx context.Context, l Location, name geo.Account) (wire.Account, error) {
	a, err := ask(ctx, l, &showAccount, wire.At{Account: name}, wire.None{})
	return a.Account, err
}
