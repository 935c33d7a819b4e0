package queues

import (
	"cmp"
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

// Q2 to Q7, Q10, Q17, Q20, Q22: commands on one subqueue do what a simple model does, whatever their order and however
// time passes between them: what is got, in which order and how often, which receipts work, what is counted; no message
// is below the head, and no text is left behind (property).
func TestQ7CommandsAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		t.Repeat(map[string]func(*rapid.T){
			"put": m.put, "put more": m.put, "get": m.get, "get more": m.get, "update": m.update, "delete": m.delete, "collect": m.collect,
			"time": func(t *rapid.T) { m.now = ticksAfter(m.now, seconds(t, "passes", 1, 2, 3, 10, 60)) },
			"":     m.check,
		})
	})
}
