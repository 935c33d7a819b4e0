package operator

import (
	"cmp"
	"context"
	"encoding/base64"
	"log/slog"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

var (
	listAccounts = operation[wire.None, wire.AccountList]{
		Call: wire.CallAccounts,
		here: func(ctx context.Context, l *Local, _ wire.At, _ wire.None) (wire.AccountList, error) {
			return l.accounts(ctx)
		},
	}
	showAccount = operation[wire.None, wire.AccountInfo]{
		Call: wire.CallAccount,
		here: func(ctx context.Context, l *Local, at wire.At, _ wire.None) (wire.AccountInfo, error) {
			return l.account(ctx, at.Account)
		},
	}
	showKeys = operation[wire.None, wire.Keys]{
		Call: wire.CallKeys,
		here: func(ctx context.Context, l *Local, at wire.At, _ wire.None) (wire.Keys, error) {
			return l.keys(ctx, at.Account)
		},
	}
	createAccount = operation[wire.NewAccount, wire.AccountInfo]{
		Call: wire.CallCreateAccount, place: catalogLeader,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.NewAccount) (wire.AccountInfo, error) {
			return described(l.Location.CreateAccount(ctx, in))
		},
	}
	updateAccount = operation[wire.UpdateAccount, wire.AccountUpdated]{
		Call: wire.CallUpdateAccount, place: catalogLeader,
		here: func(ctx context.Context, l *Local, at wire.At, in wire.UpdateAccount) (wire.AccountUpdated, error) {
			return l.update(ctx, at.Account, in)
		},
	}
)

func accountCalls() []call {
	return []call{
		answered(&listAccounts, port[wire.None, wire.AccountList]{
			verb: "list", what: saying[wire.None]("the accounts"), show: showAccounts,
			do: func(ctx context.Context, b *Backend, _ asked, _ wire.None) (wire.AccountList, error) {
				all, err := b.Accounts(ctx)
				return wire.AccountList{Accounts: all}, err
			},
		}),
		answered(&showAccount, port[wire.None, wire.AccountInfo]{
			verb: "find", what: anAccount[wire.None], scope: ofKnownAccount,
			do: func(_ context.Context, _ *Backend, q asked, _ wire.None) (wire.AccountInfo, error) {
				return q.Account, nil
			},
		}),
		answered(&showKeys, port[wire.None, wire.Keys]{
			verb: "read the keys of", what: anAccount[wire.None], scope: ofKnownAccount,
			do: func(ctx context.Context, b *Backend, q asked, _ wire.None) (wire.Keys, error) {
				return b.Keys(ctx, q.At.Account)
			},
		}),
		answered(&createAccount, port[wire.NewAccount, wire.AccountInfo]{
			verb: "create", what: newAccount, wrong: wrongAccount, creates: true,
			owner: func(_ asked, in wire.NewAccount) geo.Location { return in.Location },
			do: func(ctx context.Context, b *Backend, _ asked, in wire.NewAccount) (wire.AccountInfo, error) {
				return b.CreateAccount(ctx, in)
			},
			log: func(l *slog.Logger, _ asked, _ wire.NewAccount, a wire.AccountInfo) {
				l.Info("account created", "account", a.Name, "primary", a.Primary, "secondary", a.Secondary, "redundancy", a.Redundancy)
			},
			show: func(_ asked, a wire.AccountInfo) wire.AccountInfo {
				a.Endpoints = list(a.Endpoints)
				return a
			},
		}),
		// A port of a location changes the accounts whose primary it is.
		answered(&updateAccount, port[wire.UpdateAccount, wire.AccountUpdated]{
			verb: "update", what: anAccount[wire.UpdateAccount], scope: ofKnownAccount, log: logUpdate,
			owner: func(q asked, _ wire.UpdateAccount) geo.Location { return q.Account.Primary },
			do: func(ctx context.Context, b *Backend, q asked, in wire.UpdateAccount) (wire.AccountUpdated, error) {
				return b.UpdateAccount(ctx, q.At.Account, in)
			},
			show: func(_ asked, a wire.AccountUpdated) wire.AccountUpdated {
				a.Endpoints = list(a.Endpoints)
				return a
			},
		}),
	}
}

// showAccounts lists the accounts of the port's location, or all, by name.
func showAccounts(q asked, all wire.AccountList) wire.AccountList {
	out := wire.AccountList{Accounts: []wire.AccountInfo{}}
	for _, a := range all.Accounts {
		if concerns(a.Account, q.Scope) {
			a.Endpoints = list(a.Endpoints)
			out.Accounts = append(out.Accounts, a)
		}
	}
	slices.SortFunc(out.Accounts, func(x, y wire.AccountInfo) int { return cmp.Compare(x.Name, y.Name) })
	return out
}

// shown is the account that a question names. One outside the port's scope does not exist for it.
func (b *Backend) shown(ctx context.Context, q asked) (wire.AccountInfo, error) {
	a, err := b.Account(ctx, q.At.Account)
	if err == nil && !concerns(a.Account, q.Scope) {
		err = storageerr.AccountNotFound
	}
	a.Endpoints = list(a.Endpoints)
	return a, err
}

// newAccount is what messages name of an account that is to be.
func newAccount(_ wire.At, in wire.NewAccount) string {
	if in.Location == "" {
		return theAccount(in.Name)
	}
	return theAccount(in.Name) + " at " + string(in.Location)
}

// wrongAccount says what is wrong with an account that is to be.
func wrongAccount(in *wire.NewAccount) string {
	switch {
	case !in.Name.Valid():
		return "the name needs 3 to 24 lower-case letters and digits"
	case in.Location == "":
		return "no location was given: name the one that becomes its primary"
	case !validKey(in.Key1) || !validKey(in.Key2):
		return "a key must be base64, or left out to have one made"
	}
	return ""
}

// validKey takes base64 and the empty key that asks for a new one.
func validKey(k string) bool {
	_, err := base64.StdEncoding.Strict().DecodeString(k)
	return err == nil
}

func logUpdate(l *slog.Logger, q asked, in wire.UpdateAccount, out wire.AccountUpdated) {
	if in.Failover != nil {
		l.Info("failover of an account", "account", q.At.Account, "type", in.Failover.Type, "from", out.Primary, "to", out.Secondary)
		return
	}
	l.Info("account updated", "account", q.At.Account, "redundancy", out.Redundancy, "before", q.Account.Redundancy,
		"rebuild", in.Rebuild, "when_late", in.WhenLate, "behind", out.Behind)
}
