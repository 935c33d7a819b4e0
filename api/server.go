package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"antipode/api/accounts"
	"antipode/api/auth"
	"antipode/api/blobs"
	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/queues"
	"antipode/api/tables"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// Directory knows the accounts of a location.
type Directory interface {
	// Account returns a complete account; AccountNotFound where there is none.
	Account(ctx context.Context, name geo.Account) (*catalog.Account, error)
}

// Observer takes what was answered, for metrics.
type Observer func(s geo.Service, operation string, status int, took time.Duration)

// Options configures a Server.
type Options struct {
	// Location is what this front end serves itself; empty for a front door, which
	// forwards everything.
	Location geo.Location
	// Locations are those that a front door sends requests to. It needs them, Clock,
	// IDs and Forward, and no Directory or handler.
	Locations []geo.Location
	// Zones are those under which accounts are addressed by host names of their own
	// (protocol.ParseTarget). A front door and the locations behind it have the same.
	Zones     []geo.Zone
	Directory Directory
	Clock     clock.Clock
	Accounts  *accounts.Handler
	Tables    *tables.Handler
	Blobs     *blobs.Handler
	// Forward reaches the front ends of other locations, and those of this location's
	// other nodes.
	Forward *Forwarder
	// Leader tells which node serves what. Nil: this process leads all ranges of the
	// location.
	Leader Leader
	// Leaderless reports whether a range has had no leader for so long that none is to be
	// expected soon. Like Leader it answers from memory; nil means never.
	Leaderless func(geo.RangeID) bool
	// HopSecret proves that a request comes from a front end of this process, whose
	// Forwarder has it (WithSecret). Empty where front ends are processes of their own.
	HopSecret string
	IDs       *protocol.RequestIDs
	Observe   Observer
	// RequestsMax bounds the requests that each service works on at once, and half of it those
	// of one account; the rest are refused with 503. Zero means 4,096.
	RequestsMax int
	// Door takes what a front door did, which Observe is not told. Nil drops it.
	Door   DoorObserver
	Logger *slog.Logger
}

// Server answers the requests of one location, or of the front door. Its handlers
// may be called concurrently.
type Server struct {
	o        Options
	verifier auth.Verifier
	door     *door
}

// NewServer returns a server.
func NewServer(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Observe == nil {
		o.Observe = func(geo.Service, string, int, time.Duration) {}
	}
	if o.RequestsMax == 0 {
		o.RequestsMax = requestsMax
	}
	if o.Door == nil {
		o.Door = unobserved{}
	}
	return &Server{o: o, verifier: auth.Verifier{Clock: o.Clock, FutureSkew: auth.DateWindow}, door: newDoor(o.Locations)}
}

// Handler returns the handler of the listener of a service. Paths go to the service
// as they came: no router cleans, merges or decodes them.
func (s *Server) Handler(service geo.Service) http.Handler { return s.handler(service, false) }

// handler serves clients, or peers: the deployment's other front ends.
func (s *Server) handler(service geo.Service, peers bool) http.Handler {
	e, g := echo.New(), newGate(s.o.RequestsMax)
	e.HideBanner, e.HidePort = true, true
	e.Pre(func(echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			s.serve(c.Response(), c.Request(), service, peers, g)
			return nil
		}
	})
	return e
}

// exchange is one request under way.
type exchange struct {
	*Server
	gate    *gate
	w       *echo.Response
	r       *http.Request
	service geo.Service
	req     *protocol.Request
	// asked is the operation that the request asks for, once its target was read.
	asked operation.Match
	// op is what the request is counted as.
	op string
}

func (s *Server) serve(w *echo.Response, r *http.Request, service geo.Service, peer bool, g *gate) {
	start := s.o.Clock.Now()
	addr, scheme := s.client(r, peer)
	x := &exchange{Server: s, gate: g, w: w, r: r, service: service, op: operation.Unknown, req: &protocol.Request{HTTP: r, ClientAddr: addr, Scheme: scheme, ID: s.o.IDs.Next()}}
	protocol.WatchSender(w, r)
	w.Before(func() { protocol.BeforeAnswer(w, r) })
	defer x.recover(start)
	if err := x.admitted(); err != nil && !w.Committed {
		x.fail(err)
	}
	x.observe(start)
}

func (x *exchange) observe(start time.Time) {
	took := x.o.Clock.Now().Sub(start)
	switch {
	case x.o.Location == "":
		x.o.Door.Answered(x.service, x.w.Status, took, protocol.Received(x.r), x.w.Size)
	case x.op != opForwarded:
		x.o.Observe(x.service, x.op, x.w.Status, took)
	}
}

