package admin

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Process is what the admin ports serve. Its methods may be called concurrently.
type Process interface {
	// Operations are the calls of operators that the process carries out.
	Operations() []Operation
	// Ready has one entry for each location of the process, with a reason if it is not ready.
	// A location stopped by an operator is not ready.
	Ready(ctx context.Context) []wire.LocationReadiness
}

// Operation is a call of operators as a port answers it.
type Operation struct {
	wire.Route
	// Creates: a success is answered 201.
	Creates bool
	// Serve carries it out, and ends when ctx does. The port writes the document, and nothing of it after an error: see Failed.
	Serve func(ctx context.Context, q *Question) (doc any, err error)
}

// Question is what came to a port.
type Question struct {
	// At is what the path names, as it was sent: Range is 0 where it is no number, and RangeText what it is.
	At        wire.At
	RangeText string
	// Scope is the location that the port shows alone; empty for the whole process.
	Scope geo.Location
	// ReadTimeout and ServingWait: see Options.
	ReadTimeout, ServingWait time.Duration
	Log                      *slog.Logger
	context                  echo.Context
}

// Decode reads the question's document: the body of a POST, one JSON object without unknown fields, or the query of a GET.
func (q *Question) Decode(into any) error {
	if q.context.Request().Method == http.MethodGet {
		if err := wire.ParseQuery(q.context.QueryParams(), into); err != nil {
			return Invalid("read the query of", route(q.context.Request()), err.Error()+": docs/admin.md has what it takes")
		}
		return nil
	}
	return decode(q.context, into)
}

// Shows reports whether the port's scope holds a location.
func (q *Question) Shows(l geo.Location) bool { return q.Scope == "" || q.Scope == l }

// mount has the port answer an operation.
func (p *port) mount(e *echo.Echo, o Operation) {
	var with []echo.MiddlewareFunc
	if o.Token {
		with = append(with, p.withToken)
	}
	status := http.StatusOK
	if o.Creates {
		status = http.StatusCreated
	}
	serve := func(c echo.Context) error {
		number, err := strconv.ParseUint(c.Param("range"), 10, 32)
		if err != nil {
			number = 0
		}
		q := &Question{
			At: wire.At{
				Account: geo.Account(c.Param("account")), Location: geo.Location(c.Param("location")), Node: c.Param("node"), Range: geo.RangeID(number),
			},
			RangeText: c.Param("range"), Scope: p.o.Location, ReadTimeout: p.o.ReadTimeout, ServingWait: p.o.ServingWait, Log: p.o.Log, context: c,
		}
		doc, err := o.Serve(c.Request().Context(), q)
		if err != nil {
			return err
		}
		if o.Token {
			c.Response().Header().Set("Cache-Control", "no-store")
		}
		return answer(c, status, doc)
	}
	for _, path := range []string{o.Path, o.Former} {
		if path != "" {
			e.Add(o.Method, strings.NewReplacer("{", ":", "}", "").Replace(path), serve, with...)
		}
	}
}
