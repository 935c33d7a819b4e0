package natsbus

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"antipode/replication/bus"
	"antipode/replication/bus/bustest"
)

// sender publishes the numbers 1, 2, ... in the background, each until the bus confirms
// that it is stored, as ship does with its outbox.
type sender struct {
	p    bus.Publisher
	next int
}

func (s *sender) run(ctx context.Context) {
	for ; ctx.Err() == nil; s.next++ {
		for ctx.Err() == nil {
			if publish(s.p, []byte(strconv.Itoa(s.next))) == nil {
				break
			}
			timer := time.NewTimer(5 * time.Millisecond)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
	}
}

// receive polls until ok reports that it has seen enough, acknowledging everything.
func receive(t *testing.T, q bus.Consumer, ok func(bus.Message) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		got, err := q.Poll(16)
		if err != nil {
			require.ErrorIs(t, err, bus.ErrUnavailable)
		}
		for _, m := range got {
			require.NoError(t, q.Ack(m))
			if ok(m) {
				return
			}
		}
		if len(got) == 0 {
			if err := q.Wait(ctx); err != nil && !errors.Is(err, bus.ErrUnavailable) {
				t.Fatalf("wait: %v", err)
			}
		}
	}
}

// R15: the store may be deleted at any time, through the server's API or with the
// server stopped. The publisher and the consumer that were open go on, and the
// messages that come then carry a new incarnation, unless the store was kept.
func TestStoreLostUnderLoad(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lose  func(*testing.T, *site)
		fresh bool
	}{
		{"server restarted, store kept", func(_ *testing.T, s *site) { s.stop(); s.start() }, false},
		{"stream deleted", func(t *testing.T, s *site) { s.Recreate(t) }, true},
		{"consumer deleted", func(t *testing.T, s *site) {
			require.NoError(t, s.conn.js.DeleteConsumer(t.Context(), StreamName(s.o.Source), consumerName))
		}, true},
		{"folder emptied while stopped", func(t *testing.T, s *site) {
			s.stop()
			empty(t, s.dir)
			s.start()
		}, true},
		{"folder emptied while running, then restarted", func(t *testing.T, s *site) {
			empty(t, s.dir)
			s.stop()
			empty(t, s.dir)
			s.start()
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, bus.Bounds{})
			p, q := s.Publisher(t), s.Consumer(t)
			ctx, cancel := context.WithCancel(t.Context())
			send := &sender{p: p, next: 1}
			stopped := make(chan struct{})
			go func() { defer close(stopped); send.run(ctx) }()

			var before bus.Message
			last := 0
			receive(t, q, func(m bus.Message) bool { before = m; last++; return last == 200 })
			tt.lose(t, s)
			// What was stored at the time may be lost; later ones arrive.
			after, count := bus.Message{}, 0
			receive(t, q, func(m bus.Message) bool {
				if tt.fresh && !m.Incarnation.After(before.Incarnation) {
					return false // fetched before the loss
				}
				after = m
				count++
				return count == 200
			})
			if tt.fresh {
				require.True(t, after.Incarnation.After(before.Incarnation))
			} else {
				require.True(t, after.Incarnation.Equal(before.Incarnation))
			}
			require.True(t, q.(*Consumer).Incarnation().Equal(after.Incarnation))

			cancel()
			require.NoError(t, p.Close())
			<-stopped
			require.NoError(t, q.Close())
		})
	}
}

// empty removes what is in dir, as often as a running server puts something back.
func empty(t *testing.T, dir string) {
	t.Helper()
	require.Eventually(t, func() bool {
		names, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, n := range names {
			if os.RemoveAll(filepath.Join(dir, n.Name())) != nil {
				return false
			}
		}
		return true
	}, patience, time.Millisecond)
}

// A server whose files were deleted while it ran stores nothing more and looks
// healthy. Publishers get bus.ErrUnavailable, and once the stream was silent
// for a while the consumer makes it again, with the server never restarted.
func TestFilesDeletedUnderRunningServer(t *testing.T) {
	s := newSite(t, bus.Bounds{})
	s.o.SilenceMax, s.o.AckTimeout = 200*time.Millisecond, 300*time.Millisecond
	p, q := s.Publisher(t), s.Consumer(t)
	// Large enough for the server to meet the missing files at once.
	frame := make([]byte, 256<<10)
	require.NoError(t, publish(p, frame))
	var before bus.Message
	receive(t, q, func(m bus.Message) bool { before = m; return true })

	empty(t, s.dir)
	require.Eventually(t, func() bool {
		err := publish(p, frame)
		if err != nil {
			require.ErrorIs(t, err, bus.ErrUnavailable)
		}
		return err != nil
	}, patience, time.Millisecond, "the server goes on without its files")

	// A receiver that takes nothing would keep the consumer from pulling.
	for ctx, cancel := context.WithTimeout(t.Context(), patience); ; {
		got, err := q.Poll(100)
		if err != nil {
			require.ErrorIs(t, err, bus.ErrUnavailable)
		}
		if len(got) > 0 && got[len(got)-1].Incarnation.After(before.Incarnation) {
			cancel()
			break
		}
		require.NoError(t, ctx.Err())
		_ = publish(p, frame)
	}
	require.NoError(t, p.Close())
	require.NoError(t, q.Close())
}

