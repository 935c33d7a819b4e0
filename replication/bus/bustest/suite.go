package bustest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/replication/bus"
)

// Run checks the buses that open makes, one fresh bus per promise.
func Run(t *testing.T, open func(t *testing.T, bounds bus.Bounds) Bus) {
	for _, tt := range []struct {
		name   string
		bounds bus.Bounds
		check  func(*testing.T, Bus)
	}{
		{"order", bus.Bounds{}, order},
		{"poll does not wait", bus.Bounds{}, pollDoesNotWait},
		{"wait ends", bus.Bounds{}, waitEnds},
		{"redelivery after close", bus.Bounds{}, redeliveryAfterClose},
		{"redelivery after ack wait", bus.Bounds{AckWait: 500 * time.Millisecond}, redeliveryAfterAckWait},
		{"ack means all before", bus.Bounds{}, ackAll},
		{"acknowledged is gone", bus.Bounds{}, acknowledgedIsGone},
		{"pending bound", bus.Bounds{AckPendingMax: 4}, pendingBound},
		{"full and again", bus.Bounds{BytesMax: 1 << 20}, fullAndAgain},
		{"too large", bus.Bounds{PayloadMax: 64 << 10}, tooLarge},
		{"largest", bus.Bounds{}, largest},
		{"window", bus.Bounds{WindowMax: 4}, window},
		{"re-created", bus.Bounds{}, recreated},
		{"re-created under load", bus.Bounds{}, recreatedUnderLoad},
		{"old ack after re-creation", bus.Bounds{}, oldAckAfterRecreation},
		{"close ends open publishes", bus.Bounds{}, closeEndsPublishes},
		{"closed consumer", bus.Bounds{}, closedConsumer},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.check(t, open(t, tt.bounds)) })
	}
}

// Messages come out in the order of the Publish calls, over all subjects, with
// what was put in, and are numbered upward within one incarnation.
func order(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p, q)
	const n = 300
	putAll(t, c, p, 0, n)
	var last bus.Message
	for i, m := range take(t, c, q, n) {
		require.Equal(t, string(body(i)), string(m.Data))
		require.Equal(t, Subject(i%3), m.Subject)
		require.False(t, m.Redelivered)
		require.Greater(t, m.Seq, last.Seq)
		require.False(t, m.Incarnation.IsZero())
		if i > 0 {
			require.True(t, m.Incarnation.Equal(last.Incarnation))
		}
		last = m
	}
	require.NoError(t, q.Ack(last))
}

// Poll of an empty stream answers at once, with nothing.
func pollDoesNotWait(t *testing.T, c Bus) {
	q := c.Consumer(t)
	defer closeAll(t, q)
	for range 100 {
		got, err := q.Poll(10)
		if !errors.Is(err, bus.ErrUnavailable) { // a consumer may need a moment to attach
			require.NoError(t, err)
		}
		require.Empty(t, got)
	}
	p := c.Publisher(t)
	defer closeAll(t, p)
	require.NoError(t, put(t, c, p, Subject(0), body(0)))
	require.Empty(t, poll(t, c, q, 0))
	take(t, c, q, 1)
}

// Wait ends with its context, and when a message comes.
func waitEnds(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p, q)
	requireQuiet(t, c, q)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, q.Wait(ctx), context.Canceled)
	require.NoError(t, put(t, c, p, Subject(0), body(0)))
	ctx, cancel = context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, q.Wait(ctx))
	take(t, c, q, 1)
}

// Messages that a closed consumer left unacknowledged go to the next one, in order, before those it
// had not seen.
func redeliveryAfterClose(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p)
	putAll(t, c, p, 0, 20)
	got := take(t, c, q, 12)
	require.NoError(t, q.Ack(got[3]))
	require.NoError(t, q.Close())

	q = c.Consumer(t)
	defer closeAll(t, q)
	for i, m := range take(t, c, q, 16) {
		require.Equal(t, string(body(4+i)), string(m.Data))
	}
}

// A message that is not acknowledged within the ack wait comes again, marked so. An acknowledged
// message does not.
func redeliveryAfterAckWait(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p, q)
	putAll(t, c, p, 0, 3)
	got := take(t, c, q, 3)
	require.NoError(t, q.Ack(got[0]))
	c.Pass(500 * time.Millisecond)
	again := take(t, c, q, 2)
	for i, m := range again {
		require.Equal(t, string(body(1+i)), string(m.Data))
		require.Equal(t, got[1+i].Seq, m.Seq)
		require.True(t, m.Redelivered)
	}
	require.NoError(t, q.Ack(again[1]))
	c.Pass(500 * time.Millisecond)
	requireQuiet(t, c, q)
}

