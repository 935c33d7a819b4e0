package operator

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

var (
	showVerify = operation[wire.None, wire.Verify]{
		Call: wire.CallVerify, asksOne: true,
		here: func(_ context.Context, l *Local, at wire.At, _ wire.None) (wire.Verify, error) {
			return l.Location.Verified(at.Account)
		},
	}
	startVerify = operation[wire.VerifyQuery, wire.Verify]{
		Call: wire.CallStartVerify,
		here: func(ctx context.Context, l *Local, at wire.At, in wire.VerifyQuery) (wire.Verify, error) {
			return l.Location.StartVerify(ctx, at.Account, in)
		},
	}
)

func verifyCalls() []call {
	return []call{
		answered(&startVerify, port[wire.VerifyQuery, wire.Verify]{
			verb: "verify", what: anAccount[wire.VerifyQuery], scope: ofAccount, wrong: wrongVerify, show: showComparison,
			do: func(ctx context.Context, b *Backend, q asked, in wire.VerifyQuery) (wire.Verify, error) {
				return b.StartVerify(ctx, q.At.Account, in)
			},
			log: func(l *slog.Logger, q asked, in wire.VerifyQuery, _ wire.Verify) {
				l.Info("both copies of an account are compared", "account", q.At.Account, "service", in.Service, "payload", in.Payload, "repair", in.Repair)
			},
		}),
		answered(&showVerify, port[wire.None, wire.Verify]{ // It names what is stored.
			verb: "show the comparison of", what: anAccount[wire.None], scope: ofAccount, show: showComparison,
			do: func(ctx context.Context, b *Backend, q asked, _ wire.None) (wire.Verify, error) {
				return b.Verify(ctx, q.At.Account)
			},
		}),
	}
}

// wrongVerify says what is wrong with a comparison that is asked for.
func wrongVerify(q *wire.VerifyQuery) string {
	if s, err := geo.ParseService(q.Service); q.Service != "" && (err != nil || s == geo.Catalog) {
		return fmt.Sprintf("the service is blob, queue or table, not %q", q.Service)
	}
	tooSlow := func(rate uint64) bool { return rate > 0 && rate < wire.VerifyRateMin }
	if tooSlow(q.BytesPerSecond) || tooSlow(q.RepairBytesPerSecond) {
		return fmt.Sprintf("a rate is at least %d bytes per second: nothing ends a comparison before its end", wire.VerifyRateMin)
	}
	return ""
}

// showComparison replaces nil slices.
func showComparison(_ asked, v wire.Verify) wire.Verify {
	v.Ranges, v.Differences = list(slices.Clone(v.Ranges)), list(v.Differences)
	for i := range v.Ranges {
		v.Ranges[i].NotCompared = list(v.Ranges[i].NotCompared)
	}
	return v
}

// StartVerify begins to compare both copies of an account. The location of the primary compares.
func (b *Backend) StartVerify(ctx context.Context, name geo.Account, q wire.VerifyQuery) (wire.Verify, error) {
	l, err := b.primaryOf(ctx, name)
	if err != nil {
		return wire.Verify{}, err
	}
	return ask(ctx, l, &startVerify, wire.At{Account: name}, q)
}

// Verify is the last comparison of an account.
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
