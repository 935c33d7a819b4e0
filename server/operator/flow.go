package operator

import (
	"context"
	"errors"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/flow"
	"antipode/services/storageerr"
)

// Flows are what the locations know of the streams of an account, or what one of them does.
func (b *Backend) Flows(ctx context.Context, name geo.Account, only geo.Location) (wire.Flows, error) {
	var out wire.Flows
	var errs []error
	missing := 0
	for i, a := range each(b, func(l Location) answer[wire.Flow] {
		if only != "" && l.Name() != only {
			return answer[wire.Flow]{err: errNotShown}
		}
		return answerOf(flowOf(ctx, l, name))
	}) {
		switch {
		case a.err == nil:
			out.Flows = append(out.Flows, a.value)
			continue
		case notFound(a.err):
			missing++
		}
		errs = append(errs, a.err)
		out.Silent = append(out.Silent, wire.SilentLocation{Location: b.o.Locations[i].Name(), Reason: reasonOf(a.err)})
	}
	switch {
	case len(out.Flows) > 0:
		return out, nil
	case missing > 0:
		return out, storageerr.AccountNotFound
	default:
		return out, errors.Join(errs...)
	}
}

// Lag computes from the Flows how far the secondary of an account is.
func (b *Backend) Lag(ctx context.Context, name geo.Account, q wire.LagQuery, only geo.Location) (wire.Lag, error) {
	all, err := b.Flows(ctx, name, only)
	if err != nil {
		return wire.Lag{}, err
	}
	return flow.Lag(name, all, q), nil
}

// Why computes from the Flows what holds Last Sync Time back. Zero as threshold means the default.
func (b *Backend) Why(ctx context.Context, name geo.Account, threshold time.Duration, only geo.Location) (wire.Why, error) {
	all, err := b.Flows(ctx, name, only)
	if err != nil {
		return wire.Why{}, err
	}
	out := flow.Why(name, all, threshold)
	b.explainUnheld(ctx, all, &out)
	return out, nil
}

// errNotShown is why a port of one location has no flow of the other.
var errNotShown = errors.New("this port shows one location alone")

// reasonOf words the error of a location that could not be asked.
func reasonOf(err error) string {
	var said *wire.Error
	if row, ours := storageerr.Of(err); ours {
		return row.Message
	}
	if errors.As(err, &said) {
		return said.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}

// flowOf is what a location knows of the streams of an account.
func flowOf(ctx context.Context, l Location, name geo.Account) (wire.Flow, error) {
	out, err := ask(ctx, l, &showFlows, wire.At{Account: name}, wire.None{})
	if err != nil || len(out.Flows) != 1 {
		return wire.Flow{}, err
	}
	return out.Flows[0], nil
}
