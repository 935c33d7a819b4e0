package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"antipode/geo"
	"antipode/services"
	"antipode/services/blobs"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// write writes keys one after the other and prints what each client was answered.
func (c *scenario) write(d *datadriven.TestData) string {
	var answers []string
	for _, arg := range d.CmdArgs {
		answers = append(answers, arg.Key+"="+arg.Vals[0]+" "+c.writeKey(arg.Key, arg.Vals[0]))
	}
	return strings.Join(answers, "; ") + "\n"
}

// writeKey writes a key at the leader, for which it waits, and returns the answer.
func (c *scenario) writeKey(key, value string) string {
	if !slices.Contains(c.written, key) {
		c.written = append(c.written, key)
	}
	w, p := c.newWrite(key, value)
	o := c.newOp(c.account, w)
	o.payload = p
	var m *member
	if !c.runUntil(answerMax, func() bool { m = c.home.newest(o.rangeID); return m != nil }) {
		c.notSubmitted(o)
		return "refused, nobody leads"
	}
	if answer := c.putChunks(o); answer != "" {
		return answer
	}
	c.submitTo(m, o, func() {})
	c.runUntil(answerMax, func() bool { return o.answers > 0 })
	switch {
	case o.outcome == acked:
		c.acked = append(c.acked, ackedWrite{key + "=" + value, o.numbered.at})
		return "acknowledged"
	case errors.Is(o.answer, kv.ErrBusy):
		return "refused, busy"
	case o.outcome == refused:
		return "refused, " + o.answer.Error()
	}
	return "unknown, no answer in time"
}

// putChunks brings the payload of a write to the nodes; the answer is empty when it is there.
func (c *scenario) putChunks(o *op) (answer string) {
	rest := o.payload.bytes
	for _, ref := range o.payload.refs {
		if err := o.l.PutChunk(c.t.Context(), ref, rest[:ref.Length]); err != nil {
			c.notSubmitted(o)
			return "refused, busy"
		}
		rest = rest[ref.Length:]
	}
	return ""
}

// partition is that of a key.
func (c *scenario) partition(key string) keys.Partition {
	return c.account.containers[c.service][0].partition(key)
}

// newWrite sets a key: an entity of one property, or a blob of two chunks.
func (c *scenario) newWrite(key, value string) (services.Write, payload) {
	p := c.partition(key)
	if c.service == geo.Table {
		props := entity.Build(nil)
		if err := props.AddString(valueProperty, value); err != nil {
			c.fail(err)
		}
		return &tables.Write{
			Op: tables.InsertOrReplace, Account: p.Account, Table: p.Container, Generation: p.Generation, PK: key, Props: props.Bytes(),
		}, payload{}
	}
	w, load := &blobs.PutBlob{Command: blobs.Command{Name: nameOf(p)}}, payload{}
	for part := range 2 {
		data := fmt.Appendf(nil, "%d:%s=%s;", part, key, value)
		id := extent.ChunkID{byte(len(c.ops) >> 8), byte(len(c.ops)), byte(part)}
		load.refs = append(load.refs, extent.NewRef(id, data))
		load.bytes = append(load.bytes, data...)
	}
	w.Blob.Length, w.Blob.Chunks = uint64(len(load.bytes)), load.refs
	return w, load
}

// valueProperty is the property of an entity that holds the value.
const valueProperty = "Value"

