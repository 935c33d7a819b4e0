package nameserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"antipode/failover/dns"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/metrics"
	"antipode/server/listen"
)

// Options configures a Server. Push and Every may be zero.
type Options struct {
	// Addr is host:port of UDP and TCP, Dir the folder of the file of names.
	Addr    string
	Dir     string
	Zone    dns.ZoneOptions
	Sources []dns.Source
	// Push are the servers that the records are pushed to.
	Push []Push
	// Ports is where an operator chooses the port.
	Ports string
	// Every: see dns.PollerOptions.
	Every      time.Duration
	Clock      clock.Clock
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Push is a server that takes updates.
type Push struct {
	Server string
	Key    dns.Key
}

// Server is the name server of a zone: it asks the locations, answers, and pushes. Close must follow.
type Server struct {
	view    *dns.View
	poller  *dns.Poller
	pushers []*dns.Pusher
	server  *dns.Server
	cancel  context.CancelFunc
	done    errgroup.Group
}

// Start listens and begins to ask the locations. Until one has answered, or if the folder has a file of names,
// names of accounts are answered with SERVFAIL.
func Start(o Options) (*Server, error) {
	zone, err := dns.NewZone(o.Zone)
	if err != nil {
		return nil, err
	}
	var servers []string
	for _, p := range o.Push {
		servers = append(servers, p.Server)
	}
	observer, err := metrics.NewDNS(o.Registerer, servers, dns.Outcomes())
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if s.view, err = dns.OpenView(vfs.Default, o.Dir, o.Logger); err != nil {
		return nil, err
	}
	s.poller = dns.NewPoller(dns.PollerOptions{
		Sources: o.Sources, View: s.view, Clock: o.Clock, Every: o.Every, Observer: observer, Logger: o.Logger,
	})
	for _, p := range o.Push {
		s.pushers = append(s.pushers, dns.NewPusher(dns.PusherOptions{
			Server: p.Server, Key: p.Key, Zone: zone, View: s.view, Clock: o.Clock, Observer: observer, Logger: o.Logger,
		}))
	}
	if err := metrics.RegisterDNS(o.Registerer, s.sample); err != nil {
		return nil, err
	}
	if s.server, err = dns.Listen(dns.ServerOptions{Addr: o.Addr, Zone: zone, View: s.view, Observer: observer, Logger: o.Logger}); err != nil {
		return nil, fmt.Errorf("%w; %s", err, listen.Remedy(err, o.Ports))
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.done.Go(func() error { return s.poller.Run(ctx) })
	for _, p := range s.pushers {
		s.done.Go(func() error { return p.Run(ctx) })
	}
	return s, nil
}

// Addr returns the address that is listened on.
func (s *Server) Addr() string { return s.server.Addr().String() }

// sample is what the gauges show.
func (s *Server) sample() metrics.DNSSample {
	out := metrics.DNSSample{Accounts: s.view.Len(), Ages: map[geo.Location]time.Duration{}, Waiting: map[string]int{}}
	for _, a := range s.poller.Ages() {
		out.Ages[a.Location] = a.Age
	}
	for _, p := range s.pushers {
		out.Waiting[p.Server()] = p.Waiting()
	}
	return out
}

// Close answers the queries that were taken, and ends.
func (s *Server) Close() error {
	s.cancel()
	return errors.Join(s.server.Close(), s.done.Wait())
}
