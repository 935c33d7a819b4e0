package bustest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/replication/bus"
)

// Source is the source location whose stream the suite uses.
const Source = "suite"

// Subject returns the subject of the suite's range n.
func Subject(n int) string { return fmt.Sprintf("geo.%s.table.%d", Source, n) }

// Bus is one empty stream of Source under test, its durable consumer already
// made. What it opens is closed by the suite; the bus itself is closed by a
// cleanup of the function that made it.
type Bus interface {
	// Publisher opens a new publisher.
	Publisher(t *testing.T) bus.Publisher
	// Consumer opens the stream's one consumer. The suite closes it before it
	// opens the next.
	Consumer(t *testing.T) bus.Consumer
	// Recreate deletes the stream with all it holds, from outside. An open consumer creates it
	// again, perhaps after Recreate has returned.
	Recreate(t *testing.T)
	// Step lets a bus without goroutines work.
	Step()
	// Pass lets d go by on the bus's clock. A bus on the machine's clock
	// does nothing, as the suite waits for what must follow.
	Pass(d time.Duration)
}

// patience bounds every wait of the suite; it is reached only by a failure.
const patience = 20 * time.Second

// glance is how long one wait for the bus may last before the suite steps it.
const glance = 20 * time.Millisecond

// outcomes collects what the done functions of one test were called with.
type outcomes struct {
	mu sync.Mutex
	// calls holds, per publish, every error its done was called with.
	calls [][]error
}

// add returns the number and the done of a new publish.
func (o *outcomes) add() (int, func(error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.calls)
	o.calls = append(o.calls, nil)
	return n, func(err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.calls[n] = append(o.calls[n], err)
	}
}

// of returns the answers to publish n so far.
func (o *outcomes) of(n int) []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]error(nil), o.calls[n]...)
}

// open counts publishes whose done was not called.
func (o *outcomes) open() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, c := range o.calls {
		if len(c) == 0 {
			n++
		}
	}
	return n
}

// requireOnce fails unless every done was called exactly once.
func (o *outcomes) requireOnce(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for n, c := range o.calls {
		require.Len(t, c, 1, "done of publish %d was called with %v", n, c)
	}
}

// until steps c until ok, and fails when that takes too long.
func until(t *testing.T, c Bus, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !ok() {
		c.Step()
		if ok() {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %v for: %s", patience, what)
		case <-time.After(time.Millisecond): // nothing to wait on: a done has no channel
		}
	}
}

// put publishes data and returns what its done was called with.
func put(t *testing.T, c Bus, p bus.Publisher, subject string, data []byte) error {
	t.Helper()
	var o outcomes
	n, done := o.add()
	require.NoError(t, p.Publish(subject, data, done))
	until(t, c, "the answer to a publish", func() bool { return o.open() == 0 })
	o.requireOnce(t)
	return o.of(n)[0]
}

// putAll publishes numbered messages in order, keeping to the window, and requires
// that each is stored.
func putAll(t *testing.T, c Bus, p bus.Publisher, from, to int) {
	t.Helper()
	var o outcomes
	for i := from; i < to; i++ {
		_, done := o.add()
		var err error
		until(t, c, "room in the window", func() bool {
			err = p.Publish(Subject(i%3), body(i), done)
			return !errors.Is(err, bus.ErrFull)
		})
		require.NoError(t, err)
	}
	until(t, c, "the answers to all publishes", func() bool { return o.open() == 0 })
	o.requireOnce(t)
	for n := range to - from {
		require.NoError(t, o.of(n)[0], "publish %d", n)
	}
}

// persist publishes data until the bus confirms that it is stored, however often
// it is unavailable in between. The bus may then hold it more than once.
func persist(t *testing.T, c Bus, p bus.Publisher, subject string, data []byte) {
	t.Helper()
	until(t, c, "a publish to go through again", func() bool {
		var o outcomes
		n, done := o.add()
		if err := p.Publish(subject, data, done); err != nil {
			require.ErrorIs(t, err, bus.ErrUnavailable)
			return false
		}
		until(t, c, "the answer to a publish", func() bool { return o.open() == 0 })
		o.requireOnce(t)
		if err := o.of(n)[0]; err != nil {
			require.ErrorIs(t, err, bus.ErrUnavailable)
			return false
		}
		return true
	})
}

// poll returns what is at hand, waiting a glance for it. A bus that is away
// for the moment has nothing at hand.
func poll(t *testing.T, c Bus, q bus.Consumer, limit int) []bus.Message {
	t.Helper()
	c.Step()
	got, err := q.Poll(limit)
	if errors.Is(err, bus.ErrUnavailable) {
		err = nil
	}
	require.NoError(t, err)
	require.LessOrEqual(t, len(got), limit)
	if len(got) > 0 {
		return got
	}
	ctx, cancel := context.WithTimeout(context.Background(), glance)
	defer cancel()
	err = q.Wait(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, bus.ErrUnavailable) {
		t.Fatalf("wait: %v", err)
	}
	return nil
}

// take polls until it has n messages.
func take(t *testing.T, c Bus, q bus.Consumer, n int) []bus.Message {
	t.Helper()
	var got []bus.Message
	until(t, c, fmt.Sprintf("%d messages", n), func() bool {
		got = append(got, poll(t, c, q, n-len(got))...)
		return len(got) >= n
	})
	return got
}

// requireQuiet fails if a message arrives within a few glances. It can only miss
// a failure, never invent one.
func requireQuiet(t *testing.T, c Bus, q bus.Consumer) {
	t.Helper()
	for range 5 {
		require.Empty(t, poll(t, c, q, 1))
	}
}

func body(i int) []byte { return fmt.Appendf(nil, "message %d", i) }
