package api

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"antipode/api/auth"
	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/api/tables"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// exchange is one request under way.
type exchange struct {
	*Server
	gate    *gate
	w       *echo.Response
	r       *http.Request
	service geo.Service
	req     *protocol.Request
	// watches: no exchange of this process has taken the request up before, and passed it to this one by a call.
	watches bool
	// passed reports that another front end of the deployment has passed the request on, which it has proven.
	passed bool
	// asked is the operation that the request asks for, once its target was read.
	asked operation.Match
	// op is what the request is counted as, and code the code of the error that it was answered with.
	op, code string
	// rules are the CORS rules of the service, once the account was read.
	rules []catalog.CORSRule
	// entered is how often the request is counted as one of its account's under way: the first time counts.
	entered int
	// signer is the account whose keys the signature was compared with, refusal the outcome. sas is the signature if it
	// is a right one and a shared access signature.
	signer  *catalog.Account
	sas     *auth.SAS
	refusal error
	// marking guards w.Before while sources are looked for.
	marking sync.Mutex
}

func (s *Server) serve(w *echo.Response, r *http.Request, service geo.Service, peer bool, g *gate) {
	r, release := staying(r)
	defer release()
	addr, scheme, passed := routing.Client(r, peer, s.o.HopSecret)
	s.take(w, &protocol.Request{HTTP: r, ClientAddr: addr, Scheme: scheme, ID: s.o.IDs.Next()}, service, passed, g)
}

// take answers a request of which is known where it came from.
func (s *Server) take(w *echo.Response, req *protocol.Request, service geo.Service, passed bool, g *gate) {
	start, r := s.o.Clock.Now(), req.HTTP
	x := &exchange{Server: s, gate: g, w: w, r: r, service: service, passed: passed, op: operation.Unknown, req: req}
	x.req.Sources = x
	x.watches = protocol.WatchSender(w, r)
	w.Before(func() {
		protocol.BeforeAnswer(w, r)
		if s.o.Leaving() {
			routing.Leave(r, w.Header())
		}
	})
	defer x.recover(start)
	if err := x.admitted(); err != nil && !w.Committed {
		x.fail(err)
	}
	x.end(start)
}

// end counts the request, behind what its client still sends: no gate counts it any more.
func (x *exchange) end(start time.Time) {
	if x.watches && !routing.Refused(x.r, x.w.Header()) {
		protocol.Linger(x.w, x.r)
	}
	x.observe(start)
}

func (x *exchange) observe(start time.Time) {
	took := x.o.Clock.Now().Sub(start)
	switch {
	case x.o.Location == "":
		x.o.Gateway.Answered(x.service, x.w.Status, took, protocol.Received(x.r), x.w.Size)
	case x.op != opForwarded:
		x.o.Observe(x.service, x.op, x.w.Status, x.code, took)
	}
}

// What requests are counted as besides the names of operations.
const (
	// opForwarded marks a request that another front end answered, and counted.
	opForwarded = "Forwarded"
	// opNoLeader counts requests for which no node was found.
	opNoLeader = "NoLeader"
	// opWriteOnSecondary counts writes that `-secondary` refused.
	opWriteOnSecondary = "WriteOnSecondary"
	// opNoSecondary counts reads of `-secondary` of accounts that are not RA-GRS, or whose copy is incomplete.
	opNoSecondary = "NoSecondary"
)

// recover turns a panic into an answer, or breaks off the one that has begun.
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
		x.end(start)
		return
	}
	x.observe(start)
	panic(http.ErrAbortHandler) // Half an answer must not look like a whole one.
}

// fail writes err as the service's error body.
func (x *exchange) fail(err error) {
	e, ours := protocol.ErrorOf(err)
	if !ours {
		x.o.Logger.With(logged(x.req)...).Error("request failed", "operation", x.op, "error", err)
	}
	x.code = e.Code
	if x.o.Location == "" {
		x.o.Gateway.Failed(x.service, e.Code)
	}
	x.w.Before(x.allowOrigin)
	protocol.WriteError(x.w, x.r, x.errorFormat(), x.req.ID, x.o.Clock.Now(), err)
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
	version, err := auth.Version(geo.Table, h, x.req.Query)
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
	if err := x.parse(); err != nil {
		return x.early(err)
	}
	target := x.req.Target
	x.req.At = x.o.Clock.Now()
	protocol.SetCommonHeaders(x.w.Header(), x.r, x.service, x.req.Version, x.req.ID, x.req.At)
	if limit := x.limit(); x.asked.Time == operation.Upload && limit > protocol.AnswerMax || x.asked.Time == operation.OfCopy {
		protocol.AnswerWithin(x.w, limit+operation.RequestMax)
	}
	if x.o.Location == "" {
		// On the hop a missing length would read as no body.
		if err := checkLength(x.r, x.service); err != nil {
			return err
		}
		x.op = opForwarded
		return x.ofAccount(func() error { return x.gateway.Pass(x.routed(), target.SignedAs(), target.Secondary) })
	}
	if target.Clone {
		if answered, err := x.toClone(); answered {
			return err
		}
	}
	ctx, cancel, badTimeout := x.deadline()
	defer cancel()
	if err := x.resolve(ctx); err != nil {
		x.notHere()
		return err
	}
	return x.answerMoving(ctx, badTimeout)
}

