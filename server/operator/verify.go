package operator

import (
	"context"
	"net/http"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

// StartVerify implements api/admin.Cluster. The location of the primary compares.
func (b *Backend) StartVerify(ctx context.Context, name geo.Account, q wire.VerifyQuery) (wire.Verify, error) {
	l, err := b.primaryOf(ctx, name)
	if err != nil {
		return wire.Verify{}, err
	}
	return ask(ctx, l, &startVerify, wire.At{Account: name}, q)
}

// Verify implements api/admin.Cluster.
func (b *Backend) Verify(ctx context.Context, name geo.Account) (wire.Verify, error) {
	l, err := b.primaryOf(ctx, name)
	if err != nil {
		return wire.Verify{}, err
	}
	return ask(ctx, l, &showVerify, wire.At{Account: name}, wire.None{})
}

// primaryOf returns the primary location of an account, as the latest epoch that is known here has it.
func (b *Backend) primaryOf(ctx context.Context, name geo.Account) (Location, error) {
	var found wire.Account
	var failed error
	for _, a := range each(b, func(l Location) answer[wire.Account] { return answerOf(accountOf(ctx, l, name)) }) {
		switch {
		case a.err == nil && a.value.Epoch.Number >= found.Epoch.Number:
			found = a.value
		case a.err != nil && (failed == nil || notFound(failed)):
			failed = a.err
		}
	}
	switch {
	case found.Name == "" && failed == nil:
		return nil, storageerr.AccountNotFound
	case found.Name == "":
		return nil, failed
	}
	l, err := b.find(found.Primary)
	if err != nil {
		return nil, &wire.Error{
			Status: http.StatusConflict, Code: wire.CodeAskPrimary,
			Message: "the primary location of the account compares, and this port does not reach it: ask an admin port of " + string(found.Primary) + ", or of the gateway",
		}
	}
	return l, nil
}
