package natsbus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"antipode/replication/bus"
)

// payloadServerMax is the largest payload the server should be run with; beyond
// 8 MiB its own documentation warns.
const payloadServerMax = 8 << 20

// ServerOptions configures an embedded server. Dir must be set.
type ServerOptions struct {
	// Dir is the folder of the store. The server owns what is in it: its streams, and
	// with Cluster the Raft logs of what the servers agree on.
	Dir string
	// Name is the server's name in logs. Empty means "antipode". In a cluster each
	// server has its own, and keeps it.
	Name string
	// Cluster joins the server with those of the location's other nodes. Nil: it
	// stands alone.
	Cluster *ClusterOptions
	// StoreBytesMax bounds all streams together, in bytes. Each stream reserves
	// its Bounds.BytesMax of it when it is made. Zero means 4 GiB.
	StoreBytesMax int64
	// Bounds are the bounds of the streams to be carried. Open fails when one
	// such stream does not fit.
	Bounds bus.Bounds
	// Listen is a host:port for publishers in other processes. Empty means that
	// the server opens no port and is reached in process only, which cannot be with
	// Cluster.
	Listen string
	// Token is asked of connections over the port, and of those in process.
	// Empty asks for none.
	Token string
	// TLS, when set, is what the port serves. It decides who may connect: ClientAuth
	// and ClientCAs, or VerifyConnection. Connections in process are not asked.
	TLS *tls.Config
	// StopWait bounds Close. Zero means 20 s.
	StopWait time.Duration
	// Log takes the server's errors, and its warnings and notices as debug. Nil drops
	// them.
	Log *slog.Logger
}

// ClusterOptions joins an embedded server with others. Three servers carry on without
// any one of them; streams want Options.Replicas 3.
type ClusterOptions struct {
	// Name is the same on each server: the location's.
	Name string
	// Listen is the host:port for the other servers.
	Listen string
	// Routes are the host:port that the others listen on. A server that is not there
	// is tried again for ever.
	Routes []string
	// TLS, when set, is used in both directions of a route, so it needs what a server
	// needs and what a client does: GetCertificate and GetClientCertificate,
	// ClientAuth, and where host names play no part InsecureSkipVerify with a
	// VerifyConnection that checks the peer.
	TLS *tls.Config
}

func (o ServerOptions) withDefaults() ServerOptions {
	o.Bounds = o.Bounds.WithDefaults()
	if o.Name == "" {
		o.Name = "antipode"
	}
	if o.StoreBytesMax == 0 {
		o.StoreBytesMax = 4 << 30
	}
	if o.StopWait == 0 {
		o.StopWait = 20 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate reports every option that cannot work.
func (o ServerOptions) Validate() error {
	o = o.withDefaults()
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("natsbus: Dir is not set"))
	}
	if o.Bounds.PayloadMax > payloadServerMax {
		errs = append(errs, fmt.Errorf("natsbus: PayloadMax %d is over the server's %d", o.Bounds.PayloadMax, payloadServerMax))
	}
	if o.Bounds.BytesMax > o.StoreBytesMax {
		errs = append(errs, fmt.Errorf("natsbus: a stream of %d bytes does not fit a store of %d", o.Bounds.BytesMax, o.StoreBytesMax))
	}
	// The server finds the others only once it listens for clients.
	if c := o.Cluster; c != nil && (c.Name == "" || c.Listen == "" || o.Listen == "") {
		errs = append(errs, errors.New("natsbus: a server of a cluster needs Cluster.Name, Cluster.Listen and Listen"))
	}
	return errors.Join(errs...)
}

// Times by which a server or a connection that is dead without a word is found out.
const (
	pingInterval    = 2 * time.Second
	pingsUnanswered = 2
)

