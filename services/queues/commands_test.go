package queues

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
)

// Q8, Q9: commit times rise whatever the clock of a leader does, so that a message that is put after the clock was set
// back is visible after all others; and one that is below the head is delivered (here by an update to zero).
func TestQ22UpdateBelowTheHead(t *testing.T) {
	t.Parallel()
	m := newModel()
	put := func(id byte, delay time.Duration) *Put {
		c := &Put{Command: Command{At: m.at}, ID: MessageID{id}, PutOptions: PutOptions{TTL: -1, Delay: delay}}
		require.NoError(t, m.rows.apply(t, c, m.tick()))
		return c
	}
	get := func(limit int) []Message {
		c := &Get{Command: Command{At: m.at}, Max: limit, Timeout: time.Minute}
		require.NoError(t, m.rows.apply(t, c, m.tick()))
		return c.Messages
	}
	put(1, 0)
	got := get(1)
	require.Len(t, got, 1)
	m.now = ticksAfter(m.now, 10*time.Second)
	put(2, 0)
	require.Len(t, get(2), 1, "the head is now, far above the first message's put")
	c, err := NewUpdate(m.at.Queue, got[0].ID, got[0].Receipt, 0, nil)
	require.NoError(t, err)
	require.NoError(t, m.rows.apply(t, c, m.tick()))
	again := get(2)
	require.Len(t, again, 1)
	require.Equal(t, got[0].ID, again[0].ID)
	require.EqualValues(t, 2, again[0].DequeueCount)
}

// Q8: guarantee H does not depend on the times that a range gives: what is inserted below the head moves it back.
func TestQ8InsertBelowTheHead(t *testing.T) {
	t.Parallel()
	m := newModel()
	e := &evaluation{head: head{first: m.now}}
	e.insert(place{m.now - 1, MessageID{1}}, &message{})
	require.Equal(t, m.now-1, e.head.first)
	e.insert(place{m.now, MessageID{2}}, &message{})
	require.Equal(t, m.now-1, e.head.first)
}

// Q17: messages that were put without a delay are got in the order of their puts, whatever their ids.
func TestQ17Order(t *testing.T) {
	t.Parallel()
	m := newModel()
	for i := range 100 {
		c := &Put{Command: Command{At: m.at}, ID: MessageID{byte(200 - i)}, PutOptions: PutOptions{TTL: -1}}
		require.NoError(t, m.rows.apply(t, c, m.tick()))
	}
	for i := range 100 {
		c := &Get{Command: Command{At: m.at}, Max: 1, Timeout: time.Minute}
		require.NoError(t, m.rows.apply(t, c, m.tick()))
		require.Equal(t, MessageID{byte(200 - i)}, c.Messages[0].ID)
		require.Equal(t, 1, c.walked)
	}
	// Those of one Get come back in their order, too.
	m.now = ticksAfter(m.now, 2*time.Minute)
	for range 2 {
		c := &Get{Command: Command{At: m.at}, Max: 100, Timeout: time.Second}
		require.NoError(t, m.rows.apply(t, c, m.tick()))
		for i, got := range c.Messages {
			require.Equal(t, MessageID{byte(200 - i)}, got.ID)
		}
		m.now = ticksAfter(m.now, 2*time.Second)
	}
}

// traced is a state that keeps a trace of each row that was deleted, as a store does until it compacts, and counts
// those which a walk comes over.
type traced struct {
	rows
	traces []string
	passed int
}

func (r *traced) Rows(from, end []byte, f func(key, value []byte) bool) error {
	for _, k := range r.traces {
		if k >= string(from) && k < string(end) {
			r.passed++
		}
	}
	return r.rows.Rows(from, end, f)
}

func (r *traced) apply(t *testing.T, w services.Write, at geo.Timestamp, prefix string) {
	effect, err := w.Evaluate(r, at)
	require.NoError(t, err)
	for _, op := range effect.Ops {
		k := prefix + string(op.Row)
		if op.Delete {
			r.traces = append(r.traces, k)
			delete(r.rows, k)
		} else {
			r.rows[k] = op.Value
		}
	}
}

