package natsbus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Dialer reaches a server within the process. Server is one; a caller may wrap it,
// to cut the link or to put another server in its place.
type Dialer interface {
	InProcessConn() (net.Conn, error)
}

// ConnOptions configures a connection. Server or URLs must be set.
type ConnOptions struct {
	// Server is an embedded server. It wins over URLs.
	Server Dialer
	// URLs are servers of one cluster, nats:// or tls://, any of which will do; the
	// others are tried when it fails. With no others the cluster's word is taken.
	URLs []string
	// Token is what the server asks for. Empty gives none.
	Token string
	// Credentials is the path of a NATS credentials file, read again for each connection.
	// Empty gives none.
	Credentials string
	// TLS, when set, is used with URLs, whatever their scheme: a server that offers
	// no TLS is refused. Nil means the system's authorities where the URL or the
	// server asks for TLS.
	TLS *tls.Config
	// Name distinguishes connections in the server's logs. Empty means "antipode".
	Name string
	// RetryWait is the pause, give or take a quarter, after all servers were tried.
	// Zero means 200 ms. The connection never gives up.
	RetryWait time.Duration
	// WriteWait bounds one write to the network. Zero means 5 s. A link that
	// takes no bytes for so long counts as lost.
	WriteWait time.Duration
	// Log takes lost and regained connections. Nil drops them.
	Log *slog.Logger
}

func (o ConnOptions) withDefaults() ConnOptions {
	if o.Name == "" {
		o.Name = "antipode"
	}
	if o.RetryWait == 0 {
		o.RetryWait = 200 * time.Millisecond
	}
	if o.WriteWait == 0 {
		o.WriteWait = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// errLinkDown is why work on a lost connection was given up.
var errLinkDown = errors.New("natsbus: connection lost")

// Conn is a connection to a server, shared by any number of publishers and
// consumers. It reconnects by itself for as long as it is open.
type Conn struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	log *slog.Logger
	// finished is closed when the last callback of a closed connection returned.
	finished chan struct{}

	mu sync.Mutex
	// up is closed while connected, down is closed when the connection of that
	// time is lost. Both are replaced when they were used up. Guarded by mu.
	up, down chan struct{}
	isUp     bool
	// refusals counts attempts since the connection was up, why is the reason that was
	// logged last. Guarded by mu.
	refusals int
	why      string
}

// Connect returns a connection, which need not be up yet: a location starts while
// the other one is away.
func Connect(o ConnOptions) (*Conn, error) {
	o = o.withDefaults()
	if o.Server == nil && len(o.URLs) == 0 {
		return nil, errors.New("natsbus: neither Server nor URLs are set")
	}
	c := &Conn{
		log:      o.Log,
		finished: make(chan struct{}),
		up:       make(chan struct{}),
		down:     make(chan struct{}),
	}
	var err error
	if c.nc, err = nats.Connect(strings.Join(o.URLs, ","), c.options(o)...); err != nil {
		return nil, fmt.Errorf("natsbus: connect: %w", err)
	}
	if c.js, err = jetstream.New(c.nc); err != nil {
		return nil, errors.Join(fmt.Errorf("natsbus: jetstream: %w", err), c.Close())
	}
	return c, nil
}

// options is o in the library's words.
func (c *Conn) options(o ConnOptions) []nats.Option {
	opts := []nats.Option{
		nats.Name(o.Name),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(o.RetryWait),
		nats.ReconnectJitter(o.RetryWait/4, o.RetryWait/4),
		// No buffer: a message published while the link is down must fail, not
		// arrive after messages that were published later.
		nats.ReconnectBufSize(-1),
		nats.FlusherTimeout(o.WriteWait),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(pingsUnanswered),
		// A server may refuse us until somebody has corrected its configuration.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectErrHandler(c.refused),
		nats.ConnectHandler(c.raised),
		nats.ReconnectHandler(c.raised),
		nats.DisconnectErrHandler(c.dropped),
		nats.ClosedHandler(func(*nats.Conn) { close(c.finished) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.log.Warn("stream connection error", "err", err)
		}),
	}
	if o.Token != "" {
		opts = append(opts, nats.Token(o.Token))
	}
	if o.Credentials != "" {
		opts = append(opts, nats.UserCredentials(o.Credentials))
	}
	if o.Server != nil {
		opts = append(opts, nats.InProcessServer(o.Server))
	} else if o.TLS != nil {
		opts = append(opts, nats.Secure(o.TLS))
	}
	return opts
}

// Close ends the connection. Publishers and consumers on it should be closed
// before; what they still do fails.
func (c *Conn) Close() error {
	c.nc.Close()
	<-c.finished
	return nil
}

// raised runs when the connection is there. The library calls these handlers one
// after the other.
func (c *Conn) raised(*nats.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raise()
}

func (c *Conn) raise() {
	if !c.isUp {
		c.isUp = true
		c.refusals, c.why = 0, ""
		close(c.up)
	}
}

// dropped runs when the connection is lost. By then it may be back: work on the
// lost one ends all the same, since what the server had to say went with it.
func (c *Conn) dropped(nc *nats.Conn, err error) {
	if !nc.IsClosed() {
		c.log.Warn("stream connection lost", "err", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.down)
	c.down = make(chan struct{})
	if c.isUp {
		c.isUp = false
		c.up = make(chan struct{})
	}
	if nc.IsConnected() {
		c.raise()
	}
}

// refusalsQuiet is how often an attempt to connect may fail before it is logged: a
// location starts before the other one, and a server that restarts is soon back.
const refusalsQuiet = 20

// refused logs why no server can be reached, once for each reason. The
// library calls it after each attempt.
func (c *Conn) refused(_ *nats.Conn, err error) {
	c.mu.Lock()
	c.refusals++
	report := c.refusals >= refusalsQuiet && c.why != err.Error()
	if report {
		c.why = err.Error()
	}
	c.mu.Unlock()
	if report {
		c.log.Warn("cannot connect to the stream's servers; trying again", "err", err)
	}
}

// whileUp waits for the connection and returns a context that ends with it, or
// with ctx. The caller must cancel it.
func (c *Conn) whileUp(ctx context.Context) (context.Context, context.CancelFunc, error) {
	c.mu.Lock()
	up, down := c.up, c.down
	c.mu.Unlock()
	select {
	case <-up:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	linked, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-down:
			cancel(errLinkDown)
		case <-linked.Done():
		}
	}()
	return linked, func() { cancel(nil); <-ended }, nil
}

// payloadMax is the largest payload that the server takes; known is false until a server
// was reached. The order matters: a connection that comes up between the two reads must
// not pass for a server that takes nothing.
func (c *Conn) payloadMax() (bytes int64, known bool) {
	known = c.Connected()
	return c.nc.MaxPayload(), known
}

// Connected reports whether the connection is up.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }
