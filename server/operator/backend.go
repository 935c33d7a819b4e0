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

// Backend implements api/admin.Process over locations. Methods may be called concurrently.
type Backend struct {
	o       Options
	started time.Time
}

var _ apiadmin.Process = (*Backend)(nil)

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

// Status describes the whole process.
func (b *Backend) Status(ctx context.Context) (wire.Status, error) {
	out := wire.Status{
		Process: wire.Process{
			PID: os.Getpid(), StartedAt: wire.Time{Time: b.started}, UptimeSeconds: b.o.Clock.Now().Sub(b.started).Seconds(),
			Development: b.o.Development,
		},
		Link: wire.Link{State: wire.LinkUp},
	}
	answers := each(b, func(l Location) answer[wire.Status] { return answerOf(statusOf(ctx, l)) })
	for i, a := range answers {
		if a.err != nil {
			return out, fmt.Errorf("location %s: %w", b.o.Locations[i].Name(), a.err)
		}
		out.Locations = append(out.Locations, a.value.Locations...)
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

// Events are those of all locations.
func (b *Backend) Events(ctx context.Context) (out wire.EventList) {
	for _, l := range each(b, func(l Location) wire.EventList {
		list, _ := ask(ctx, l, &listEvents, wire.At{}, wire.None{}) // It names what it lacks.
		return list
	}) {
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

// Ready implements api/admin.Process.
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

// servingPoll is the time between two checks whether a started location serves.
const servingPoll = 100 * time.Millisecond

// awaitServing waits up to ServingWait for a location to serve. It returns what the location waits
// for then, "" if it serves.
func (b *Backend) awaitServing(ctx context.Context, q asked) string {
	enough := time.NewTimer(q.ServingWait)
	defer enough.Stop()
	poll := time.NewTicker(servingPoll)
	defer poll.Stop()
	for {
		serves, waiting := b.serving(ctx, q.At.Location)
		if serves {
			return ""
		}
		select {
		case <-poll.C:
		case <-enough.C:
			return waiting
		case <-ctx.Done():
			return waiting
		}
	}
}

// serving reports whether a location serves, and if not, what it waits for.
func (b *Backend) serving(ctx context.Context, l geo.Location) (serves bool, waiting string) {
	for _, r := range b.Ready(ctx) {
		if r.Name == l && r.Serving {
			return true, ""
		}
		if r.Name == l {
			return false, r.Reason
		}
	}
	return false, "this port does not know " + string(l)
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

// Account is one as its primary has it; storageerr.AccountNotFound.
func (b *Backend) Account(ctx context.Context, name geo.Account) (wire.AccountInfo, error) {
	a, err := known(ctx, b, func(ctx context.Context, l Location) (wire.Account, error) { return accountOf(ctx, l, name) })
	if err != nil {
		return wire.AccountInfo{}, err
	}
	return b.info(b.atPrimary(ctx, a)), nil
}

// Keys are those of an account; storageerr.AccountNotFound.
func (b *Backend) Keys(ctx context.Context, name geo.Account) (wire.Keys, error) {
	return known(ctx, b, func(ctx context.Context, l Location) (wire.Keys, error) {
		return ask(ctx, l, &showKeys, wire.At{Account: name}, wire.None{})
	})
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

// CreateAccount makes an account at the location that becomes its primary.
func (b *Backend) CreateAccount(ctx context.Context, n wire.NewAccount) (wire.AccountInfo, error) {
	l, err := b.find(n.Location)
	if err != nil {
		return wire.AccountInfo{}, storageerr.InvalidInput.Saying(err.Error())
	}
	a, err := ask(ctx, l, &createAccount, wire.At{}, n)
	if err != nil {
		return wire.AccountInfo{}, err
	}
	return b.info(a.Account), nil
}

// at has one location carry out an operation.
func at[Req, Resp any](ctx context.Context, b *Backend, o *operation[Req, Resp], at wire.At, in Req) (out Resp, err error) {
	l, err := b.find(at.Location)
	if err != nil {
		return out, storageerr.InvalidInput.Saying(err.Error())
	}
	return ask(ctx, l, o, at, in)
}

// statusOf is the status of one location.
func statusOf(ctx context.Context, l Location) (wire.Status, error) {
	return ask(ctx, l, &showStatus, wire.At{}, wire.None{})
}

// SetLink changes the state of the link. The link has an end at each location.
func (b *Backend) SetLink(ctx context.Context, to wire.Link) error {
	errs := each(b, func(l Location) error {
		if err := setLink(ctx, l, to); err != nil {
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

// setLink changes the link at the end of one location.
func setLink(ctx context.Context, l Location, to wire.Link) (err error) {
	switch to.State {
	case wire.LinkCut:
		_, err = ask(ctx, l, &cutLink, wire.At{}, wire.None{})
	case wire.LinkDelayed:
		_, err = ask(ctx, l, &delayLink, wire.At{}, wire.Delay{Seconds: to.DelaySeconds})
	default:
		_, err = ask(ctx, l, &healLink, wire.At{}, wire.None{})
	}
	return err
}
