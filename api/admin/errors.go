package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

// Codes that are ours. Those of the storage protocol come from storageerr.
const (
	codeNoRoute     = "RouteNotFound"
	codeMethod      = "MethodNotAllowed"
	codeOutOfScope  = "OutOfScope"
	codeCrossOrigin = "CrossOriginRefused"
	codeHost        = "HostRefused"
	codeNoToken     = "NoToken"
	codeBody        = "InvalidBody"
	codeBodyLarge   = "BodyTooLarge"
	codeInvalid     = "InvalidInput"
	codeUnknown     = "OutcomeUnknown"
	codeInternal    = "InternalError"
)

// Sentence is the form of every message, on one line: what happened, to what, what
// to do. A rest that is such a sentence already, as another process answered it, stays alone.
func Sentence(verb, what, rest string) string {
	if !strings.HasPrefix(rest, could) {
		rest = fmt.Sprintf("%s%s %s: %s", could, verb, what, rest)
	}
	return strings.Join(strings.Fields(rest), " ")
}

const could = "could not "

// internal is an error of ours: shown to the operator and logged.
type internal struct {
	answer wire.Error
	cause  error
}

func (e *internal) Error() string { return e.answer.Message }

func (e *internal) Unwrap() []error { return []error{&e.answer, e.cause} }

// Failed puts the error of an operation in the form of an answer. A *wire.Error in its chain is answered as it is, but one with
// CodeNoNodeAnswers becomes a sentence; a storageerr row keeps its status and code and is put in words; the end of a context
// answers that the outcome is unknown; any other error is an internal one, and logged.
func Failed(verb, what string, err error) error {
	var ours *wire.Error
	if errors.As(err, &ours) {
		if ours.Code != wire.CodeNoNodeAnswers || strings.HasPrefix(ours.Message, could) {
			return err
		}
		return &wire.Error{
			Status: ours.Status, Code: ours.Code,
			Message: Sentence(verb, what, ours.Message+": start the processes that do not run, then try again"),
		}
	}
	if e, ok := storageerr.Of(err); ok {
		return &wire.Error{Status: e.Status, Code: e.Code, Message: Sentence(verb, what, advice(e.Row))}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &wire.Error{
			Status: http.StatusServiceUnavailable, Code: codeUnknown,
			Message: Sentence(verb, what, "time ran out and it may still happen: look at the status, then try again"),
		}
	}
	return &internal{
		answer: wire.Error{
			Status: http.StatusInternalServerError, Code: codeInternal,
			Message: Sentence(verb, what, err.Error()+": look at the status and the server's log"),
		},
		cause: err,
	}
}

// Unplannable is Failed of the plan of a failover, which changes nothing also where it is not known how far it came.
func Unplannable(what string, err error) error {
	const verb = "plan a failover of"
	var ours *wire.Error
	late := errors.Is(err, context.DeadlineExceeded)
	if row, ok := storageerr.Of(err); ok {
		late = row.Code == storageerr.OperationTimedOut.Code
	}
	if errors.As(err, &ours) || !late {
		return Failed(verb, what, err)
	}
	return &wire.Error{
		Status: http.StatusServiceUnavailable, Code: storageerr.ServerBusy.Code,
		Message: Sentence(verb, what, "a range or a node that it asks gave no answer in time; nothing was changed: antipodectl check"),
	}
}

// advice words a row of the storage protocol for an operator.
func advice(r storageerr.Row) string {
	switch r {
	case storageerr.AccountNotFound:
		return "there is no such account here: list them with antipodectl account list"
	case storageerr.AccountAlreadyExists:
		return "an account of that name exists: choose another name, or see it with antipodectl account show"
	case storageerr.ServerBusy:
		return "too few replicas, or the other location, answer and nothing happened: see antipodectl status, then try again"
	case storageerr.OperationTimedOut:
		return "time ran out and it may still happen: see antipodectl status, then try again"
	}
	if r.Code == storageerr.AccountAlreadyExists.Code {
		return r.Message // It names what the account does not take.
	}
	switch r.Code {
	case storageerr.OperationInProgress.Code, storageerr.NotImplemented.Code:
		return r.Message // It names the operation, or what is missing.
	}
	if strings.Contains(r.Message, "antipodectl ") {
		return r.Message // It names what to do.
	}
	return strings.TrimRight(r.Message, ".") + ": see antipodectl status"
}

// Invalid refuses a question.
func Invalid(verb, what, why string) error {
	return &wire.Error{Status: http.StatusBadRequest, Code: codeInvalid, Message: Sentence(verb, what, why)}
}

func badBody(r *http.Request, err error) error {
	return &wire.Error{Status: http.StatusBadRequest, Code: codeBody, Message: Sentence("read the body of", route(r),
		err.Error()+": send one JSON object as docs/admin.md has it")}
}

func bodyTooLarge(r *http.Request) error {
	return &wire.Error{Status: http.StatusRequestEntityTooLarge, Code: codeBodyLarge, Message: Sentence(
		"read the body of", route(r), fmt.Sprintf("it is longer than %d bytes: send less", bodyBytesMax))}
}

// route names a request in a message. The path is quoted: it may hold anything.
func route(r *http.Request) string { return fmt.Sprintf("%s %q", r.Method, r.URL.Path) }

// writeError is the one place where an error becomes an answer.
func (p *port) writeError(err error, c echo.Context) {
	if c.Response().Committed {
		return // The client hung up inside a document.
	}
	var e *wire.Error
	var he *echo.HTTPError
	switch r := c.Request(); {
	case errors.As(err, &e):
	case errors.As(err, &he) && he.Code == http.StatusNotFound:
		e = &wire.Error{Status: he.Code, Code: codeNoRoute, Message: Sentence(
			"serve", route(r), "there is no such address: docs/admin.md lists them")}
	case errors.As(err, &he) && he.Code == http.StatusMethodNotAllowed:
		e = &wire.Error{Status: he.Code, Code: codeMethod, Message: Sentence(
			"serve", route(r), "the address does not take that method: docs/admin.md lists them")}
	default:
		err = Failed("serve", route(r), err)
		errors.As(err, &e)
	}
	var in *internal
	if errors.As(err, &in) {
		p.o.Log.Error("admin request failed", "route", route(c.Request()), "error", in.cause)
	}
	out := *e
	if out.Status < 400 {
		out.Status = http.StatusInternalServerError
	}
	out.Message = strings.Join(strings.Fields(out.Message), " ")
	if out.Status == http.StatusServiceUnavailable {
		c.Response().Header().Set("Retry-After", "1")
	}
	if werr := answer(c, out.Status, wire.ErrorDocument{Error: out}); werr != nil {
		p.o.Log.Debug("write an admin error", "error", werr)
	}
}

// OutOfScope refuses what the port of one location does not show or change.
func OutOfScope(verb, what string, scope geo.Location) error {
	return &wire.Error{Status: http.StatusForbidden, Code: codeOutOfScope, Message: Sentence(verb, what,
		fmt.Sprintf("this is the admin port of %s alone: use the port of the process", scope))}
}