// view is what everyone sees, on one line:
//
//	primary     the keys and values that a client reads in north
//	secondary   those that it reads in south
//	last sync   what Get Service Stats answers in south: how long ago Last Sync Time is, the
//	            newest acknowledged write at or before it, and the status
//	in sync     the nodes whose replicas are in sync, in north and in south, as the leaders see
//	            it; a star marks the leader
//	outbox      how many records the primary keeps until south has acknowledged them
//	events      alarms raised and events reported since the line before
//	last        in a world with moves: which location is the primary, in which epoch, and what is under way
//
// A secondary whose copy is not whole, or not compared with the primary yet, is not readable, and shows no Last Sync Time.
// A location that has no leader that can prove its lease gives no answer.
func (c *scenario) view() string {
	line := fmt.Sprintf("primary %s | secondary %s | last sync %s | in sync %s and %s | outbox %s | events %s",
		c.readable(c.home), c.readable(c.far), c.lastSync(), c.inSync(c.home), c.inSync(c.far), c.outbox(), orNone(c.events)) + c.moving()
	c.events = nil
	return line
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// noAnswer is what a client gets of a location that cannot answer.
const noAnswer = "no answer"

// readable reads all keys in a location, under the lease of the range.
func (c *scenario) readable(l *location) string {
	out := noAnswer
	if c.moves != nil && l == c.far && !l.whole(c.account) {
		return "not readable"
	}
	c.ask(l, geo.FirstRange(c.service), func(m *member, _ *ranges.Range) { out = c.readKeys(m) })
	return out
}

// readKeys reads all keys on a node.
func (c *scenario) readKeys(m *member) string {
	var found []string
	for _, key := range c.written {
		value, err := c.valueOf(m, key)
		if err != nil {
			value = "(" + err.Error() + ")"
		}
		if value != "" {
			found = append(found, key+"="+value)
		}
	}
	if len(found) == 0 {
		return "empty"
	}
	return strings.Join(found, " ")
}

// readAt reads at one node, as a client does whose request reaches it.
func (c *scenario) readAt(d *datadriven.TestData) string {
	m, out := c.nodes(d)[0], noAnswer
	ctx, cancel := context.WithCancel(c.t.Context())
	cancel() // It must not wait for another lease.
	err := m.n.Range(geo.FirstRange(c.service)).Read(ctx, func(ranges.State) error {
		out = c.readKeys(m)
		return nil
	})
	if err != nil {
		out = noAnswer
	}
	return fmt.Sprintf("%s-%d: %s\n", m.l.name, m.id, out)
}

// ask calls f with the leader of a range under its lease, and waits for that: not at all where
// no leader proves its lease in time.
func (c *scenario) ask(l *location, id geo.RangeID, f func(*member, *ranges.Range)) {
	done := false
	asked := l.newest(id)
	if asked == nil {
		return
	}
	asked.n.Range(id).Confirm(func(err error) {
		if m := l.newest(id); err == nil && m == asked && !done {
			f(m, m.n.Range(id))
			done = true
		}
	})
	asked.dirty = true
	c.runUntil(patience, func() bool { return done })
	done = true
}

// valueOf reads a key on a node, empty for none.
func (c *scenario) valueOf(m *member, key string) (string, error) {
	p := c.partition(key)
	prefix := p.Append(nil)
	get := partitionRows{p, m.l.history[geo.FirstRange(c.service)].read(m, prefix, len(prefix))}
	if len(get.rows) == 0 {
		return "", nil
	}
	if c.service == geo.Table {
		e, err := tables.Get(get, tables.Partition(p.Account, p.Container, p.Generation, key), "")
		if err != nil {
			return "", err
		}
		v, _, err := entity.Find(e.Props, valueProperty)
		return string(v.Value), err
	}
	b, err := readBlob(m, get, nameOf(p), 0)
	if err != nil {
		return "", err
	}
	_, first, _ := strings.Cut(string(b.bytes), "=")
	value, _, _ := strings.Cut(first, ";")
	if want := fmt.Sprintf("0:%s=%s;1:%s=%s;", key, value, key, value); string(b.bytes) != want {
		return "", fmt.Errorf("%q", b.bytes)
	}
	return value, nil
}

// lastSync is what the secondary answers to Get Service Stats.
func (c *scenario) lastSync() string {
	out := noAnswer
	c.ask(c.far, geo.FirstRange(geo.Catalog), func(_ *member, catalog *ranges.Range) {
		if _, shown := c.shows(c.account, catalog); c.moves != nil && !shown {
			out = "not shown"
			return
		}
		if m := c.far.newest(geo.FirstRange(c.service)); m != nil {
			out = c.describe(replication(c.account, c.service, m.n.Range(geo.FirstRange(c.service)), catalog, noClock))
		}
	})
	return out
}

func (c *scenario) describe(r stats.Replication) string {
	if !r.Known() {
		return string(r.Status)
	}
	past := "before all writes"
	for _, w := range c.acked {
		if w.at <= r.LastSync {
			past = "past " + w.word
		}
	}
	ago := c.clock.Now().Sub(r.LastSync.Time()) + 50*time.Millisecond
	return fmt.Sprintf("%.1fs ago, %s, %s", ago.Seconds(), past, r.Status)
}

// inSync lists the nodes with in-sync replicas; the leader bears a star.
func (c *scenario) inSync(l *location) string {
	m := l.newest(geo.FirstRange(c.service))
	if m == nil {
		return "none"
	}
	var nodes []string
	for _, id := range slices.Sorted(slices.Values(m.n.Range(geo.FirstRange(c.service)).Replica().InSyncNodes())) {
		name := fmt.Sprint(uint64(id))
		if id == m.id {
			name += "*"
		}
		nodes = append(nodes, name)
	}
	return strings.Join(nodes, ",")
}

// outbox counts the records that the primary keeps for the secondary.
func (c *scenario) outbox() string {
	m := c.home.newest(geo.FirstRange(c.service))
	if m == nil {
		return noAnswer
	}
	b, err := m.n.Range(geo.FirstRange(c.service)).Machine.Backlog()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(b.Records)
}
