package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/hosts"
	"antipode/metrics"
)

// The limits of a port. docs/admin.md documents them.
const (
	// bodyBytesMax bounds a request body.
	bodyBytesMax = 64 << 10
	// headerBytesMax bounds the request line and headers.
	headerBytesMax = 32 << 10
	// scrapesMax bounds concurrent scrapes; more get 503.
	scrapesMax = 4

	headerTimeout = 5 * time.Second
	requestRead   = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// readTimeout, controlTimeout and servingWait are the zero values of Options.
	readTimeout    = 10 * time.Second
	controlTimeout = time.Minute
	servingWait    = 5 * time.Second
	// writeTimeout leaves an operation that used up controlTimeout time to say so.
	writeTimeout = 80 * time.Second
)

// Options configures a port. The zero value is valid.
type Options struct {
	// Location scopes the port: it shows and controls that location alone. Empty
	// means the whole process.
	Location geo.Location
	// TokenFile has the token for keys and changes. The zero value refuses both.
	TokenFile TokenFile
	// Listen is the address that the port listens on, host:port. Hosts are further names and
	// addresses by which it may be addressed: see hosts. Loopback addresses, localhost, and
	// the address that a connection came to are always accepted.
	Listen string
	Hosts  []string
	// ReadTimeout bounds reads and scrapes. Zero means 10s. Too short, and a busy
	// process looks dead just when its status is wanted.
	ReadTimeout time.Duration
	// ControlTimeout bounds an operation that changes something. Zero means 1m;
	// Limit's time limit for an answer is 80s. Too short, and a start that
	// replays a long log is reported as unknown.
	ControlTimeout time.Duration
	// ServingWait is how long the answer to the start of a location waits until the location
	// serves; after that the answer has what it waits for. Zero means 5s. Too short, and
	// callers ask more often.
	ServingWait time.Duration
	// Log gets internal errors and every operation that changed something. Nil
	// discards them.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = readTimeout
	}
	if o.ControlTimeout <= 0 {
		o.ControlTimeout = controlTimeout
	}
	if o.ServingWait <= 0 {
		o.ServingWait = servingWait
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Limit gives a server the limits of an admin port.
func Limit(s *http.Server) {
	s.ReadHeaderTimeout = headerTimeout
	s.ReadTimeout = requestRead
	s.WriteTimeout = writeTimeout
	s.IdleTimeout = idleTimeout
	s.MaxHeaderBytes = headerBytesMax
}

// port is one admin port.
type port struct {
	process Process
	o       Options
	hosts   hosts.Hosts
}

// Handler serves one admin port over a process and what reg gathers. Its work ends with its
// requests; a scrape that ran out of time ends with its Gather, four at most.
func Handler(process Process, reg prometheus.Gatherer, o Options) http.Handler {
	p := &port{process: process, o: o.withDefaults(), hosts: hosts.New(o.Listen, o.Hosts...)}
	reg = metrics.WithFormer(reg)
	if p.o.Location != "" {
		reg = metrics.ForLocation(reg, p.o.Location)
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = p.writeError
	e.Use(p.recovered, p.limits)

	scrape := echo.WrapHandler(promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorLog:            scrapeLog{p.o.Log},
		ErrorHandling:       promhttp.ContinueOnError, // One bad series must not blind an operator.
		MaxRequestsInFlight: scrapesMax,
		Timeout:             p.o.ReadTimeout,
	}))
	e.GET("/metrics", scrape)
	both := []string{http.MethodGet, http.MethodHead}
	e.Match(both, "/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.Match(both, "/readyz", p.ready)

	e.GET("/v1/token-file", p.tokenFile)
	for _, o := range process.Operations() {
		p.mount(e, o)
	}
	return e
}

// recovered answers a panic with an error and logs it once, with its stack. Otherwise net/http would
// close the connection and log the panic below the level that is kept.
func (p *port) recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				p.o.Log.Error("admin request failed: a bug in the server",
					"route", route(c.Request()), "panic", v, "stack", string(debug.Stack()))
				err = &wire.Error{Status: http.StatusInternalServerError, Code: codeInternal, Message: Sentence(
					"serve", route(c.Request()), "a bug in the server, whose log has it: look at the status, it may have happened")}
			}
		}()
		return next(c)
	}
}

// limits applies guard, and bounds body and time of every request. A change runs to its end even if
// its caller goes away: half a stop is useless.
func (p *port) limits(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if err := p.guard(r); err != nil {
			return err
		}
		ctx, limit := r.Context(), p.o.ReadTimeout
		if r.Method == http.MethodPost {
			ctx, limit = context.WithoutCancel(ctx), p.o.ControlTimeout
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(c.Response(), r.Body, bodyBytesMax)
		c.SetRequest(r)
		return next(c)
	}
}

// answer writes a document, indented for people.
func answer(c echo.Context, status int, doc any) error {
	return c.JSONPretty(status, doc, "  ")
}

// decode reads a request body of one JSON object without unknown fields.
func decode(c echo.Context, into any) error {
	d := json.NewDecoder(c.Request().Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		var extra json.RawMessage
		switch err = d.Decode(&extra); {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil:
			err = errors.New("there is more than one JSON value")
		}
	}
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return bodyTooLarge(c.Request())
	}
	return badBody(c.Request(), err)
}

// ready answers 200 when every location shown can serve, 503 otherwise.
func (p *port) ready(c echo.Context) error {
	doc := wire.Readiness{Ready: true, Locations: []wire.LocationReadiness{}}
	for _, l := range p.process.Ready(c.Request().Context()) {
		if p.shows(l.Name) {
			doc.Ready = doc.Ready && l.Ready
			doc.Locations = append(doc.Locations, l)
		}
	}
	if len(doc.Locations) == 0 {
		doc.Ready = false // Nothing is known to be ready.
	}
	if !doc.Ready {
		return answer(c, http.StatusServiceUnavailable, doc)
	}
	return answer(c, http.StatusOK, doc)
}

// shows reports whether the port's scope holds a location.
func (p *port) shows(l geo.Location) bool { return p.o.Location == "" || p.o.Location == l }

// scrapeLog logs promhttp's errors.
type scrapeLog struct{ log *slog.Logger }

func (l scrapeLog) Println(v ...any) {
	for _, x := range v {
		if err, ok := x.(error); ok {
			l.log.Error("gather the metrics", "error", strings.TrimSpace(err.Error()))
		}
	}
}