// opForwarded marks a request that another front end answered, and counted.
const opForwarded = "Forwarded"

// recover keeps a panic from reaching the user.
func (x *exchange) recover(start time.Time) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		if x.o.Location == "" {
			x.observe(start)
		}
		panic(p) // net/http's own way to break off an answer.
	}
	x.o.Logger.With(logged(x.req)...).Error("request failed: a bug in the server", "operation", x.op, "panic", p, "stack", string(debug.Stack()))
	if !x.w.Committed {
		x.fail(storageerr.InternalError)
		x.observe(start)
		return
	}
	x.observe(start)
	panic(http.ErrAbortHandler) // Half an answer must not look like a whole one.
}

// fail writes err as the service's error body.
func (x *exchange) fail(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = storageerr.OperationTimedOut
	}
	code := storageerr.InternalError.Code
	if known, ours := storageerr.Of(err); ours {
		code = known.Code
	} else {
		x.o.Logger.With(logged(x.req)...).Error("request failed", "operation", x.op, "error", err)
	}
	if x.o.Location == "" {
		x.o.Door.Failed(x.service, code)
	}
	protocol.WriteError(x.w, x.r, x.errorFormat(), x.req.ID, x.o.Clock.Now(), err)
	protocol.Linger(x.w, x.r)
}

// errorFormat is the shape of an error's body, also of one before the version is known or
// the request authorized.
func (x *exchange) errorFormat() protocol.BodyFormat {
	switch {
	case x.service != geo.Table:
		return protocol.BodyXML
	case x.req.Query.Has("comp"):
		return protocol.BodyTableXML
	}
	h := x.r.Header
	version, err := protocol.ServiceVersion(geo.Table, h.Get(protocol.HeaderVersion), h.Get("Authorization") != "")
	if tables.AtomErrors(version, err == nil, h.Get("Accept"), x.req.Query.Get("$format")) {
		return protocol.BodyTableAtom
	}
	return protocol.BodyTableJSON
}

// admitted is answer, for as many requests as the listener may work on.
func (x *exchange) admitted() error {
	if !x.gate.enter() {
		x.op = opTooMany
		return x.early(errTooMany)
	}
	defer x.gate.leave()
	return x.answer()
}

// answer serves the request, in the order of protocol/auth.md 23.
func (x *exchange) answer() error {
	target, err := protocol.ParseTarget(x.service, x.req.Scheme, x.r.Host, x.r.RequestURI, x.o.Zones...)
	if err != nil {
		return x.early(err)
	}
	x.req.Target = target
	x.service = target.Service
	if x.req.Query, err = protocol.ParseQuery(target.RawQuery); err != nil {
		return x.early(err)
	}
	authorized := x.r.Header.Get("Authorization") != ""
	x.req.Version, err = protocol.ServiceVersion(target.Service, x.r.Header.Get(protocol.HeaderVersion), authorized)
	if err != nil {
		return x.early(err)
	}
	x.req.At = x.o.Clock.Now()
	protocol.SetCommonHeaders(x.w.Header(), x.r, x.service, x.req.Version, x.req.ID, x.req.At)
	x.asked = x.lookup()
	if limit := x.limit(); x.asked.Time == operation.Upload && limit > protocol.AnswerMax {
		protocol.AnswerWithin(x.w, limit+operation.RequestMax)
	}
	if x.o.Location == "" {
		// The hop would say for the client that there is no body.
		if err := checkLength(x.r, x.service); err != nil {
			return err
		}
		return x.throughDoor()
	}
	ctx, cancel, badTimeout := x.deadline()
	defer cancel()
	account, err := x.account(ctx)
	if err != nil {
		x.refuseDoor()
		return err
	}
	x.req.Account = account
	want := account.Primary
	if target.Secondary {
		want = account.Secondary
	}
	x.tellDoor(want)
	if want != x.o.Location {
		if x.refuseDoor() {
			return unreachable(want)
		}
		if err := checkLength(x.r, x.service); err != nil {
			return err // As at a front door.
		}
		x.op = opForwarded
		return x.o.Forward.Forward(x.w, x.r, want, x.service, x.reads())
	}
	if x.r.Method == http.MethodOptions {
		x.op = "Preflight"
		return preflight(x.r.Header)
	}
	return x.here(ctx, badTimeout)
}