// serverOptions is o in the server's own words.
func (o ServerOptions) serverOptions() (*server.Options, error) {
	so := &server.Options{
		ServerName:             o.Name,
		DontListen:             true,
		NoSigs:                 true,
		NoLog:                  true,
		DisableShortFirstPing:  true,
		DisableJetStreamBanner: true,
		MaxPayload:             payloadServerMax,
		Authorization:          o.Token,
		JetStream:              true,
		StoreDir:               o.Dir,
		JetStreamMaxStore:      o.StoreBytesMax,
		// No stream of ours lives in memory; the server wants a bound.
		JetStreamMaxMemory: 64 << 20,
	}
	var err error
	if o.Listen != "" {
		so.DontListen = false
		if so.Host, so.Port, err = hostPort(o.Listen); err != nil {
			return nil, fmt.Errorf("natsbus: listen address: %w", err)
		}
		so.TLSConfig, so.TLS = o.TLS, o.TLS != nil
	}
	if o.Cluster == nil {
		return so, nil
	}
	so.Cluster = server.ClusterOpts{
		Name: o.Cluster.Name, TLSConfig: o.Cluster.TLS, PingInterval: pingInterval, MaxPingsOut: pingsUnanswered,
		// A server knows its addresses as the location sees them. Publishers are
		// elsewhere, and are configured with addresses.
		NoAdvertise: true,
	}
	if so.Cluster.Host, so.Cluster.Port, err = hostPort(o.Cluster.Listen); err != nil {
		return nil, fmt.Errorf("natsbus: cluster listen address: %w", err)
	}
	for _, r := range o.Cluster.Routes {
		if _, _, err := net.SplitHostPort(r); err != nil {
			return nil, fmt.Errorf("natsbus: route: %w", err)
		}
		so.Routes = append(so.Routes, &url.URL{Scheme: "nats", Host: r})
	}
	return so, nil
}

// hostPort takes an address apart. Port 0 is any that is free.
func hostPort(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); err != nil {
		return "", 0, err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// Server is an embedded NATS server of one location. JetStream is never the only
// copy of a change, so its own fsync interval stays at its default.
type Server struct {
	o   ServerOptions
	srv *server.Server

	closeOnce sync.Once
	closeErr  error
}

// startPoll is the time between two looks whether a server that starts was stopped or failed.
const startPoll = 100 * time.Millisecond

// OpenServer starts a server on the store in o.Dir, made if it is missing, and returns when it
// takes connections. A server of a cluster may take them before it has found the others: streams
// are there when more than half of the servers are.
//
// Reading a large store back takes time, and a busy machine takes more: only ctx bounds
// the wait. An error is one that the server reports itself, such as a busy port.
func OpenServer(ctx context.Context, o ServerOptions) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	so, err := o.serverOptions()
	if err != nil {
		return nil, err
	}
	srv, err := server.NewServer(so)
	if err != nil {
		return nil, fmt.Errorf("natsbus: make server: %w", err)
	}
	s := &Server{o: o, srv: srv}
	log := &serverLog{log: o.Log}
	srv.SetLoggerV2(log, false, false, false)
	srv.Start()
	if err := s.awaitReady(ctx, log); err != nil {
		return nil, errors.Join(fmt.Errorf("natsbus: server on %s: %w", o.Dir, err), s.Close())
	}
	return s, nil
}

func (s *Server) awaitReady(ctx context.Context, log *serverLog) error {
	for {
		ready := s.srv.ReadyForConnections(startPoll)
		if fatal := log.fatal.Load(); fatal != nil {
			return errors.New(*fatal)
		}
		if ready && !s.srv.JetStreamEnabled() {
			return errors.New("JetStream is not enabled")
		}
		if ready {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// InProcessConn opens a connection within the process. It makes Server a Dialer.
func (s *Server) InProcessConn() (net.Conn, error) { return s.srv.InProcessConn() }

// URL is what other processes connect to, empty when the server does not listen.
func (s *Server) URL() string {
	if s.o.Listen == "" {
		return ""
	}
	return s.srv.ClientURL()
}

// Close stops the server and waits for it, at most StopWait. Connections to it
// notice and try again.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			s.srv.Shutdown()
			s.srv.WaitForShutdown()
		}()
		timer := time.NewTimer(s.o.StopWait)
		defer timer.Stop()
		select {
		case <-stopped:
		case <-timer.C:
			s.closeErr = fmt.Errorf("natsbus: server on %s still runs after %v", s.o.Dir, s.o.StopWait)
		}
	})
	return s.closeErr
}
