package natsbus

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/replication/bus"
	"antipode/replication/bus/bustest"
)

// scripted is a puller whose requests the test answers instead of a stream, and those requests.
func scripted(t *testing.T, answer func(nc *nats.Conn, reply string, r pullRequest)) (*puller, *[]pullRequest) {
	s := newSite(t, bus.Bounds{})
	require.Eventually(t, s.conn.Connected, patience, time.Millisecond)
	o := s.o.withDefaults()
	p, err := newPuller(s.conn.nc, o, clock.NewRunning(o.lookEvery()))
	require.NoError(t, err)
	t.Cleanup(p.close)
	p.subject = "scripted"
	requests := &[]pullRequest{}
	sub, err := s.conn.nc.Subscribe(p.subject, func(m *nats.Msg) {
		var r pullRequest
		if err := json.Unmarshal(m.Data, &r); err != nil {
			t.Error(err)
		}
		*requests = append(*requests, r)
		answer(s.conn.nc, m.Reply, r)
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sub.Unsubscribe()) })
	return p, requests
}

// say sends what a server says about a pull.
func say(t *testing.T, nc *nats.Conn, reply, code, what, pending string) {
	h := nats.Header{headerStatus: {code}, headerDescription: {what}, headerPending: {pending}}
	if err := nc.PublishMsg(&nats.Msg{Subject: reply, Header: h}); err != nil {
		t.Error(err)
	}
}

// A pull ends when its messages have come, also if the server of a cluster ended it ahead of them.
func TestPullAwaitsItsMessages(t *testing.T) {
	for _, tt := range []struct {
		code, what, pending string
		want                int
	}{
		{"409", pullCompleted, "0", 5},
		{"409", pullTooLarge, "2", 3},
		{"408", "Request Timeout", "1", 4},
		{"408", "Request Timeout", "5", 0},
		{"404", "No Messages", "", 0},
	} {
		p, requests := scripted(t, func(nc *nats.Conn, reply string, _ pullRequest) {
			say(t, nc, reply, "100", "Idle Heartbeat", "")
			say(t, nc, reply, tt.code, tt.what, tt.pending)
			for range tt.want {
				if err := nc.Publish(reply, []byte("late")); err != nil {
					t.Error(err)
				}
			}
		})
		took, err := p.pull(t.Context(), 5, func(m *nats.Msg) error {
			require.Equal(t, "late", string(m.Data))
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, tt.want, took, "%v", tt)
		require.Len(t, *requests, 1)
	}
}

// A message that does not fit the bytes of a pull is pulled alone.
func TestPullOfALargeMessage(t *testing.T) {
	p, requests := scripted(t, func(nc *nats.Conn, reply string, r pullRequest) {
		if r.MaxBytes == pullBytesMax {
			say(t, nc, reply, "409", pullTooLarge, "5")
			return
		}
		if err := nc.Publish(reply, []byte("large")); err != nil {
			t.Error(err)
		}
	})
	took, err := p.pull(t.Context(), 5, func(*nats.Msg) error { return nil })
	require.NoError(t, err)
	require.Equal(t, 1, took)
	require.Len(t, *requests, 2)
	require.Equal(t, 1, (*requests)[1].Batch)
	require.Equal(t, bus.Bounds{}.WithDefaults().PayloadMax+pullOverhead, (*requests)[1].MaxBytes)
}

// Messages that three servers delivered and nobody polled are bounded by what is fetched ahead.
// They end a pull before its messages come.
func TestClusterDeliversNoMoreThanWasAsked(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("elections of JetStream take seconds")
	}
	const messages, size = 200, 100 << 10
	c := newCluster(t)
	for i := range c.servers {
		c.start(i)
	}
	conn := c.connect(ConnOptions{TLS: c.tls})
	o := Options{Source: bustest.Source, Replicas: 3}
	require.Eventually(t, conn.Connected, patience, time.Millisecond)
	_, err := Ensure(t.Context(), conn, o)
	require.NoError(t, err)
	c.leader(conn, o)
	p, err := OpenPublisher(conn, o)
	require.NoError(t, err)
	for range messages {
		err := publish(p, make([]byte, size))
		for errors.Is(err, bus.ErrUnavailable) { // On a starved machine the servers elect another leader.
			err = publish(p, make([]byte, size))
		}
		require.NoError(t, err)
	}
	require.NoError(t, p.Close())
	opened, err := OpenConsumer(conn, o)
	require.NoError(t, err)
	for full := false; !full; {
		info, err := conn.js.Consumer(t.Context(), StreamName(o.Source), consumerName)
		require.NoError(t, err)
		require.LessOrEqual(t, info.CachedInfo().NumAckPending, pullMessagesMax)
		opened.mu.Lock()
		full = len(opened.ready) > pullMessagesMax/2
		opened.mu.Unlock()
	}
	n := 0
	receive(t, opened, func(m bus.Message) bool { n++; return n == messages })
	require.NoError(t, opened.Close())
}

// Messages that are acknowledged together are acknowledged one by one, in order, so that the server deletes them in
// order too.
func TestAcksAreInOrder(t *testing.T) {
	const messages = 7
	s := newSite(t, bus.Bounds{})
	acks, err := s.conn.nc.SubscribeSync("$JS.ACK." + StreamName(s.o.Source) + ".>")
	require.NoError(t, err)
	p, q := s.Publisher(t), s.Consumer(t)
	for range messages {
		require.NoError(t, publish(p, []byte("x")))
	}
	var got []bus.Message
	for len(got) < messages {
		require.NoError(t, q.Wait(t.Context()))
		more, err := q.Poll(messages)
		require.NoError(t, err)
		got = append(got, more...)
	}
	require.NoError(t, q.Ack(got[messages-1]))
	for i := range got {
		m, err := acks.NextMsg(patience)
		require.NoError(t, err)
		require.Contains(t, m.Subject, fmt.Sprintf(".1.%d.%d.", got[i].Seq, i+1))
	}
	require.NoError(t, q.Close())
	require.NoError(t, p.Close())
}
