package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

var (
	listNames = operation[wire.NamesQuery, wire.Names]{
		Call: wire.CallNames,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.NamesQuery) (wire.Names, error) {
			return l.Location.Names(ctx, in.Since, in.After)
		},
	}
	listReservations = operation[wire.None, wire.Reservations]{
		Call: wire.CallReservations,
		here: func(ctx context.Context, l *Local, _ wire.At, _ wire.None) (wire.Reservations, error) {
			return l.reservations(ctx)
		},
	}
	freeReservation = operation[wire.None, wire.Reservations]{
		Call: wire.CallFreeReservation,
		here: func(ctx context.Context, l *Local, at wire.At, _ wire.None) (wire.Reservations, error) {
			return l.free(ctx, at.Account)
		},
	}
)

func nameCalls() []call {
	return []call{
		answered(&listNames, port[wire.NamesQuery, wire.Names]{
			verb: "list", what: func(at wire.At, _ wire.NamesQuery) string {
				return fmt.Sprintf("the names of location %q", at.Location)
			},
			scope: ofLocation, wrong: wrongNames,
			show: func(_ asked, out wire.Names) wire.Names {
				out.Names = list(out.Names)
				return out
			},
		}),
		answered(&listReservations, port[wire.None, wire.Reservations]{
			verb: "list", what: saying[wire.None]("the reservations"), show: showReservations,
			do: func(ctx context.Context, b *Backend, _ asked, _ wire.None) (wire.Reservations, error) {
				return b.Reservations(ctx)
			},
		}),
		// A port of a location frees there alone.
		answered(&freeReservation, port[wire.None, wire.Reservations]{
			verb: "free", what: anAccount[wire.None], do: freed, show: showReservations,
			log: func(l *slog.Logger, q asked, _ wire.None, out wire.Reservations) {
				l.Warn("name freed by an operator", "account", q.At.Account, "records", len(out.Reservations), "silent_locations", out.SilentLocations)
			},
		}),
	}
}

// sinceMax bounds a version in a query, in bytes.
const sinceMax = 64

func wrongNames(q *wire.NamesQuery) string {
	if len(q.Since) > sinceMax || q.After != "" && !q.After.Valid() {
		return "since is a version that was answered before, and after a name of an account"
	}
	return ""
}

// codeNoReservation: no creation of the name waits.
const codeNoReservation = "ReservationNotFound"

// freed gives up the creation of a name.
func freed(ctx context.Context, b *Backend, q asked, _ wire.None) (wire.Reservations, error) {
	var out wire.Reservations
	var err error
	if q.At.Account.Valid() {
		out, err = b.FreeReservation(ctx, q.At.Account, q.Scope)
	}
	if err == nil && len(out.Reservations) == 0 && len(out.SilentLocations) == 0 {
		err = &wire.Error{
			Status: http.StatusNotFound, Code: codeNoReservation,
			Message: "could not free " + theAccount(q.At.Account) + ": no creation of that name waits here: antipodectl account reservations lists them",
		}
	}
	return out, err
}

// showReservations lists those of the port's location, or all, by name.
func showReservations(q asked, r wire.Reservations) wire.Reservations {
	r.Reservations, r.SilentLocations = list(slices.Clone(r.Reservations)), list(r.SilentLocations)
	r.Reservations = slices.DeleteFunc(r.Reservations, func(r wire.Reservation) bool { return !q.Shows(r.Location) })
	slices.SortFunc(r.Reservations, func(x, y wire.Reservation) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Location, y.Location))
	})
	return r
}

// Reservations are those of the locations that answer.
func (b *Backend) Reservations(ctx context.Context) (wire.Reservations, error) {
	var out wire.Reservations
	var errs []error
	for i, a := range each(b, func(l Location) answer[wire.Reservations] {
		return answerOf(ask(ctx, l, &listReservations, wire.At{}, wire.None{}))
	}) {
		if a.err != nil {
			errs = append(errs, a.err)
			out.SilentLocations = append(out.SilentLocations, b.o.Locations[i].Name())
			continue
		}
		out.Reservations = append(out.Reservations, a.value.Reservations...)
	}
	if len(errs) == len(b.o.Locations) {
		return wire.Reservations{}, errors.Join(errs...)
	}
	for i := range out.Reservations {
		out.Reservations[i].Waits = b.waits(ctx, out.Reservations[i], out)
	}
	return out, nil
}

