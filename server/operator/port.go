package operator

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	apiadmin "antipode/api/admin"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

// port is what a port makes of a call.
type port[Req, Resp any] struct {
	// verb and what are those of messages: "could not verb what: ...".
	verb string
	what func(at wire.At, in Req) string
	// scope is what of a port of one location answers.
	scope scope
	// wrong says what is wrong with a question, "" for nothing. It may put defaults in.
	wrong func(in *Req) string
	// owner is the location whose port alone answers, where the question decides that.
	owner func(q asked, in Req) geo.Location
	// do carries the call out. Nil: the location that the path names does.
	do func(ctx context.Context, b *Backend, q asked, in Req) (Resp, error)
	// show, if set, makes the document of a port out of what do has returned, which it leaves as it is.
	show func(q asked, out Resp) Resp
	// log, if set, writes down what was done.
	log func(l *slog.Logger, q asked, in Req, out Resp)
	// creates: see apiadmin.Operation.
	creates bool
}

// scope is what a path names, and what follows from it for a port of one location.
type scope int

const (
	// ofPort: the call is answered everywhere, and do looks at the port's scope.
	ofPort scope = iota
	// ofAccount: the path names an account. Whether there is one is left to do.
	ofAccount
	// ofKnownAccount: the account is looked for. One outside the port's scope does not exist for it.
	ofKnownAccount
	// ofLocation, ofNode and ofRange: the path names a location, or what belongs to one, and the port has to show that.
	ofLocation
	ofNode
	ofRange
	// ofProcess: the port of one location does not see enough for it.
	ofProcess
)

// asked is a question whose path is understood.
type asked struct {
	*apiadmin.Question
	// At is what the path names.
	At wire.At
	// Account is set for ofKnownAccount.
	Account wire.AccountInfo
}

// call is an operator call in the table of a process.
type call struct {
	name string
	// carried is what a location does; nil where a process alone has something to do.
	carried carried
	// port is the port[Req, Resp] of the call.
	port  any
	serve func(b *Backend) apiadmin.Operation
}

// answered is the entry of a call that a location carries out.
func answered[Req, Resp any](o *operation[Req, Resp], p port[Req, Resp]) call {
	if p.do == nil {
		p.do = func(ctx context.Context, b *Backend, q asked, in Req) (Resp, error) { return at(ctx, b, o, q.At, in) }
	}
	c := composed(o.Call, p)
	c.carried = o
	return c
}

// composed is the entry of a call that a process makes up from others.
func composed[Req, Resp any](k wire.Call[Req, Resp], p port[Req, Resp]) call {
	return call{name: k.Name, port: p, serve: func(b *Backend) apiadmin.Operation {
		return apiadmin.Operation{Route: k.Route, Creates: p.creates, Serve: func(ctx context.Context, q *apiadmin.Question) (any, error) {
			return p.answer(ctx, b, q)
		}}
	}}
}

// planned is a question that may ask only what would be done.
type planned interface{ Plans() bool }

func (p port[Req, Resp]) answer(ctx context.Context, b *Backend, question *apiadmin.Question) (any, error) {
	var in Req
	q, err := p.understand(ctx, b, question)
	if err != nil {
		return nil, err
	}
	if any(in) != any(wire.None{}) {
		if err := q.Decode(&in); err != nil {
			return nil, err
		}
	}
	what := p.what(q.At, in)
	if p.wrong != nil {
		if why := p.wrong(&in); why != "" {
			return nil, apiadmin.Invalid(p.verb, what, why)
		}
	}
	if p.owner != nil && !q.Shows(p.owner(q, in)) {
		return nil, apiadmin.OutOfScope(p.verb, what, q.Scope)
	}
	plans, is := any(in).(planned)
	plan := is && plans.Plans()
	if plan { // It is no longer in coming than a read.
		bounded, cancel := context.WithTimeout(ctx, q.ReadTimeout)
		defer cancel()
		ctx = bounded
	}
	out, err := p.do(ctx, b, q, in)
	switch {
	case err != nil && plan:
		return nil, apiadmin.Unplannable(what, err)
	case err != nil:
		return nil, apiadmin.Failed(p.verb, what, err)
	}
	if p.log != nil && !plan {
		p.log(q.Log, q, in, out)
	}
	if p.show != nil {
		out = p.show(q, out)
	}
	return out, nil
}

// understand reads the path of a question, and refuses what the port does not show.
func (p port[Req, Resp]) understand(ctx context.Context, b *Backend, question *apiadmin.Question) (asked, error) {
	var none Req
	q := asked{Question: question, At: question.At}
	what := p.what(q.At, none)
	switch p.scope {
	case ofPort:
	case ofAccount, ofKnownAccount:
		if !q.At.Account.Valid() {
			return q, apiadmin.Failed("find", theAccount(q.At.Account), storageerr.AccountNotFound)
		}
		if p.scope == ofKnownAccount {
			var err error
			if q.Account, err = b.shown(ctx, q); err != nil {
				return q, apiadmin.Failed("find", theAccount(q.At.Account), err)
			}
		}
	case ofNode:
		l, _, err := wire.ParseNodeName(q.At.Node)
		if err != nil {
			return q, &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoNode, Message: apiadmin.Sentence(p.verb, what, err.Error())}
		}
		q.At.Location = l
	case ofRange:
		if q.At.Range == 0 {
			return q, &wire.Error{Status: http.StatusNotFound, Code: codeNoRange, Message: apiadmin.Sentence(p.verb,
				fmt.Sprintf("range %s of %s", q.RangeText, q.At.Location), "a range has a number: antipodectl status shows it")}
		}
	case ofProcess:
		if q.Scope != "" {
			return q, apiadmin.OutOfScope(p.verb, what, q.Scope)
		}
	}
	if q.At.Location != "" && !q.Shows(q.At.Location) {
		return q, apiadmin.OutOfScope(p.verb, what, q.Scope)
	}
	return q, nil
}

// codeNoRange: the path names no range.
const codeNoRange = "RangeNotFound"

// saying is what a message is about where that is always the same.
func saying[Req any](what string) func(wire.At, Req) string {
	return func(wire.At, Req) string { return what }
}

// What messages are about where the path says it.

func anAccount[Req any](at wire.At, _ Req) string { return theAccount(at.Account) }

func aNode[Req any](at wire.At, _ Req) string { return "node " + at.Node }

func aLocation[Req any](at wire.At, _ Req) string { return "location " + string(at.Location) }

func theAccount(name geo.Account) string { return fmt.Sprintf("account %q", name) }

// list turns a nil slice into an empty one.
func list[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

// concerns reports whether an account lives, in either role, in the scope of a port.
func concerns(a wire.Account, scope geo.Location) bool {
	return scope == "" || a.Primary == scope || a.Secondary == scope
}