// One Ack acknowledges all before it.
func ackAll(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p)
	putAll(t, c, p, 0, 10)
	got := take(t, c, q, 10)
	require.NoError(t, q.Ack(got[7]))
	require.NoError(t, q.Ack(got[2]), "an older ack is no news")
	require.NoError(t, q.Close())

	q = c.Consumer(t)
	defer closeAll(t, q)
	again := take(t, c, q, 2)
	require.Equal(t, string(body(8)), string(again[0].Data))
	require.Equal(t, string(body(9)), string(again[1].Data))
}

// What is acknowledged is not delivered to a later consumer.
func acknowledgedIsGone(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p)
	putAll(t, c, p, 0, 10)
	got := take(t, c, q, 10)
	require.NoError(t, q.Ack(got[9]))
	require.NoError(t, q.Close())

	q = c.Consumer(t)
	defer closeAll(t, q)
	requireQuiet(t, c, q)
	putAll(t, c, p, 10, 11)
	require.Equal(t, string(body(10)), string(take(t, c, q, 1)[0].Data))
}

// No more than AckPendingMax messages are out, and an Ack lets the next ones come.
func pendingBound(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p, q)
	putAll(t, c, p, 0, 10)
	got := take(t, c, q, 4)
	requireQuiet(t, c, q)
	require.NoError(t, q.Ack(got[1]))
	got = append(got, take(t, c, q, 2)...)
	requireQuiet(t, c, q)
	require.NoError(t, q.Ack(got[5]))
	got = append(got, take(t, c, q, 4)...)
	for i, m := range got {
		require.Equal(t, string(body(i)), string(m.Data))
	}
}

// A full bus refuses with ErrFull, keeps what it has, and takes messages again
// once some are acknowledged.
func fullAndAgain(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p, q)
	frame := bytes.Repeat([]byte("x"), 64<<10)
	stored := 0
	var err error
	for err == nil {
		require.Less(t, stored, 17, "1 MiB holds at most 16 times 64 KiB")
		if err = put(t, c, p, Subject(0), frame); err == nil {
			stored++
		}
	}
	require.ErrorIs(t, err, bus.ErrFull)
	require.Greater(t, stored, 8)

	got := take(t, c, q, stored)
	require.NoError(t, q.Ack(got[stored-1]))
	until(t, c, "room after the acks", func() bool {
		err := put(t, c, p, Subject(0), frame)
		if err != nil {
			require.ErrorIs(t, err, bus.ErrFull)
		}
		return err == nil
	})
	take(t, c, q, 1)
}

// A payload over the maximum is refused by Publish and harms nothing.
func tooLarge(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p, q)
	require.Equal(t, 64<<10, p.MaxPayload())
	err := p.Publish(Subject(0), make([]byte, p.MaxPayload()+1), func(error) { t.Error("done of a refused publish") })
	require.ErrorIs(t, err, bus.ErrTooLarge)
	require.NoError(t, put(t, c, p, Subject(0), make([]byte, p.MaxPayload())))
	require.Len(t, take(t, c, q, 1)[0].Data, p.MaxPayload())
}

// The largest payload of the default bounds goes through.
func largest(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p, q)
	data := bytes.Repeat([]byte("0123456789abcdef"), p.MaxPayload()/16)
	require.NoError(t, put(t, c, p, Subject(0), data))
	got := take(t, c, q, 1)
	require.True(t, bytes.Equal(data, got[0].Data))
	require.NoError(t, q.Ack(got[0]))
}

// Publishes in flight are bounded by WindowMax per publisher; a done makes room.
func window(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p, q)
	// gate keeps every done from returning, so that the window stays used up
	// with a bus that delivers by itself.
	gate := make(chan struct{})
	var o outcomes
	refused := 0
	for range 1000 {
		_, done := o.add()
		err := p.Publish(Subject(0), body(0), func(err error) { <-gate; done(err) })
		if err != nil {
			require.ErrorIs(t, err, bus.ErrFull)
			refused++
		}
	}
	// At most WindowMax are in flight; the one whose done waits may have left it.
	require.GreaterOrEqual(t, refused, 1000-2*4)
	close(gate)
	until(t, c, "the window to empty", func() bool { return o.open() == refused })
	require.NoError(t, put(t, c, p, Subject(0), body(1)))
	take(t, c, q, 1000-refused+1)
}

