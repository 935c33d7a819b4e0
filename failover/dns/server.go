package dns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	msg "github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"antipode/internal/clock"
)

// Limits of a server.
const (
	// udpBytesMax is the size of a datagram that is not fragmented on its way (DNS flag day 2020).
	udpBytesMax = 1232
	// connsMax bounds the TCP connections; one more is closed at once.
	connsMax = 512
	// connQueriesMax bounds the queries of a connection, idleMax the time between two of them, and readMax the
	// time that one may take to arrive, and an answer to leave.
	connQueriesMax = 1000
	idleMax        = 10 * time.Second
	readMax        = 2 * time.Second
	drainMax       = 5 * time.Second
)

// Observer counts what happens. Methods may be called concurrently.
type Observer interface {
	// Answered counts an answer over "udp" or "tcp" to a question of a type, one of Types, with a code, one of Codes.
	Answered(transport, kind, code string)
	// Failed counts a failure to write the file of names.
	Failed()
	// Pushed counts an update of a server by how it ended, one of Outcomes.
	Pushed(server, outcome string)
}

// Types are the types of questions that are counted by themselves; the last one stands for all others.
func Types() []string {
	return []string{"A", "AAAA", "CNAME", "NS", "SOA", "TXT", "other"}
}

// Codes are the codes of answers.
func Codes() []string {
	return []string{"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "BADVERS"}
}

// ServerOptions configures a Server. All fields are required.
type ServerOptions struct {
	// Addr is host:port, of UDP and TCP. Port 0 is a free one, the same of both.
	Addr     string
	Zone     *Zone
	View     *View
	Observer Observer
	Logger   *slog.Logger
}

// Server answers queries. It never asks another server.
type Server struct {
	o       ServerOptions
	servers []*msg.Server
	addr    net.Addr
	done    errgroup.Group
	close   func() error
}

// portTries is how often a free port is looked for: one that TCP has may be taken of UDP.
const portTries = 10

// open opens both sockets on one port.
func open(addr string) (l net.Listener, p net.PacketConn, err error) {
	_, port, _ := net.SplitHostPort(addr) // Listen says what is wrong with it.
	for try := 1; ; try++ {
		if l, err = net.Listen("tcp", addr); err != nil {
			return nil, nil, fmt.Errorf("cannot listen on %s (TCP): %w", addr, err)
		}
		if p, err = net.ListenPacket("udp", l.Addr().String()); err == nil {
			return l, p, nil
		}
		if err = errors.Join(fmt.Errorf("cannot listen on %s (UDP): %w", addr, err), l.Close()); port != "0" || try == portTries {
			return nil, nil, err
		}
	}
}

// Listen opens both sockets and answers until Close.
func Listen(o ServerOptions) (*Server, error) {
	l, p, err := open(o.Addr)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, addr: l.Addr()}
	s.close = sync.OnceValue(s.shutdown)
	handler := msg.HandlerFunc(s.serve)
	s.servers = []*msg.Server{
		{PacketConn: p, UDPSize: msg.DefaultMsgSize, Handler: handler},
		{
			Listener: newBounded(l), Handler: handler, MaxTCPQueries: connQueriesMax,
			ReadTimeout: readMax, IdleTimeout: func() time.Duration { return idleMax },
		},
	}
	for _, server := range s.servers {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		s.done.Go(server.ActivateAndServe)
		<-started // Both sockets are open, so that it starts.
	}
	return s, nil
}

// Addr returns the address that is listened on.
func (s *Server) Addr() net.Addr { return s.addr }

// Close takes no more queries, and returns when those that were taken are answered. A second call does nothing.
func (s *Server) Close() error { return s.close() }

func (s *Server) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainMax)
	defer cancel()
	var stop errgroup.Group
	for _, server := range s.servers {
		stop.Go(func() error { return server.ShutdownContext(ctx) })
	}
	return errors.Join(stop.Wait(), s.done.Wait())
}

// serve answers a message.
func (s *Server) serve(w msg.ResponseWriter, r *msg.Msg) {
	transport := "tcp"
	if _, udp := w.LocalAddr().(*net.UDPAddr); udp {
		transport = "udp"
	}
	m := s.reply(r, transport == "udp")
	kind := "other"
	if len(r.Question) == 1 {
		kind = typeName(r.Question[0].Qtype)
	}
	s.o.Observer.Answered(transport, kind, msg.RcodeToString[m.Rcode])
	if err := w.WriteMsg(m); err != nil {
		s.o.Logger.Debug("an answer did not leave", "to", w.RemoteAddr().String(), "error", err)
	}
}

func typeName(t uint16) string {
	name := msg.TypeToString[t]
	for _, known := range Types() {
		if name == known {
			return known
		}
	}
	return "other"
}

// reply returns the whole answer to a message, cut to what the asker takes (RFC 6891).
func (s *Server) reply(r *msg.Msg, udp bool) *msg.Msg {
	m := new(msg.Msg)
	m.SetReply(r)
	size := msg.MaxMsgSize
	if udp {
		size = msg.MinMsgSize
	}
	opt := r.IsEdns0()
	switch {
	case r.Opcode != msg.OpcodeQuery:
		m.Rcode = msg.RcodeNotImplemented
	case len(r.Question) != 1 || extraOPT(r):
		m.Rcode = msg.RcodeFormatError
	case opt != nil && opt.Version() != 0:
		m.Rcode = msg.RcodeBadVers
	default:
		a := s.o.Zone.answer(s.o.View, r.Question[0])
		m.Rcode, m.Authoritative = a.code, a.authoritative()
		m.Answer, m.Ns, m.Extra = a.answer, a.authority, a.additional
	}
	if opt != nil {
		if udp {
			size = max(size, min(int(opt.UDPSize()), udpBytesMax))
		}
		m.SetEdns0(udpBytesMax, opt.Do())
	}
	m.Truncate(size)
	return m
}

// extraOPT reports whether a message has more than one OPT record.
func extraOPT(r *msg.Msg) bool {
	n := 0
	for _, rr := range r.Extra {
		if rr.Header().Rrtype == msg.TypeOPT {
			n++
		}
	}
	return n > 1
}

// bounded is a listener with at most connsMax connections.
type bounded struct {
	net.Listener
	free chan struct{}
}

func newBounded(l net.Listener) *bounded {
	b := &bounded{l, make(chan struct{}, connsMax)}
	for range connsMax {
		b.free <- struct{}{}
	}
	return b
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case <-b.free:
			return &boundedConn{Conn: c, leave: sync.OnceFunc(func() { b.free <- struct{}{} })}, nil
		default:
			_ = c.Close() // The asker tries again, or another server.
		}
	}
}

// boundedConn gives its place back when it is closed. A write that its peer does not take within readMax fails, since
// WriteTimeout of msg.Server has no effect: a client that asks and never reads would keep the place.
type boundedConn struct {
	net.Conn
	leave func()
}

// Write implements net.Conn.
func (c *boundedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(clock.System{}.Now().Add(readMax)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
