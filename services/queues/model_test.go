package queues

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
)

// rows is a state in memory, as a range shows it to a command.
type rows map[string][]byte

func (r rows) Get(key []byte) ([]byte, bool, error) {
	v, ok := r[string(key)]
	return slices.Clone(v), ok, nil
}

func (r rows) Rows(from, end []byte, f func(key, value []byte) bool) error {
	var in []string
	for k := range r {
		if k >= string(from) && k < string(end) {
			in = append(in, k)
		}
	}
	slices.Sort(in)
	for _, k := range in {
		if !f([]byte(k), slices.Clone(r[k])) {
			break
		}
	}
	return nil
}

// apply evaluates a command twice, as a range may (its package's invariant), and applies its effect.
func (r rows) apply(t require.TestingT, w services.Write, at geo.Timestamp) error {
	first, err := w.Evaluate(r, at)
	again, errAgain := w.Evaluate(r, at)
	require.Equal(t, err, errAgain)
	require.Equal(t, first, again)
	if err != nil {
		require.Empty(t, first.Ops)
		return err
	}
	prefix := string(w.Partition().Append(nil))
	for _, op := range first.Ops {
		if op.Delete {
			delete(r, prefix+string(op.Row))
		} else {
			r[prefix+string(op.Row)] = op.Value
		}
	}
	return nil
}

// expected is a message as the model has it.
type expected struct {
	id               MessageID
	visible, expires geo.Timestamp
	dequeues         uint32
	text             string
	receipt          string
	formerly         []string
	inserted         geo.Timestamp
}

func (m *expected) expired(at geo.Timestamp) bool { return m.expires != 0 && m.expires <= at }

// model is one subqueue as protocol/queue.md describes it.
type model struct {
	rows rows
	at   Subqueue
	now  geo.Timestamp
	// live are the messages that were put and not deleted, those included that expired and were not collected.
	live   []*expected
	nextID uint16
}

func newModel() *model {
	return &model{rows: rows{}, at: Subqueue{Queue: Queue{Account: "acct", Name: "jobs"}}, now: geo.TimestampOf(time.Unix(1_700_000_000, 0))}
}

// tick returns the commit time of the next command.
func (m *model) tick() geo.Timestamp {
	m.now += 2
	return m.now
}

func seconds(t *rapid.T, label string, of ...int) time.Duration {
	return time.Duration(rapid.SampledFrom(of).Draw(t, label)) * time.Second
}

func drawText(t *rapid.T) string {
	return strings.Repeat("x", rapid.SampledFrom([]int{0, 1, InlineMax, InlineMax + 1, 3000}).Draw(t, "bytes"))
}

func (m *model) put(t *rapid.T) {
	at := m.tick()
	m.nextID++
	o := PutOptions{Text: []byte(drawText(t)), TTL: seconds(t, "ttl", -1, 5, 40), Delay: seconds(t, "delay", 0, 0, 0, 2)}
	c := &Put{Command: Command{At: m.at}, ID: MessageID{^byte(m.nextID >> 8), ^byte(m.nextID)}, PutOptions: o}
	require.NoError(t, m.rows.apply(t, c, at))
	e := &expected{id: c.ID, visible: ticksAfter(at, o.Delay), text: string(o.Text), receipt: c.Message.Receipt, inserted: at}
	if o.TTL > 0 {
		e.expires = ticksAfter(at, o.TTL)
	}
	require.Equal(t, Message{ID: e.id, Inserted: at, Expires: e.expires, Visible: e.visible, Receipt: e.receipt}, c.Message)
	m.live = append(m.live, e)
}

// visible returns the messages that a Get may take, in order.
func (m *model) visible(at geo.Timestamp) (out []*expected) {
	for _, e := range m.live {
		if e.visible <= at && !e.expired(at) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *expected) int {
		return cmp.Or(cmp.Compare(a.visible, b.visible), slices.Compare(a.id[:], b.id[:]))
	})
	return out
}

func (m *model) get(t *rapid.T) {
	at := m.tick()
	c := &Get{
		Command: Command{At: m.at}, Max: rapid.SampledFrom([]int{1, 2, 32}).Draw(t, "max"), Timeout: seconds(t, "timeout", 1, 3, 30),
	}
	before := m.count(t)
	require.NoError(t, m.rows.apply(t, c, at))
	want := m.visible(at)
	want = want[:min(len(want), c.Max)]
	require.Len(t, c.Messages, len(want))
	for i, e := range want {
		got := c.Messages[i]
		e.dequeues++
		require.GreaterOrEqual(t, got.Visible, ticksAfter(at, c.Timeout))
		require.Less(t, got.Visible, ticksAfter(at, c.Timeout)+32)
		e.visible, e.formerly, e.receipt = got.Visible, append(e.formerly, e.receipt), got.Receipt
		require.Equal(t, Message{
			ID: e.id, Inserted: e.inserted, Expires: e.expires, Visible: e.visible, DequeueCount: e.dequeues, Text: []byte(e.text),
			Receipt: e.receipt,
		}, got)
	}
	m.live = slices.DeleteFunc(m.live, func(e *expected) bool { return e.expired(at) && !m.has(e) })
	require.LessOrEqual(t, m.count(t), before)
}

// has reports whether the row of a message is there.
func (m *model) has(e *expected) bool {
	_, ok := m.rows[string(place{e.visible, e.id}.append(m.at.Partition().Append(nil)))]
	return ok
}