// A stream that was deleted and made again goes on under a new, later incarnation,
// for the publisher and the consumer that were open all along.
func recreated(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p, q)
	persist(t, c, p, Subject(0), body(0))
	before := take(t, c, q, 1)[0]
	for round := 1; round <= 2; round++ {
		c.Recreate(t)
		persist(t, c, p, Subject(0), body(round))
		after := take(t, c, q, 1)[0]
		require.Equal(t, string(body(round)), string(after.Data))
		require.True(t, after.Incarnation.After(before.Incarnation),
			"%v is not after %v", after.Incarnation, before.Incarnation)
		require.NoError(t, q.Ack(after))
		before = after
	}
}

// A stream deleted with publishes in flight and messages unacknowledged goes on:
// every publish ends once, and later messages arrive under the new incarnation.
func recreatedUnderLoad(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p, q)
	persist(t, c, p, Subject(0), body(0))
	first := take(t, c, q, 1)[0]
	var o outcomes
	publish := func(n int) {
		for i := range n {
			num, done := o.add()
			if err := p.Publish(Subject(i%3), make([]byte, 4<<10), done); err != nil {
				done(err) // counts as its one answer
				require.NotEmpty(t, o.of(num))
			}
		}
	}
	publish(40)
	c.Recreate(t)
	publish(40)
	until(t, c, "every publish to end", func() bool { return o.open() == 0 })
	o.requireOnce(t)
	persist(t, c, p, Subject(0), []byte("last"))
	until(t, c, "the last message", func() bool {
		for _, m := range poll(t, c, q, 100) {
			if string(m.Data) == "last" {
				require.True(t, m.Incarnation.After(first.Incarnation))
				return true
			}
		}
		return false
	})
}

// An Ack for a message of a former incarnation touches nothing in the new one,
// although its number is higher.
func oldAckAfterRecreation(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p)
	putAll(t, c, p, 0, 20)
	old := take(t, c, q, 20)[19]
	c.Recreate(t)
	persist(t, c, p, Subject(0), []byte("new"))
	fresh := take(t, c, q, 1)[0]
	require.Less(t, fresh.Seq, old.Seq)
	require.NoError(t, q.Ack(old))
	require.NoError(t, q.Close())

	q = c.Consumer(t)
	defer closeAll(t, q)
	require.Equal(t, "new", string(take(t, c, q, 1)[0].Data))
}

// Close ends every open publish, once, with ErrClosed unless it had been stored; afterwards
// Publish refuses, and a second Close does nothing.
func closeEndsPublishes(t *testing.T, c Bus) {
	p := c.Publisher(t)
	var o outcomes
	for range 50 {
		_, done := o.add()
		require.NoError(t, p.Publish(Subject(0), make([]byte, 32<<10), done))
	}
	require.NoError(t, p.Close())
	require.Zero(t, o.open(), "publishes open after Close")
	o.requireOnce(t)
	for n := range 50 {
		if err := o.of(n)[0]; err != nil {
			require.ErrorIs(t, err, bus.ErrClosed)
		}
	}
	err := p.Publish(Subject(0), body(0), func(error) { t.Error("done of a refused publish") })
	require.ErrorIs(t, err, bus.ErrClosed)
	require.NoError(t, p.Close())
	c.Step()
	o.requireOnce(t)
}

// A closed consumer answers ErrClosed to everything but Close.
func closedConsumer(t *testing.T, c Bus) {
	p, q := c.Publisher(t), c.Consumer(t)
	defer closeAll(t, p)
	putAll(t, c, p, 0, 1)
	m := take(t, c, q, 1)[0]
	require.NoError(t, q.Close())
	require.NoError(t, q.Close())
	_, err := q.Poll(1)
	require.ErrorIs(t, err, bus.ErrClosed)
	require.ErrorIs(t, q.Wait(context.Background()), bus.ErrClosed)
	require.ErrorIs(t, q.Ack(m), bus.ErrClosed)
}

// closeAll closes each and fails the test if one does not close cleanly.
func closeAll(t *testing.T, all ...interface{ Close() error }) {
	t.Helper()
	for _, c := range all {
		require.NoError(t, c.Close())
	}
}
