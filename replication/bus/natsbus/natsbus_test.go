package natsbus

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/replication/bus"
	"antipode/replication/bus/bustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for the server; it is reached only by a failure.
const patience = time.Minute

// site is the bus of one location: a server that can be stopped, wiped and
// started again, and a connection that outlives it.
type site struct {
	t    *testing.T
	dir  string
	o    Options
	conn *Conn

	mu  sync.Mutex
	srv *Server
}

func newSite(t *testing.T, b bus.Bounds) *site {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s := &site{t: t, dir: t.TempDir(), o: Options{
		Source: bustest.Source, Bounds: b, AckTimeout: time.Second, Log: log,
	}}
	s.start()
	var err error
	s.conn, err = Connect(ConnOptions{Server: s, Log: log, RetryWait: 20 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = Ensure(ctx, s.conn, s.o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.conn.Close())
		s.stop()
	})
	return s
}

// InProcessConn reaches the server that runs now.
func (s *site) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv == nil {
		return nil, net.ErrClosed
	}
	return s.srv.InProcessConn()
}

func (s *site) start() {
	srv, err := OpenServer(s.t.Context(), ServerOptions{Dir: s.dir, Bounds: s.o.Bounds, Log: s.o.Log})
	require.NoError(s.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.srv = srv
}

func (s *site) stop() {
	s.mu.Lock()
	srv := s.srv
	s.srv = nil
	s.mu.Unlock()
	require.NoError(s.t, srv.Close())
}

func (s *site) Publisher(t *testing.T) bus.Publisher {
	p, err := OpenPublisher(s.conn, s.o)
	require.NoError(t, err)
	return p
}

func (s *site) Consumer(t *testing.T) bus.Consumer {
	q, err := OpenConsumer(s.conn, s.o)
	require.NoError(t, err)
	return q
}

func (s *site) Recreate(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, s.conn.js.DeleteStream(ctx, StreamName(s.o.Source)))
}

func (s *site) Step()              {}
func (s *site) Pass(time.Duration) {}

// The JetStream bus keeps the promises of every bus.
// It holds invariant 8.
func TestConformance(t *testing.T) {
	bustest.Run(t, func(t *testing.T, b bus.Bounds) bustest.Bus { return newSite(t, b) })
}

// A server that is shut down as soon as the one who makes the stream gives up leaves nothing open: the
// making is not left half way. goleak finds a store that stays open.
func TestServerStopsWhileAStreamIsMade(t *testing.T) {
	for i := range 40 {
		srv, err := OpenServer(t.Context(), ServerOptions{Dir: t.TempDir()})
		require.NoError(t, err)
		c, err := Connect(ConnOptions{Server: srv})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
		_, _ = Ensure(ctx, c, Options{Source: "north"})
		cancel()
		require.NoError(t, c.Close())
		require.NoError(t, srv.Close())
	}
}
