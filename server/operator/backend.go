package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	apiadmin "antipode/api/admin"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/server/location"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// Location is a location as the process reaches it. Methods may be called concurrently and
// end when their context does.
type Location interface {
	Name() geo.Location
	// Status describes the location, its end of the link, and the accounts it knows.
	Status(ctx context.Context) (Status, error)
	// Events returns the event log; what cannot be reached is missing, and named.
	Events(ctx context.Context) wire.EventList
	// Readiness says how far the location is. With Serving set, and neither Ready nor a
	// Reason, whether the location is ready is for the accounts of all locations to say.
	Readiness(ctx context.Context) wire.LocationReadiness

	// Accounts, Account and Keys read the location's catalog.
	Accounts(ctx context.Context) ([]wire.Account, error)
	Account(ctx context.Context, name geo.Account) (wire.Account, error)
	Keys(ctx context.Context, name geo.Account) (wire.Keys, error)
	// CreateAccount makes an account whose primary is this location.
	CreateAccount(ctx context.Context, a wire.NewAccount) (wire.Account, error)

	// Flow returns what the location knows of the streams of an account.
	Flow(ctx context.Context, name geo.Account) (wire.Flow, error)

	// UpdateAccount changes the redundancy of an account whose primary is this location.
	UpdateAccount(ctx context.Context, name geo.Account, u wire.UpdateAccount) (wire.AccountUpdated, error)

	// Names returns a page of what the location's catalog has of the names of accounts.
	Names(ctx context.Context, q wire.NamesQuery) (wire.Names, error)

	// Support returns what the process of a node knows of itself.
	Support(ctx context.Context, id geo.NodeID) (wire.Support, error)

	// CopyAlone counts what the location's copy of an account has that its primary does not, or has otherwise.
	CopyAlone(ctx context.Context, q wire.AloneQuery) (wire.CopyAlone, error)

	// Forks lists the streams that may not go on, as the location keeps them.
	Forks(ctx context.Context) (wire.Forks, error)

	// StartVerify begins to compare both copies of an account whose primary is this location. Verify
	// returns the last comparison of an account.
	StartVerify(ctx context.Context, name geo.Account, q wire.VerifyQuery) (wire.Verify, error)
	Verify(ctx context.Context, name geo.Account) (wire.Verify, error)

	// OpenClone, Clone and DropClone are of the clone of an account whose secondary is this location.
	OpenClone(ctx context.Context, name geo.Account, q wire.OpenClone) (wire.Clone, error)
	Clone(ctx context.Context, name geo.Account) (wire.Clone, error)
	DropClone(ctx context.Context, name geo.Account) (wire.Clone, error)

	// Reservations lists what the location holds of accounts whose creation has not ended.
	// FreeReservation gives up one of them.
	Reservations(ctx context.Context) ([]wire.Reservation, error)
	FreeReservation(ctx context.Context, name geo.Account) (freed bool, err error)

	// The operations are those of api/admin.Cluster.
	StartNode(ctx context.Context, id geo.NodeID) error
	StopNode(ctx context.Context, id geo.NodeID) error
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	RecoverRange(ctx context.Context, id geo.RangeID, in wire.RecoverRange) (wire.RangeRecovered, error)
	ResumeStream(ctx context.Context, s wire.StreamName) (wire.Resumed, error)
	SetLink(ctx context.Context, l wire.Link) error
	OverrideEpochs(ctx context.Context) (wire.Epochs, error)
	RaiseLevels(ctx context.Context, to wire.Levels) (wire.Levels, error)
	LocationFailover(ctx context.Context) (wire.LocationFailover, error)
	FailLocationOver(ctx context.Context, f wire.Failover) (wire.LocationFailover, error)

	ResolveFork(ctx context.Context, q wire.ResolveFork) (wire.ForkResolved, error)
	Found(ctx context.Context, q wire.FoundQuery) (wire.Found, error)
	FoundPayload(ctx context.Context, q wire.FoundChunk) (wire.FoundPayload, error)
	DropFound(ctx context.Context, q wire.DropFound) (wire.FoundDropped, error)
	Lost(ctx context.Context, q wire.LostQuery) (wire.Lost, error)
	DropLost(ctx context.Context, q wire.DropLost) (wire.LostDropped, error)
}

// Options configures a Backend. Clock, Locations and Endpoints are required.
type Options struct {
	Clock clock.Clock
	// Locations are listed in this order.
	Locations []Location
	// Endpoints is where the process serves accounts, host:port by service.
	Endpoints func(geo.Service) string
	// Development: see Process of client/admin.
	Development bool
	// Draining reports whether the process is going to stop, where its locations do not say so. Nil means that it is not.
	Draining func() bool
	// NotReady is what else keeps a location from being ready; empty for nothing. Nil means nothing.
	NotReady func(geo.Location) string
	// Support returns what the process knows of itself. Nil means that it shows nothing.
	Support func() wire.Support
}

// Backend implements api/admin.Cluster. Methods may be called concurrently.
type Backend struct {
	o       Options
	started time.Time
}

