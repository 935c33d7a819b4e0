package queues_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services"
	"antipode/services/queues"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/stamptest"
)

// offset is the machine's clock, ahead of it by some time or behind it.
type offset struct {
	clock.System
	by atomic.Int64
}

func (c *offset) Now() time.Time { return c.System.Now().Add(time.Duration(c.by.Load())) }

func (c *offset) step(by time.Duration) { c.by.Add(int64(by)) }

// rig is the queue service of a stamp, and a queue without messages in it.
type rig struct {
	*queues.Service
	stamp *stamp.Stamp
	write *primary.Primary
	clock *offset
	queue queues.Queue
}

func newRig(t *testing.T) *rig {
	c := &offset{}
	s := stamptest.NewAt(t, c, "north", geo.Queue)
	stamptest.Submit(t, s, geo.FirstRange(geo.Queue), stamptest.Gate{Account: "acct", Gate: change.Gate{
		Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true,
	}})
	p := primary.New(s)
	r := &rig{stamp: s, write: p, clock: c, queue: queues.Queue{Account: "acct", Name: "jobs", Generation: keys.Generation{Epoch: 1, Created: 2}}}
	r.Service = r.another()
	return r
}

// another is the service of another front end: it knows of no dictionary yet.
func (r *rig) another() *queues.Service {
	return queues.New(queues.Options{Stamp: r.stamp, Writer: r.write, Clock: r.clock})
}

func (r *rig) put(t require.TestingT, text string) queues.Message {
	m, err := r.Put(context.Background(), r.queue, queues.PutOptions{Text: []byte(text), TTL: -1})
	require.NoError(t, err)
	return m
}

func (r *rig) get(t require.TestingT, limit int, timeout time.Duration) (texts []string) {
	got, err := r.Get(context.Background(), r.queue, limit, timeout)
	require.NoError(t, err)
	for _, m := range got {
		texts = append(texts, string(m.Text))
	}
	return texts
}

func (r *rig) count(t require.TestingT) int {
	n, err := r.Count(context.Background(), r.stamp, r.queue)
	require.NoError(t, err)
	return int(n)
}

func (r *rig) dictionary(t require.TestingT) *queues.Dictionary {
	d, err := queues.ReadDictionary(r.stamp.Leader(geo.FirstRange(geo.Queue)).State(), r.queue)
	require.NoError(t, err)
	return d
}

// change changes the dictionary, and then the heads, as the queue manager does.
func (r *rig) change(t require.TestingT, edit func(d *queues.Dictionary)) {
	d := r.dictionary(t)
	d.Subqueues = append([]queues.Entry(nil), d.Subqueues...)
	before := map[queues.SubqueueID]bool{}
	for _, e := range d.Subqueues {
		before[e.ID] = true
	}
	edit(d)
	for _, e := range d.Subqueues {
		if !before[e.ID] {
			require.NoError(t, r.do(&queues.Open{Command: r.at(e.ID)}))
		}
	}
	require.NoError(t, r.write.Write(context.Background(), &queues.ChangeDictionary{Queue: r.queue, To: d}))
	for _, e := range d.Subqueues {
		require.NoError(t, r.do(&queues.SetState{Command: r.at(e.ID), To: e.State}))
	}
}

func (r *rig) at(id queues.SubqueueID) queues.Command {
	return queues.Command{At: queues.Subqueue{Queue: r.queue, ID: id}}
}

func (r *rig) do(w services.Write) error { return r.write.Write(context.Background(), w) }

// add adds subqueues that take messages.
func add(ids ...queues.SubqueueID) func(*queues.Dictionary) {
	return func(d *queues.Dictionary) {
		for _, id := range ids {
			d.Subqueues = append(d.Subqueues, queues.Entry{ID: id, Schema: 1, State: queues.StateAll})
		}
	}
}

// set puts subqueues into a state.
func set(s queues.State, ids ...queues.SubqueueID) func(*queues.Dictionary) {
	return func(d *queues.Dictionary) {
		for i := range d.Subqueues {
			for _, id := range ids {
				if d.Subqueues[i].ID == id {
					d.Subqueues[i].State = s
				}
			}
		}
	}
}
