package natsbus

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/replication/bus"
	"antipode/replication/bus/bustest"
)

// A refusal for want of room is ErrFull, a message that never fits is ErrTooLarge, and everything
// else passes: ErrUnavailable.
func TestPublishError(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want error
	}{
		{&jetstream.APIError{ErrorCode: 10077, Description: "maximum bytes exceeded"}, bus.ErrFull},
		{&jetstream.APIError{ErrorCode: 10077, Description: "maximum messages exceeded"}, bus.ErrFull},
		{&jetstream.APIError{ErrorCode: 10077, Description: "message too large"}, bus.ErrTooLarge},
		{&jetstream.APIError{ErrorCode: 10077, Description: "store is closed"}, bus.ErrUnavailable},
		{&jetstream.APIError{ErrorCode: 10047}, bus.ErrFull},
		{&jetstream.APIError{ErrorCode: 10023}, bus.ErrFull},
		{&jetstream.APIError{ErrorCode: 10167}, bus.ErrFull},
		{&jetstream.APIError{ErrorCode: 10054}, bus.ErrTooLarge},
		{&jetstream.APIError{ErrorCode: 10076}, bus.ErrUnavailable},
		{nats.ErrMaxPayload, bus.ErrTooLarge},
		{nats.ErrDisconnected, bus.ErrUnavailable},
		{nats.ErrReconnectBufExceeded, bus.ErrUnavailable},
		{jetstream.ErrAsyncPublishTimeout, bus.ErrUnavailable},
		{jetstream.ErrNoStreamResponse, bus.ErrUnavailable},
		{errors.New("anything"), bus.ErrUnavailable},
	} {
		got := publishError(tt.err)
		require.ErrorIs(t, got, tt.want, "%v", tt.err)
		require.ErrorContains(t, got, tt.err.Error())
	}
}

// Wrong options are refused by name, all of them at once.
func TestValidate(t *testing.T) {
	require.NoError(t, Options{Source: "north-1"}.Validate())
	err := Options{Source: "a.b", Replicas: -1, AckTimeout: -1}.Validate()
	for _, want := range []string{`"a.b"`, "-1 replicas", "negative time"} {
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, ServerOptions{Dir: "x"}.Validate())
	err = ServerOptions{
		StoreBytesMax: 1 << 20,
		Bounds:        bus.Bounds{PayloadMax: 9 << 20, BytesMax: 2 << 20},
		Cluster:       &ClusterOptions{Name: "north", Listen: ":10200"},
	}.Validate()
	for _, want := range []string{"Dir is not set", "a server of a cluster needs", "PayloadMax 9437184", "2097152 bytes"} {
		require.ErrorContains(t, err, want)
	}
	_, err = Connect(ConnOptions{})
	require.ErrorContains(t, err, "neither Server nor URLs")
}

