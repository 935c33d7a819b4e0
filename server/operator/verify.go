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
	return l.StartVerify(ctx, name, q)
}

// Verify implements api/admin.Cluster.
func (b *Backend) Verify(ctx context.Context, name geo.Account) (wire.Verify, error) {
	l, err := b.primaryOf(ctx, name)
	if err != nil {
		return wire.Verify{}, err
	}
	return l.Verify(ctx, name)
}

// primaryOf returns the primary location of an account, as the latest epoch that is known here has it.
func (b *Backend) primaryOf(ctx context.Context, name geo.Account) (Location, error) {
	var found wire.Account
	var failed error
	for _, a := range each(b, func(l Location) answer[wire.Account] { return answerOf(l.Account(ctx, name)) }) {
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

// StartVerify implements Location.
func (l *Local) StartVerify(ctx context.Context, name geo.Account, q wire.VerifyQuery) (wire.Verify, error) {
	return l.Location.StartVerify(ctx, name, q)
}

// Verify implements Location.
func (l *Local) Verify(_ context.Context, name geo.Account) (wire.Verify, error) {
	return l.Location.Verified(name)
}

// StartVerify implements Location: the first node that can be reached compares.
func (r *Remote) StartVerify(ctx context.Context, name geo.Account, q wire.VerifyQuery) (wire.Verify, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.Verify, error) { return c.StartVerify(ctx, name, q) })
}

// Verify implements Location: it asks the node that StartVerify would ask.
func (r *Remote) Verify(ctx context.Context, name geo.Account) (wire.Verify, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.Verify, error) { return c.Verify(ctx, name) })
}