// waits says what a creation waits for, as seen from one of its records.
func (b *Backend) waits(ctx context.Context, r wire.Reservation, all wire.Reservations) string {
	i := slices.IndexFunc(all.Reservations, func(o wire.Reservation) bool { return o.Name == r.Name && o.Location != r.Location })
	again := fmt.Sprintf("antipodectl account create %s --location %s continues it", r.Name, r.Primary)
	switch {
	case len(all.SilentLocations) > 0:
		return fmt.Sprintf("location %s does not answer", all.SilentLocations[0])
	case i < 0 && b.complete(ctx, r.Name):
		return "the account is complete elsewhere: its record is on the way"
	case i < 0 && r.Kind == wire.KindCreation:
		return "the reservation at the other location: " + again
	case i < 0:
		return "nothing: the creation at " + string(r.Primary) + " is gone"
	case all.Reservations[i].Epoch != r.Epoch:
		return fmt.Sprintf("a decision: %s holds another creation; the next creation takes the name", all.Reservations[i].Location)
	default:
		return "its completion at " + string(r.Primary) + ": " + again
	}
}

// complete reports whether a location knows the account.
func (b *Backend) complete(ctx context.Context, name geo.Account) bool {
	return slices.Contains(each(b, func(l Location) bool {
		_, err := accountOf(ctx, l, name)
		return err == nil
	}), true)
}

// FreeReservation gives up the creation of a name that has not ended, at every location or at one. The creation is freed first: then it never
// completes. An account that is complete at any location is refused.
func (b *Backend) FreeReservation(ctx context.Context, name geo.Account, only geo.Location) (wire.Reservations, error) {
	if b.complete(ctx, name) {
		return wire.Reservations{}, storageerr.AccountAlreadyExists.Saying(fmt.Sprintf(
			"account %s is complete: only a name whose creation has not ended can be freed", name))
	}
	all, err := b.Reservations(ctx)
	if err != nil {
		return wire.Reservations{}, err
	}
	out := wire.Reservations{SilentLocations: all.SilentLocations}
	for _, kind := range []string{wire.KindCreation, wire.KindReservation} {
		for _, r := range all.Reservations {
			if r.Name != name || r.Kind != kind || only != "" && r.Location != only {
				continue
			}
			freed, err := at(ctx, b, &freeReservation, wire.At{Account: name, Location: r.Location}, wire.None{})
			if err != nil {
				return out, err
			}
			if len(freed.Reservations) > 0 {
				out.Reservations = append(out.Reservations, r)
			}
		}
	}
	return out, nil
}

// reservations lists what the location holds of accounts whose creation has not ended.
func (l *Local) reservations(ctx context.Context) (wire.Reservations, error) {
	list, err := l.Location.Incomplete(ctx)
	return l.describeReservations(list...), err
}

// free gives up one of them.
func (l *Local) free(ctx context.Context, name geo.Account) (wire.Reservations, error) {
	a, err := l.Location.Free(ctx, name)
	if a == nil {
		return wire.Reservations{}, err
	}
	return l.describeReservations(a), err
}

func (l *Local) describeReservations(list ...*catalog.Account) (out wire.Reservations) {
	for _, a := range list {
		out.Reservations = append(out.Reservations, l.reservation(a))
	}
	return out
}

func (l *Local) reservation(a *catalog.Account) wire.Reservation {
	out := wire.Reservation{
		Name: a.Name, Location: l.Location.Location(), Kind: wire.KindCreation, Primary: a.Primary, Epoch: wire.EpochOf(a.GeoEpoch()),
		Created: wire.Time{Time: a.Created.Time()}, Since: wire.Time{Time: a.Created.Time()},
	}
	if a.Reserved != 0 {
		out.Kind, out.Since = wire.KindReservation, wire.Time{Time: a.Reserved.Time()}
	}
	out.AgeSeconds = max(0, l.Clock.Now().Sub(out.Since.Time).Seconds())
	return out
}