// A queue that had a million messages, all got and deleted, costs a dequeue nothing: its walk begins at the head,
// above all that they have left behind. If one message is hidden all the time, the first Get of a later time passes
// what the others left behind at the times they were hidden to. No other Get does.
func TestDequeueBehindAMillionDeletedRows(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow under the race detector")
	}
	for hidden, deleted := range map[bool]int{true: 1_000_000, false: 10_000} {
		m, r := newModel(), &traced{rows: rows{}}
		prefix := string(m.at.Partition().Append(nil))
		n := uint32(0)
		put := func(o PutOptions) {
			n++
			c := &Put{Command: Command{At: m.at}, PutOptions: o}
			binary.BigEndian.PutUint32(c.ID[:], n)
			r.apply(t, c, m.tick(), prefix)
		}
		get := func() []Message {
			r.passed = 0
			c := &Get{Command: Command{At: m.at}, Max: 32, Timeout: 30 * time.Second}
			r.apply(t, c, m.tick(), prefix)
			require.LessOrEqual(t, c.walked, 32)
			return c.Messages
		}
		if hidden {
			put(PutOptions{TTL: -1, Delay: 7 * 24 * time.Hour})
		}
		// What a cycle deletes leaves two traces: where it was put, and where it was hidden to.
		for len(r.traces) < deleted {
			traces := r.traces
			r.traces = nil // Not looked at here.
			for range 32 {
				put(PutOptions{TTL: -1})
			}
			for _, got := range get() {
				d, err := NewDelete(m.at.Queue, got.ID, got.Receipt)
				require.NoError(t, err)
				r.apply(t, d, m.tick(), prefix)
			}
			r.traces = append(traces, r.traces...)
		}
		m.now = ticksAfter(m.now, time.Hour)
		for i := range 3 {
			put(PutOptions{TTL: -1})
			require.Len(t, get(), 1)
			if !hidden || i > 0 {
				require.LessOrEqual(t, r.passed, 1)
			}
		}
	}
}

// An idle queue is polled without a write; one whose messages are all hidden writes its head now and then, so that no
// poll walks over the traces of what was deleted before.
func TestPollsOfAnIdleQueueWriteNothing(t *testing.T) {
	t.Parallel()
	m := newModel()
	poll := func() int {
		effect, err := (&Get{Command: Command{At: m.at}, Max: 1, Timeout: 30 * time.Second}).Evaluate(m.rows, m.tick())
		require.NoError(t, err)
		return len(effect.Ops)
	}
	require.Zero(t, poll())
	p := &Put{Command: Command{At: m.at}, ID: MessageID{1}, PutOptions: PutOptions{TTL: -1, Delay: 20 * time.Second}}
	require.NoError(t, m.rows.apply(t, p, m.tick()))
	require.Zero(t, poll())
	m.now = ticksAfter(m.now, headRest)
	require.Equal(t, 1, poll(), "the head moves")
	g := &Get{Command: Command{At: m.at}, Max: 1, Timeout: 30 * time.Second}
	m.now = ticksAfter(m.now, time.Minute)
	require.NoError(t, m.rows.apply(t, g, m.tick()))
	require.Len(t, g.Messages, 1)
	d, err := NewDelete(m.at.Queue, g.Messages[0].ID, g.Messages[0].Receipt)
	require.NoError(t, err)
	require.NoError(t, m.rows.apply(t, d, m.tick()))
	m.now = ticksAfter(m.now, time.Hour)
	require.Zero(t, poll())
}

// Q20: a Get deletes a bounded number of messages that have expired before it, and goes on with the next ones in the
// next call; what expired is got by nobody.
//
// Capability: Queues: A message behind many that have expired.
func TestQ20ManyExpired(t *testing.T) {
	t.Parallel()
	m := newModel()
	put := func(i int, ttl time.Duration) {
		id := MessageID{byte(i), byte(i >> 8)}
		c := &Put{Command: Command{At: m.at}, ID: id, PutOptions: PutOptions{TTL: ttl, Text: make([]byte, InlineMax+1)}}
		require.NoError(t, m.rows.apply(t, c, m.tick()))
	}
	const n = walkMax + 500
	for i := range n {
		put(i, 2*time.Second)
	}
	put(n, -1)
	m.now = ticksAfter(m.now, 3*time.Second)
	c := &Get{Command: Command{At: m.at}, Max: 1, Timeout: time.Minute}
	require.NoError(t, m.rows.apply(t, c, m.tick()))
	require.True(t, c.More)
	require.Empty(t, c.Messages)
	require.Equal(t, n+1-walkMax-1, m.count(t))
	require.NoError(t, m.rows.apply(t, c, m.tick()))
	require.False(t, c.More)
	require.Len(t, c.Messages, 1)
	require.Equal(t, 1, m.count(t))
	require.Len(t, m.rows, 3, "head, message and its text")
}

// A message may be hidden up to the moment in which it expires, and no longer (protocol/queue.md 9.5).
func TestQ24HiddenUntilItExpires(t *testing.T) {
	t.Parallel()
	m := newModel()
	put := &Put{Command: Command{At: m.at}, ID: MessageID{1}, PutOptions: PutOptions{TTL: 10 * time.Second}}
	began := m.tick()
	require.NoError(t, m.rows.apply(t, put, began))
	at := ticksAfter(began, 4*time.Second)
	longer, err := NewUpdate(m.at.Queue, put.ID, put.Message.Receipt, 7*time.Second, nil)
	require.NoError(t, err)
	require.ErrorContains(t, m.rows.apply(t, longer, at), storageerr.InvalidQueryParameter.Message)
	until, err := NewUpdate(m.at.Queue, put.ID, put.Message.Receipt, 6*time.Second, nil)
	require.NoError(t, err)
	require.NoError(t, m.rows.apply(t, until, at))
	require.Equal(t, until.Message.Expires, until.Message.Visible)
}