// publish returns what the publish of data came to.
func publish(p bus.Publisher, data []byte) error {
	done := make(chan error, 1)
	if err := p.Publish(bustest.Subject(0), data, func(err error) { done <- err }); err != nil {
		return err
	}
	return <-done
}

// A silent stream is checked with messages that no receiver sees, that leave
// nothing behind, and that acknowledge nothing the receiver did not.
func TestProbeIsInvisible(t *testing.T) {
	s := newSite(t, bus.Bounds{AckWait: 300 * time.Millisecond})
	s.o.SilenceMax = 100 * time.Millisecond
	q := s.Consumer(t)
	state := func() jetstream.StreamState {
		i, err := s.conn.js.Stream(t.Context(), StreamName(s.o.Source))
		require.NoError(t, err)
		return i.CachedInfo().State
	}
	require.Eventually(t, func() bool { return state().LastSeq >= 3 }, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return state().Msgs == 0 }, patience, time.Millisecond)
	got, err := q.Poll(10)
	require.NoError(t, err)
	require.Empty(t, got)

	// With a message unacknowledged over many silences, it stays so.
	p := s.Publisher(t)
	require.NoError(t, publish(p, []byte("kept")))
	for deliveries := 0; deliveries < 4; {
		got, err := q.Poll(10)
		require.NoError(t, err)
		for _, m := range got {
			require.Equal(t, "kept", string(m.Data))
			deliveries++
		}
		require.NoError(t, q.Wait(t.Context()))
	}
	require.NoError(t, p.Close())
	require.NoError(t, q.Close())
}

// A hole that a probe left is no loss. Messages wait for their acknowledgement over many silences, as they do while
// the disk of the receiver is nearly full. The process that receives them next raises no alarm.
//
// Capability: Storage on a node: A disk that is nearly full.
func TestProbesLeaveNoHoles(t *testing.T) {
	s := newSite(t, bus.Bounds{})
	s.o.SilenceMax = 50 * time.Millisecond
	s.o.Alarm = func(reason string) { t.Errorf("alarm %s", reason) }
	last := func() uint64 {
		i, err := s.conn.js.Stream(t.Context(), StreamName(s.o.Source))
		require.NoError(t, err)
		return i.CachedInfo().State.LastSeq
	}
	p, q := s.Publisher(t), s.Consumer(t)
	const messages = 4
	for range messages {
		require.NoError(t, publish(p, []byte("kept")))
		sent := last()
		require.Eventually(t, func() bool { return last() >= sent+2 }, patience, time.Millisecond, "probes behind it")
	}
	require.NoError(t, q.Close())
	s.stop()
	s.start()
	require.Eventually(t, s.conn.Connected, patience, time.Millisecond)
	q, got := s.Consumer(t), 0
	receive(t, q, func(bus.Message) bool { got++; return got == messages })
	require.NoError(t, p.Close())
	require.NoError(t, q.Close())
}

// A stream lost while no receiving process ran is made by the next one, and what
// was published in between was not confirmed.
func TestLostWhileStopped(t *testing.T) {
	s := newSite(t, bus.Bounds{})
	p, q := s.Publisher(t), s.Consumer(t)
	require.NoError(t, publish(p, []byte("a")))
	receive(t, q, func(bus.Message) bool { return true })
	was := q.(*Consumer).Incarnation()
	require.NoError(t, q.Close())
	s.stop()
	require.ErrorIs(t, publish(p, []byte("b")), bus.ErrUnavailable)
	empty(t, s.dir)
	s.start()
	require.Eventually(t, s.conn.Connected, patience, time.Millisecond)
	require.ErrorIs(t, publish(p, []byte("c")), bus.ErrUnavailable)

	q = s.Consumer(t)
	require.Eventually(t, func() bool { return publish(p, []byte("d")) == nil }, patience, time.Millisecond)
	receive(t, q, func(m bus.Message) bool {
		require.Equal(t, "d", string(m.Data))
		return true
	})
	require.True(t, q.(*Consumer).Incarnation().After(was))
	require.NoError(t, p.Close())
	require.NoError(t, q.Close())
}