// once has the location that has the account serve the request, as the record of the account names it.
func (x *exchange) once(ctx context.Context, badTimeout error) error {
	if x.strange() {
		routing.ForgetGateway(x.r)
	}
	if err := x.awaitMove(ctx); err != nil {
		return err
	}
	want := x.location(x.req.Account)
	if err := x.outrun(want); err != nil {
		return err
	}
	switch {
	case !x.doubted(want):
		routing.ServedBy(x.routed(), want)
	case x.notHere():
		return routing.ErrAway
	default:
		routing.Doubtful(x.routed(), want)
	}
	if want == x.o.Location {
		return x.here(ctx, badTimeout)
	}
	return x.forward(want)
}

// common makes the headers those of an answer that begins, in place of those of one that is none.
func (x *exchange) common() {
	clear(x.w.Header())
	protocol.SetCommonHeaders(x.w.Header(), x.r, x.service, x.req.Version, x.req.ID, x.req.At)
}

// here serves a request of an account that this location has, within ctx. badTimeout is
// the error of its timeout parameter.
func (x *exchange) here(ctx context.Context, badTimeout error) error {
	if x.r.Method == http.MethodOptions {
		x.op = x.asked.Name
		return x.o.Accounts.Preflight(ctx, x.w, x.req)
	}
	account, target := x.req.Account, x.req.Target
	if err := x.authorize(account); err != nil {
		return err
	}
	if err := x.enterAccount(); err != nil {
		return err
	}
	defer x.leaveAccount()
	if target.Secondary && x.changes() {
		x.op = opWriteOnSecondary
		return storageerr.WriteOnSecondary
	}
	if err := x.unreadable(); err != nil {
		x.op = opNoSecondary
		return err
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
	if !target.Secondary && x.asked.Effect != operation.Reads && x.o.Authority.UpToDate(account) {
		x.w.Before(x.breakOffStale)
	}
	switch place, err := x.leaders.Pass(x.routed(), x.leads()); place {
	case routing.Elsewhere:
		x.op = opForwarded
		return err
	case routing.Nowhere:
		x.op = opNoLeader
		return err
	}
	if err := x.incomplete(ctx); err != nil {
		x.op = opNoSecondary
		return err
	}
	if !target.Secondary && x.asked.Effect == operation.Reads {
		x.w.Before(x.markStale)
	}
	x.w.Before(x.allowOrigin) // Behind markStale, whose header may be exposed.
	return x.dispatchFollowing(ctx)
}

// markStale marks the answer to a read under the primary name that may be older than a write that was acknowledged at
// the other location (R21). It is called when the header is written: what is true then was true when the state was read.
func (x *exchange) markStale() {
	if x.location(x.req.Account) == x.o.Location && !x.o.Authority.UpToDate(x.req.Account) {
		x.w.Header().Set(protocol.HeaderMayBeStale, "true")
	}
}

// breakOffStale breaks the connection off in place of the answer to a write, where it is not confirmed any more that the
// account has no higher epoch at the other location: the commit may be one that is lost (R21). The leader looks when it
// answers. From there to the client, by other nodes too, is a way on which a process can stand still across a promotion.
// Where a higher epoch is known the account may have moved meanwhile as planned, and the answer be that of the new primary.
func (x *exchange) breakOffStale() {
	if x.w.Status < http.StatusInternalServerError && !x.o.Authority.UpToDate(x.req.Account) && !x.o.Authority.Passed(x.req.Account) {
		panic(http.ErrAbortHandler)
	}
}

// routed is the request as package routing sees it.
func (x *exchange) routed() routing.Request {
	q := routing.Request{W: x.w, R: x.r, Service: x.service, Reads: x.asked.Effect == operation.Reads}
	if x.asked.Time == operation.OfCopy || x.asked.Time == operation.OfBatch {
		q.Long = x.limit()
	}
	return q
}

// early sets the headers of an answer before the version is known.
func (x *exchange) early(err error) error {
	protocol.SetCommonHeaders(x.w.Header(), x.r, x.service, "", x.req.ID, x.o.Clock.Now())
	return err
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

// logged are the attributes of the request in a log.
func logged(r *protocol.Request) []any {
	return []any{"request_id", r.ID, "client", r.ClientAddr.String(), "scheme", r.Scheme}
}