// here serves a request of an account that this location has, within ctx. badTimeout is
// what is wrong with its timeout parameter.
func (x *exchange) here(ctx context.Context, badTimeout error) error {
	account, target := x.req.Account, x.req.Target
	keys := auth.Keys{Key1: account.Key1, Key2: account.Key2}
	if err := x.verifier.Verify(x.r, target, &x.req.Query, x.req.Version, keys); err != nil {
		return err
	}
	if !x.gate.enterAccount(account.Name) {
		x.op = opTooManyOfAccount
		return errTooMany
	}
	defer x.gate.leaveAccount(account.Name)
	if target.Secondary && x.changes() {
		x.op = "WriteOnSecondary"
		return storageerr.WriteOnSecondary
	}
	if badTimeout != nil {
		return badTimeout
	}
	if err := checkLength(x.r, x.service); err != nil {
		return err
	}
	x.r = x.r.WithContext(ctx)
	protocol.WatchSender(x.w, x.r) // Until the request's time is over.
	x.req.HTTP = x.r
	if elsewhere, err := x.lead(); elsewhere {
		return err
	}
	return x.dispatch()
}

// early sets the headers of an answer before the version is known.
func (x *exchange) early(err error) error {
	protocol.SetCommonHeaders(x.w.Header(), x.r, x.service, "", x.req.ID, x.o.Clock.Now())
	return err
}

// account finds the addressed account. Which error an unknown one gets depends on
// the service (protocol/table.md 14.1, protocol/auth.md 23).
func (x *exchange) account(ctx context.Context) (*catalog.Account, error) {
	a, err := x.o.Directory.Account(ctx, x.req.Target.Account)
	if errors.Is(err, storageerr.AccountNotFound) && x.service == geo.Table {
		return nil, storageerr.AuthenticationFailed.With("AuthenticationErrorDetail", "The account does not exist.")
	}
	return a, err
}

// limit is how long the request may take.
func (x *exchange) limit() time.Duration { return x.asked.TimeMax(x.r.ContentLength) }

// deadline bounds the request by its timeout parameter, at most limit; by limit beside an
// error.
func (x *exchange) deadline() (ctx context.Context, cancel context.CancelFunc, err error) {
	limit := x.limit()
	if text := x.req.Query.Get("timeout"); text != "" {
		n, bad := strconv.Atoi(text) // What is out of its range is the nearest number.
		switch {
		case bad != nil && !errors.Is(bad, strconv.ErrRange) || n <= 0:
			err = storageerr.InvalidQueryParameter.With("QueryParameterName", "timeout", "QueryParameterValue", text,
				"Reason", "The value is a number of seconds above zero.")
		case n <= int(limit/time.Second): // Before it is a Duration, which holds 292 years.
			limit = time.Duration(n) * time.Second
		}
	}
	ctx, cancel = context.WithTimeout(x.r.Context(), limit)
	return ctx, cancel, err
}

// lookup finds what the request asks for.
func (x *exchange) lookup() operation.Match {
	if m, is := operation.IsPreflight(x.r.Method); is {
		return m
	}
	if m, own := accounts.Lookup(x.req); own {
		return m
	}
	switch x.service {
	case geo.Table:
		return tables.Lookup(x.req)
	case geo.Blob:
		return blobs.Lookup(x.req)
	}
	return queues.Lookup(x.req)
}

// reads reports whether the request may be sent any number of times.
func (x *exchange) reads() bool { return x.asked.Effect == operation.Reads }

// changes reports whether the request is to be refused on `-secondary`. What is no
// operation is refused by its service either way: then the verb only chooses the error.
func (x *exchange) changes() bool {
	if x.asked.Name == operation.Unknown {
		return x.r.Method != http.MethodGet && x.r.Method != http.MethodHead
	}
	return x.asked.Secondary == operation.No
}

// dispatch hands the request to its service.
func (x *exchange) dispatch() error {
	x.op = x.asked.Name
	if x.asked.Body.Kind == operation.None && x.asked.Name != operation.Unknown {
		if err := protocol.TakeBody(x.r, operation.UselessBodyMax); err != nil {
			return err
		}
	}
	if x.asked.Resource == operation.Service {
		return x.o.Accounts.Serve(x.w, x.req, x.asked)
	}
	switch x.service {
	case geo.Table:
		return x.o.Tables.Serve(x.w, x.req, x.asked)
	case geo.Blob:
		return x.o.Blobs.Serve(x.w, x.req, x.asked)
	}
	return queues.Serve(x.w, x.req)
}
