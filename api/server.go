package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"antipode/api/accounts"
	"antipode/api/auth"
	"antipode/api/blobs"
	"antipode/api/protocol"
	"antipode/api/queues"
	"antipode/api/routing"
	"antipode/api/tables"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/hosts"
	"antipode/internal/outbound"
	"antipode/services/catalog"
	"antipode/stamp/route"
)

// Directory knows the accounts of a location.
type Directory interface {
	// Resolve returns a complete account, or AccountNotFound, the outcome of looking up the
	// container of the service that container names, and the CORS rules of the service: one read
	// of the catalog for all. An empty name looks up none, and found is nil. container may be
	// called more than once.
	Resolve(ctx context.Context, name geo.Account, s geo.Service, container func(*catalog.Account) string) (
		a *catalog.Account, found *catalog.Found, rules []catalog.CORSRule, err error)
}

// Clones returns the front end that serves the clone of an account, if that is in this process, or else the address of the
// front end of the node for the service that has it; neither without a clone, and an error while it is not known whether there
// is one. It is asked for every request of a clone, and answers within half a second, mostly from memory. It may be called
// concurrently.
type Clones func(name geo.Account, s geo.Service) (here *Server, addr string, err error)

// Observer takes what was answered, for metrics: code is that of an error of the protocol, empty without one.
type Observer func(s geo.Service, operation string, status int, code string, took time.Duration)

// Options configures a Server.
type Options struct {
	// Location is the one that this front end serves itself; empty for a gateway, which
	// forwards everything.
	Location geo.Location
	// Locations are those that a gateway sends requests to. It needs them, Clock, IDs and
	// Forward, and no Directory or handler.
	Locations []geo.Location
	// Epochs is what a gateway knows of the epochs of accounts. Nil means nothing.
	Epochs routing.Epochs
	// Local reaches the locations that run in the process of a gateway. Nil means that none does.
	Local routing.Local
	// Zones are those under which each account has a host name
	// (protocol.ParseTarget). A gateway and the locations behind it have the same.
	Zones []geo.Zone
	// Hosts are further names by which clients may address the listeners, with or without a port: see addressed.
	Hosts     []string
	Directory Directory
	Clock     clock.Clock
	Accounts  *accounts.Handler
	Tables    *tables.Handler
	Blobs     *blobs.Handler
	Queues    *queues.Handler
	// Forward reaches the front ends of other locations, and those of this location's
	// other nodes.
	Forward *routing.Forwarder
	// Route returns the table of the location's ranges. Nil means that of a new stamp.
	Route func() *route.Table
	// Authority is what the location knows of whether its answers count. Nil means that they all do.
	Authority Authority
	// Leader and Leaderless are those of routing.Leaders.
	Leader     routing.Leader
	Leaderless func(geo.RangeID) bool
	// Clone finds the clone of an account at this location. Nil means that there are none.
	Clone Clones
	// Outside reads blobs to copy from servers that are none of this deployment. Nil means that none is permitted.
	Outside *outbound.Client
	// Leaving reports whether this front end is going to stop: each answer then ends its connection, and says so to
	// other front ends. Nil means that it is not.
	Leaving func() bool
	// HopSecret proves that a request comes from a front end of this process, whose
	// Forwarder has it (WithSecret). Empty if front ends are separate processes.
	HopSecret string
	IDs       *protocol.RequestIDs
	Observe   Observer
	// RequestsMax bounds the requests that each service works on at once, and a quarter of it those of one account; the
	// rest are refused with 503. It is what the listener has of connections. Zero, and more, mean 4,096.
	RequestsMax int
	// Gateway takes what a gateway did, which Observe does not get. Nil drops it.
	Gateway routing.GatewayObserver
	Logger  *slog.Logger
}

// Server answers the requests of one location, or of the gateway. Its handlers may be called
// concurrently.
type Server struct {
	o        Options
	verifier auth.Verifier
	leaders  routing.Leaders
	gateway  *routing.Gateway
	// clients bounds the requests of a clone's front end, which has no listener.
	clients *gate
	// sources bounds the reads of this front end for copies.
	sources *gate
	hosts   hosts.Hosts
}

// NewServer returns a server.
func NewServer(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Observe == nil {
		o.Observe = func(geo.Service, string, int, string, time.Duration) {}
	}
	if o.Authority == nil {
		o.Authority = sole{}
	}
	if o.Leaving == nil {
		o.Leaving = func() bool { return false }
	}
	o.RequestsMax = min(cmp.Or(o.RequestsMax, requestsMax), requestsMax)
	if o.Route == nil {
		first := route.First()
		o.Route = func() *route.Table { return first }
	}
	o.Gateway = routing.Observed(o.Gateway)
	names := slices.Clone(o.Hosts)
	for _, zone := range o.Zones {
		names = append(names, string(zone))
	}
	return &Server{
		o: o, verifier: auth.Verifier{Clock: o.Clock, FutureSkew: auth.DateWindow},
		leaders: routing.Leaders{Location: o.Location, Leader: o.Leader, Leaderless: o.Leaderless, Forward: o.Forward},
		gateway: routing.NewGateway(o.Locations, o.Epochs, o.Local, o.Forward, o.Gateway), clients: newGate(o.RequestsMax),
		sources: newGate(o.RequestsMax), hosts: hosts.New("", names...).WithAnyAddress(),
	}
}

// Handler returns the handler of the listener of a service.
func (s *Server) Handler(service geo.Service) http.Handler { return s.handler(service, false) }

// HopHandler returns the handler of a listener for the deployment's other front ends: see
// routing.Listener.
func (s *Server) HopHandler() http.Handler {
	return routing.Listener(func(service geo.Service) http.Handler { return s.handler(service, true) })
}

// handler serves clients, or peers: the deployment's other front ends. Echo serves as the
// frame of all our listeners, and none of its router is used: paths go to the service as
// they came, and a router would clean, merge or decode them before the signature is
// checked.
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