// Ensure repeated changes nothing, and new limits are taken over without a new
// incarnation, over a restart too.
func TestEnsure(t *testing.T) {
	s := newSite(t, bus.Bounds{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	infos := func() (*jetstream.StreamInfo, *jetstream.ConsumerInfo) {
		st, err := s.conn.js.Stream(ctx, StreamName(s.o.Source))
		require.NoError(t, err)
		q, err := st.Consumer(ctx, consumerName)
		require.NoError(t, err)
		return st.CachedInfo(), q.CachedInfo()
	}
	st, q := infos()
	full := s.o.withDefaults()
	require.True(t, sameStream(st.Config, full.streamConfig()), "an update on every call")
	require.True(t, sameConsumer(q.Config, full.consumerConfig()), "an update on every call")
	require.Equal(t, jetstream.InterestPolicy, st.Config.Retention)
	require.Equal(t, jetstream.FileStorage, st.Config.Storage)
	require.Equal(t, jetstream.AckAllPolicy, q.Config.AckPolicy)

	made, err := Ensure(ctx, s.conn, s.o)
	require.NoError(t, err)
	s.o.Bounds = bus.Bounds{BytesMax: 2 << 20, AckWait: time.Second, AckPendingMax: 7}
	again, err := Ensure(ctx, s.conn, s.o)
	require.NoError(t, err)
	require.True(t, made.Equal(again))
	st, q = infos()
	require.EqualValues(t, 2<<20, st.Config.MaxBytes)
	require.Equal(t, time.Second, q.Config.AckWait)
	require.Equal(t, 7, q.Config.MaxAckPending)

	s.stop()
	require.Eventually(t, func() bool { return !s.conn.Connected() }, patience, time.Millisecond)
	s.start()
	require.Eventually(t, s.conn.Connected, patience, time.Millisecond)
	again, err = Ensure(ctx, s.conn, s.o)
	require.NoError(t, err)
	require.True(t, made.Equal(again), "%v is not %v", again, made)
}

// A stream that was made and whose consumer was not yet takes no message that it
// would only drop.
func TestNoMessageBeforeConsumer(t *testing.T) {
	s := newSite(t, bus.Bounds{})
	s.Recreate(t)
	_, err := ensureStream(t.Context(), s.conn.js, s.o.withDefaults())
	require.NoError(t, err)
	p := s.Publisher(t)
	require.ErrorIs(t, publish(p, []byte("a")), bus.ErrUnavailable)
	_, err = Ensure(t.Context(), s.conn, s.o)
	require.NoError(t, err)
	require.NoError(t, publish(p, []byte("b")))
	q := s.Consumer(t)
	receive(t, q, func(m bus.Message) bool {
		require.Equal(t, "b", string(m.Data))
		return true
	})
	require.NoError(t, p.Close())
	require.NoError(t, q.Close())
}

// With retention by interest, what is acknowledged takes no room.
func TestAcknowledgedTakesNoRoom(t *testing.T) {
	s := newSite(t, bus.Bounds{})
	p, q := s.Publisher(t), s.Consumer(t)
	for range 20 {
		require.NoError(t, publish(p, make([]byte, 1<<10)))
	}
	n := 0
	receive(t, q, func(bus.Message) bool { n++; return n == 20 })
	require.Eventually(t, func() bool {
		st, err := s.conn.js.Stream(t.Context(), StreamName(s.o.Source))
		require.NoError(t, err)
		return st.CachedInfo().State.Msgs == 0 && st.CachedInfo().State.Bytes == 0
	}, patience, time.Millisecond)
	require.NoError(t, p.Close())
	require.NoError(t, q.Close())
}

// A publisher takes its own stream's subjects only.
func TestWrongSubject(t *testing.T) {
	s := newSite(t, bus.Bounds{})
	p := s.Publisher(t)
	err := p.Publish("geo.elsewhere.table.1", nil, func(error) { t.Error("done of a refused publish") })
	require.ErrorContains(t, err, "does not begin with")
	require.NoError(t, p.Close())
}

// A server that takes less than the largest frame is found out at the start.
func TestPayloadCheckedAtStart(t *testing.T) {
	s := newSite(t, bus.Bounds{})
	s.o.Bounds.PayloadMax = 8<<20 + 1
	_, err := OpenPublisher(s.conn, s.o)
	require.ErrorContains(t, err, "8388609 are needed")
	_, err = Ensure(t.Context(), s.conn, s.o)
	require.ErrorContains(t, err, "8388609 are needed")
}

// A location may be reached over a port with a token, by publishers that started
// before it did.
func TestOverPort(t *testing.T) {
	dir := t.TempDir()
	srv, err := OpenServer(t.Context(), ServerOptions{Dir: dir, Listen: "127.0.0.1:0", Token: "secret"})
	require.NoError(t, err)
	url := srv.URL()
	require.NotEmpty(t, url)
	require.NoError(t, srv.Close())

	o := Options{Source: bustest.Source, AckTimeout: time.Second}
	conn, err := Connect(ConnOptions{URLs: []string{url}, Token: "secret", RetryWait: 20 * time.Millisecond})
	require.NoError(t, err)
	p, err := OpenPublisher(conn, o)
	require.NoError(t, err)
	q, err := OpenConsumer(conn, o)
	require.NoError(t, err)
	require.ErrorIs(t, publish(p, []byte("early")), bus.ErrUnavailable)
	_, err = q.Poll(1)
	require.ErrorIs(t, err, bus.ErrUnavailable)

	srv, err = OpenServer(t.Context(), ServerOptions{Dir: dir, Listen: url[len("nats://"):], Token: "secret"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return publish(p, []byte("late")) == nil }, patience, 10*time.Millisecond)
	receive(t, q, func(m bus.Message) bool { return string(m.Data) == "late" })
	require.NoError(t, q.Close())
	require.NoError(t, p.Close())
	require.NoError(t, conn.Close())
	require.NoError(t, srv.Close())
}

// Everything closes in good time while the server was never there.
func TestCloseWhileAway(t *testing.T) {
	conn, err := Connect(ConnOptions{Server: &site{}})
	require.NoError(t, err)
	p, err := OpenPublisher(conn, Options{Source: "x"})
	require.NoError(t, err)
	q, err := OpenConsumer(conn, Options{Source: "x"})
	require.NoError(t, err)
	done := make(chan error, 1)
	require.NoError(t, p.Publish("geo.x.table.1", nil, func(err error) { done <- err }))
	require.ErrorIs(t, <-done, bus.ErrUnavailable)
	require.NoError(t, q.Close())
	require.NoError(t, p.Close())
	require.NoError(t, conn.Close())
}

// A server that says nothing is lost after a while in which this process ran: a pause of
// one's own is no silence of the server's, and a process that is always late waits longer,
// not for ever.
func TestSilenceLeavesOutPauses(t *testing.T) {
	const every, longest = 250 * time.Millisecond, 3 * time.Second
	s, now := newSilence(longest, clock.NewRunning(every)), time.Duration(0)
	look := func(after time.Duration) bool {
		now += after
		return s.overdue(now)
	}
	s.received()
	for range 12 { // The first one counts from here.
		require.False(t, look(every))
	}
	require.False(t, look(time.Hour), "the process stood still: what the server said waits")
	require.True(t, look(every), "it ran, and the server said nothing")

	s.received()
	looks := 0
	for !look(3 * every) {
		looks++
	}
	require.Greater(t, looks, 11)
	require.Less(t, looks, 24, "a process that is slow throughout finds a dead server too")
}

// A server that cannot start reports the cause at once, and no wait for a server goes on after its
// context has ended: checked with a port that is in use.
func TestServerCannotStart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	o := ServerOptions{Dir: t.TempDir(), Listen: l.Addr().String()}
	_, err = OpenServer(t.Context(), o)
	require.ErrorContains(t, err, "address already in use")
	require.ErrorContains(t, err, l.Addr().String())
}