var _ apiadmin.Cluster = (*Backend)(nil)

// New returns the backend of a process that starts now.
func New(o Options) *Backend { return &Backend{o: o, started: o.Clock.Now()} }

// find returns a location.
func (b *Backend) find(name geo.Location) (Location, error) {
	var names []string
	for _, l := range b.o.Locations {
		if l.Name() == name {
			return l, nil
		}
		names = append(names, string(l.Name()))
	}
	if len(names) == 1 {
		return nil, fmt.Errorf("there is no location %q here: this port shows %s alone; ask a gateway, which shows both", name, names[0])
	}
	return nil, fmt.Errorf("there is no location %q here: this process serves %s", name, strings.Join(names, " and "))
}

// answer is what a location returned.
type answer[T any] struct {
	value T
	err   error
}

func answerOf[T any](v T, err error) answer[T] { return answer[T]{v, err} }

// each asks all locations at once and returns the answers in their order.
func each[T any](b *Backend, ask func(Location) T) []T {
	out := make([]T, len(b.o.Locations))
	var asked sync.WaitGroup
	for i, l := range b.o.Locations {
		asked.Go(func() { out[i] = ask(l) })
	}
	asked.Wait()
	return out
}

// Status implements api/admin.Cluster.
func (b *Backend) Status(ctx context.Context) (wire.Status, error) {
	out := wire.Status{
		Process: wire.Process{
			PID: os.Getpid(), StartedAt: wire.Time{Time: b.started}, UptimeSeconds: b.o.Clock.Now().Sub(b.started).Seconds(),
			Development: b.o.Development,
		},
		Link: wire.Link{State: wire.LinkUp},
	}
	answers := each(b, func(l Location) answer[Status] { return answerOf(l.Status(ctx)) })
	for i, a := range answers {
		if a.err != nil {
			return out, fmt.Errorf("location %s: %w", b.o.Locations[i].Name(), a.err)
		}
		out.Locations = append(out.Locations, a.value.Location)
		out.Link = mergeLinks(out.Link, a.value.Link)
		out.Accounts = mergeAccounts(out.Accounts, a.value.Accounts)
		takeOwn(out.Accounts, a.value.Accounts, b.o.Locations[i].Name())
	}
	for i, a := range answers { // Once all have what they are at their primary, which knows of no promotion.
		takePromotions(out.Accounts, a.value.Accounts, b.o.Locations[i].Name())
		takeFormer(out.Accounts, a.value.Accounts, b.o.Locations[i].Name())
	}
	b.nameUnheld(ctx, out.Accounts, answers)
	return out, nil
}

// Events implements api/admin.Cluster.
func (b *Backend) Events(ctx context.Context) (out wire.EventList) {
	for _, l := range each(b, func(l Location) wire.EventList { return l.Events(ctx) }) {
		out.Events, out.Silent = append(out.Events, l.Events...), append(out.Silent, l.Silent...)
	}
	return out
}

// readiness is that of a location by itself, as far as nothing else keeps it from being ready.
func (b *Backend) readiness(ctx context.Context, l Location) wire.LocationReadiness {
	out := l.Readiness(ctx)
	if b.o.NotReady != nil && out.Reason == "" {
		out.Reason = b.o.NotReady(l.Name())
		out.Ready = out.Ready && out.Reason == ""
	}
	return out
}

// Ready implements api/admin.Cluster.
func (b *Backend) Ready(ctx context.Context) []wire.LocationReadiness {
	out := each(b, func(l Location) wire.LocationReadiness { return b.readiness(ctx, l) })
	if b.o.Draining != nil && b.o.Draining() {
		for i := range out {
			out[i].Ready, out[i].Reason = false, "the process that answers is going to stop, and drains"
		}
		return out
	}
	undecided := func(r wire.LocationReadiness) bool { return r.Serving && !r.Ready && r.Reason == "" }
	if !slices.ContainsFunc(out, undecided) {
		return out
	}
	s, err := b.Status(ctx)
	for i := range out {
		r := &out[i]
		switch {
		case !undecided(*r):
			continue
		case err != nil:
			r.Reason = err.Error()
		default:
			r.Reason = notReady(s.Locations[i], s.Accounts)
		}
		r.Ready = r.Reason == ""
	}
	return out
}

// notReady says why a location that serves is not ready; "" if it is.
func notReady(l wire.Location, accounts []wire.AccountStatus) string {
	if l.State != wire.Running {
		return "no node of the location runs and answers; see antipodectl status"
	}
	for _, r := range l.Ranges {
		if r.LeaderView == nil {
			return "the " + r.Service + " range has no leader yet"
		}
	}
	return location.NotLive(l.Name, accounts)
}

// info adds the endpoints of the process to an account.
func (b *Backend) info(a wire.Account) wire.AccountInfo {
	out := wire.AccountInfo{Account: a}
	for _, s := range geo.Services {
		base := "http://" + b.o.Endpoints(s) + "/" + string(a.Name)
		e := wire.Endpoint{Service: s.String(), Primary: base}
		if catalog.Redundancy(a.Redundancy).Readable() {
			e.Secondary = base + geo.SecondarySuffix
		}
		out.Endpoints = append(out.Endpoints, e)
	}
	return out
}