// named draws a message with one of its receipts, and reports whether that is one that works.
func (m *model) named(t *rapid.T, at geo.Timestamp) (e *expected, receipt string, works bool) {
	e = rapid.SampledFrom(m.live).Draw(t, "message")
	receipt, works = e.receipt, !e.expired(at)
	if len(e.formerly) > 0 && rapid.Bool().Draw(t, "former receipt") {
		receipt = rapid.SampledFrom(e.formerly).Draw(t, "receipt")
		works = works && receipt == e.receipt
	}
	return e, receipt, works
}

func (m *model) update(t *rapid.T) {
	if len(m.live) == 0 {
		t.Skip("nothing to update")
	}
	at := m.tick()
	e, receipt, works := m.named(t, at)
	timeout := seconds(t, "timeout", 0, 0, 3, 10)
	var text []byte
	if rapid.Bool().Draw(t, "new text") {
		text = []byte(drawText(t))
	}
	c, err := NewUpdate(m.at.Queue, e.id, receipt, timeout, text)
	require.NoError(t, err)
	err = m.rows.apply(t, c, at)
	to := ticksAfter(at, timeout)
	switch {
	case !works:
		require.ErrorIs(t, err, storageerr.MessageNotFound)
		return
	case e.expires != 0 && to > e.expires:
		require.ErrorIs(t, err, storageerr.InvalidQueryParameter)
		return
	}
	require.NoError(t, err)
	e.visible, e.formerly, e.receipt = to, append(e.formerly, e.receipt), c.Message.Receipt
	if text != nil {
		e.text = string(text)
	}
	require.Equal(t, Message{
		ID: e.id, Inserted: e.inserted, Expires: e.expires, Visible: to, DequeueCount: e.dequeues, Receipt: e.receipt,
	}, c.Message)
}

func (m *model) delete(t *rapid.T) {
	if len(m.live) == 0 {
		t.Skip("nothing to delete")
	}
	at := m.tick()
	e, receipt, works := m.named(t, at)
	c, err := NewDelete(m.at.Queue, e.id, receipt)
	require.NoError(t, err)
	err = m.rows.apply(t, c, at)
	if !works {
		require.ErrorIs(t, err, storageerr.MessageNotFound)
		return
	}
	require.NoError(t, err)
	m.live = slices.DeleteFunc(m.live, func(o *expected) bool { return o == e })
}

// collect deletes all that has expired.
func (m *model) collect(t *rapid.T) {
	at, from := m.tick(), []byte(nil)
	for {
		c := &Collect{Command: Command{At: m.at}, From: from}
		require.NoError(t, m.rows.apply(t, c, at))
		if from = c.Next; from == nil {
			break
		}
	}
	m.live = slices.DeleteFunc(m.live, func(e *expected) bool { return e.expired(at) })
}

func (m *model) count(t require.TestingT) int {
	n, _, err := count(m.rows, m.at)
	require.NoError(t, err)
	return int(n)
}

// check compares the rows with the model.
func (m *model) check(t *rapid.T) {
	prefix := string(m.at.Partition().Append(nil))
	messages, texts := 0, 0
	h, _, err := readHead(m.rows, []byte(prefix), m.at.ID)
	require.NoError(t, err)
	for k, v := range m.rows {
		switch k[len(prefix)] {
		case rowText:
			texts++
		case rowMessage:
			p, row, err := parseRow([]byte(prefix), []byte(k), v)
			require.NoError(t, err)
			messages++
			if row.apart {
				texts--
			}
			require.GreaterOrEqual(t, p.visible, h.first, "guarantee H")
			require.LessOrEqual(t, p.visible, h.latest)
		}
	}
	require.Zero(t, texts, "as many texts as messages that name one")
	require.Equal(t, len(m.live), messages)
	require.Equal(t, len(m.live), m.count(t), "count")
	require.LessOrEqual(t, h.first, m.now, "the head is not above now")
	for _, e := range m.live {
		require.True(t, m.has(e))
	}
}

// Q2 to Q7, Q10, Q17, Q20, Q22: commands on one subqueue do what a simple model does, whatever their order and however time
// passes between them: what is got, in which order and how often, which receipts work, what is counted; no message
// is below the head, and no text is left behind (property).
func TestQ7CommandsAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		t.Repeat(map[string]func(*rapid.T){
			"put": m.put, "put more": m.put, "get": m.get, "get more": m.get, "update": m.update, "delete": m.delete, "collect": m.collect,
			"time": func(t *rapid.T) { m.now = ticksAfter(m.now, seconds(t, "passes", 1, 2, 3, 10, 60)) },
			"":     m.check,
		})
	})
}

// Q8, Q9: commit times rise whatever the clock of a leader does, so that a message that is put after the clock was set back is
// visible after all others; and one that is below the head is delivered (here by an update to zero).
func TestQ22UpdateBelowTheHead(t *testing.T) {
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

// Q17: messages that were put without a delay are got in the order of their puts, whatever their ids.
func TestQ17Order(t *testing.T) {
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

// traced is a state that keeps a trace of each row that was deleted, as a store does until it compacts, and counts those
// that a walk passes.
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

// A queue that had a million messages, all got and deleted, costs a dequeue nothing: its walk begins at the head, above all
// that they have left behind. Where one message is hidden all the time, the first Get of a later time passes what the others
// left behind where they were hidden to, and no other one does.
func TestDequeueBehindAMillionDeletedRows(t *testing.T) {
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

// An idle queue is polled without a write; one whose messages are all hidden writes its head now and then, so that no poll walks
// over the traces of what was deleted before.
func TestPollsOfAnIdleQueueWriteNothing(t *testing.T) {
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

// Q20: a Get deletes a bounded number of messages that have expired before it, and goes on with the next ones in the next
// call; what expired is got by nobody.
func TestQ20ManyExpired(t *testing.T) {
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