// Account implements api/admin.Cluster.
func (b *Backend) Account(ctx context.Context, name geo.Account) (wire.AccountInfo, error) {
	a, err := known(ctx, b, func(ctx context.Context, l Location) (wire.Account, error) { return l.Account(ctx, name) })
	if err != nil {
		return wire.AccountInfo{}, err
	}
	return b.info(b.atPrimary(ctx, a)), nil
}

// Keys implements api/admin.Cluster.
func (b *Backend) Keys(ctx context.Context, name geo.Account) (wire.Keys, error) {
	return known(ctx, b, func(ctx context.Context, l Location) (wire.Keys, error) { return l.Keys(ctx, name) })
}

// known returns the first answer of a location that knows the account. It asks all locations at
// once, because a location that hangs uses up the whole time of the call. A location that answers
// AccountNotFound outweighs locations that do not answer.
func known[T any](ctx context.Context, b *Backend, ask func(context.Context, Location) (T, error)) (T, error) {
	var asked sync.WaitGroup
	defer asked.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer[T], len(b.o.Locations))
	for _, l := range b.o.Locations {
		asked.Go(func() { answers <- answerOf(ask(ctx, l)) })
	}
	var none T
	var err error
	for range b.o.Locations {
		a := <-answers
		if a.err == nil {
			return a.value, nil
		}
		if !notFound(err) {
			err = a.err
		}
	}
	return none, err
}

func notFound(err error) bool {
	var said *wire.Error
	return errors.Is(err, storageerr.AccountNotFound) || errors.As(err, &said) && said.Code == storageerr.AccountNotFound.Code
}

// CreateAccount implements api/admin.Cluster.
func (b *Backend) CreateAccount(ctx context.Context, n wire.NewAccount) (wire.AccountInfo, error) {
	l, err := b.find(n.Location)
	if err != nil {
		return wire.AccountInfo{}, storageerr.InvalidInput.Saying(err.Error())
	}
	a, err := l.CreateAccount(ctx, n)
	if err != nil {
		return wire.AccountInfo{}, err
	}
	return b.info(a), nil
}

// StartNode implements api/admin.Cluster.
func (b *Backend) StartNode(ctx context.Context, l geo.Location, id geo.NodeID) error {
	return b.atNode(l, id, func(l Location) error { return l.StartNode(ctx, id) })
}

// StopNode implements api/admin.Cluster.
func (b *Backend) StopNode(ctx context.Context, l geo.Location, id geo.NodeID) error {
	return b.atNode(l, id, func(l Location) error { return l.StopNode(ctx, id) })
}

// StartLocation implements api/admin.Cluster.
func (b *Backend) StartLocation(ctx context.Context, l geo.Location) error {
	return b.at(l, func(l Location) error { return l.Start(ctx) })
}

// StopLocation implements api/admin.Cluster.
func (b *Backend) StopLocation(ctx context.Context, l geo.Location) error {
	return b.at(l, func(l Location) error { return l.Stop(ctx) })
}

// RecoverRange implements api/admin.Cluster.
func (b *Backend) RecoverRange(ctx context.Context, l geo.Location, id geo.RangeID, in wire.RecoverRange) (out wire.RangeRecovered, err error) {
	err = b.at(l, func(l Location) (err error) {
		out, err = l.RecoverRange(ctx, id, in)
		return err
	})
	return out, err
}

// at runs an operation on a location.
func (b *Backend) at(name geo.Location, operate func(Location) error) error {
	l, err := b.find(name)
	if err != nil {
		return storageerr.InvalidInput.Saying(err.Error())
	}
	return operate(l)
}

// atNode runs an operation on a node of a location, which the location looks for.
func (b *Backend) atNode(name geo.Location, id geo.NodeID, operate func(Location) error) error {
	l, err := b.find(name)
	if err != nil {
		return wire.NoNode(name, id)
	}
	return operate(l)
}

// SetLink implements api/admin.Cluster. The link has an end at each location.
func (b *Backend) SetLink(ctx context.Context, to wire.Link) error {
	errs := each(b, func(l Location) error {
		if err := l.SetLink(ctx, to); err != nil {
			return fmt.Errorf("location %s: %w", l.Name(), err)
		}
		return nil
	})
	err := errors.Join(errs...)
	for i, of := range errs {
		if err != nil && of == nil { // One end is enough to cut it, and to delay what passes.
			err = adding(err, fmt.Sprintf("; the end at location %s was changed, and is %s", b.o.Locations[i].Name(), to.State))
		}
	}
	return err
}

// adding returns an error with a text behind its own. The answer of a node, whose message is shown alone, gets it there.
func adding(err error, text string) error {
	var said *wire.Error
	if errors.As(err, &said) {
		return &wire.Error{Status: said.Status, Code: said.Code, Message: said.Message + text}
	}
	return fmt.Errorf("%w%s", err, text)
}
