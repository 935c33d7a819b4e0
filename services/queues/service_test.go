package queues_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services"
	"antipode/services/queues"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
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

// A message is put, got, updated and deleted; a new queue costs no row before that (protocol/queue.md 9).
func TestLifeOfAMessage(t *testing.T) {
	r := newRig(t)
	require.Zero(t, r.count(t))
	require.Empty(t, r.get(t, 32, time.Minute))
	require.Zero(t, r.dictionary(t).Number)
	put := r.put(t, "hello")
	require.Equal(t, 1, r.count(t))
	peeked, err := r.Peek(t.Context(), r.stamp, r.queue, 32)
	require.NoError(t, err)
	require.Len(t, peeked, 1)
	require.Equal(t, queues.Message{ID: put.ID, Inserted: put.Inserted, Visible: put.Visible, Text: []byte("hello")}, peeked[0])
	got, err := r.Get(t.Context(), r.queue, 32, time.Minute)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.EqualValues(t, 1, got[0].DequeueCount)
	peeked, err = r.Peek(t.Context(), r.stamp, r.queue, 32)
	require.NoError(t, err)
	require.Empty(t, peeked)
	updated, err := r.Update(t.Context(), r.queue, put.ID, got[0].Receipt, 0, []byte("again"))
	require.NoError(t, err)
	require.Equal(t, []string{"again"}, r.get(t, 1, time.Minute))
	require.ErrorIs(t, r.Delete(t.Context(), r.queue, put.ID, updated.Receipt), storageerr.MessageNotFound)
	require.Equal(t, 1, r.count(t))
	require.NoError(t, r.Clear(t.Context(), r.queue))
	require.Zero(t, r.count(t))
}

// Q1, Q6: of messages that were acknowledged none is lost, and the count is right, when nodes are killed while many clients
// put, get and delete. What a get or a delete did whose answer is not known is found out afterwards.
func TestQ1AcknowledgedPutsAreDelivered(t *testing.T) {
	r := newRig(t)
	var mu sync.Mutex
	acked, deleted, maybe := map[string]bool{}, map[string]bool{}, map[string]bool{}
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			for i := 0; ctx.Err() == nil && i < 300; i++ {
				text := fmt.Sprintf("%d-%d", c, i)
				_, err := r.Put(ctx, r.queue, queues.PutOptions{Text: []byte(text), TTL: -1})
				mu.Lock()
				if err == nil {
					acked[text] = true
				} else if errors.Is(err, kv.ErrUnknown) || ctx.Err() != nil {
					maybe[text] = true
				}
				mu.Unlock()
				got, err := r.Get(ctx, r.queue, 2, time.Second)
				if err != nil {
					continue
				}
				for _, m := range got[:min(len(got), 1)] {
					err := r.Delete(ctx, r.queue, m.ID, m.Receipt)
					mu.Lock()
					if err == nil {
						deleted[string(m.Text)] = true
					} else {
						maybe[string(m.Text)] = true
					}
					mu.Unlock()
				}
			}
		})
	}
	for _, id := range r.stamp.Nodes()[:2] {
		require.NoError(t, r.stamp.Stop(id, false))
		require.NoError(t, r.stamp.Start(id))
	}
	clients.Wait()
	stop()
	stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Queue), stamptest.Closed{})
	r.clock.step(5 * time.Second)
	left := map[string]bool{}
	require.Eventually(t, func() bool {
		got, err := r.Get(t.Context(), r.queue, 32, time.Hour)
		for _, m := range got {
			require.False(t, left[string(m.Text)], "got twice")
			left[string(m.Text)] = true
		}
		return err == nil && len(got) == 0
	}, time.Minute, time.Millisecond)
	require.NotEmpty(t, acked)
	for text := range acked {
		require.True(t, left[text] || deleted[text] || maybe[text], text)
	}
	for text := range left {
		require.False(t, deleted[text], text)
		require.True(t, acked[text] || maybe[text], text)
	}
	require.Equal(t, len(left), r.count(t))
}

// Q2, Q3: many getters at once get each message once within its timeout; after it they get them all again, counted.
func TestQ2NoMessageTwice(t *testing.T) {
	r := newRig(t)
	const n = 200
	for i := range n {
		r.put(t, fmt.Sprint(i))
	}
	for round := range 2 {
		var mu sync.Mutex
		seen := map[string]int{}
		var getters sync.WaitGroup
		for range 16 {
			getters.Go(func() {
				for {
					got, err := r.Get(t.Context(), r.queue, 3, time.Minute)
					if err != nil || len(got) == 0 {
						return
					}
					mu.Lock()
					for _, m := range got {
						seen[string(m.Text)]++
						if int(m.DequeueCount) != round+1 {
							seen["count"]++
						}
					}
					mu.Unlock()
				}
			})
		}
		getters.Wait()
		require.Len(t, seen, n)
		for text, times := range seen {
			require.Equal(t, 1, times, text)
		}
		r.clock.step(time.Minute)
	}
}

// Q4, Q5: of the receipts of a message the newest works, also after the timeout, as long as nobody else got the message.
func TestQ4OnlyTheNewestReceipt(t *testing.T) {
	r := newRig(t)
	put := r.put(t, "a")
	first, err := r.Get(t.Context(), r.queue, 1, time.Second)
	require.NoError(t, err)
	r.clock.step(2 * time.Second)
	second, err := r.Get(t.Context(), r.queue, 1, time.Second)
	require.NoError(t, err)
	for _, old := range []string{put.Receipt, first[0].Receipt} {
		require.ErrorIs(t, r.Delete(t.Context(), r.queue, put.ID, old), storageerr.MessageNotFound)
		_, err := r.Update(t.Context(), r.queue, put.ID, old, 0, nil)
		require.ErrorIs(t, err, storageerr.MessageNotFound)
	}
	require.ErrorIs(t, r.Delete(t.Context(), r.queue, queues.MessageID{1}, second[0].Receipt), storageerr.PopReceiptMismatch)
	r.clock.step(2 * time.Second)
	require.NoError(t, r.Delete(t.Context(), r.queue, put.ID, second[0].Receipt))
	require.ErrorIs(t, r.Delete(t.Context(), r.queue, put.ID, second[0].Receipt), storageerr.MessageNotFound)
}

// Q8, Q9: a clock that is set back loses nothing: what is put then is got, after all that was put before.
func TestQ8ClockSetBack(t *testing.T) {
	r := newRig(t)
	r.put(t, "a")
	require.Equal(t, []string{"a"}, r.get(t, 1, time.Hour))
	r.put(t, "b")
	r.clock.step(-10 * time.Second)
	r.put(t, "c")
	peeked, err := r.Peek(t.Context(), r.stamp, r.queue, 32)
	require.NoError(t, err)
	require.Len(t, peeked, 2, "what was put is seen, whatever the clock of the server says")
	require.Equal(t, []string{"b", "c"}, r.get(t, 2, time.Hour))
	r.clock.step(20 * time.Second)
	r.put(t, "d")
	require.Equal(t, []string{"d"}, r.get(t, 2, time.Hour))
}

// Q12: no change of a dictionary leaves a queue without a subqueue that takes messages, brings one back that is to be
// deleted, or drops one that is not; nor one that was made of an older dictionary.
func TestQ12OneTakesMessages(t *testing.T) {
	r := newRig(t)
	r.change(t, add(7))
	d := r.dictionary(t)
	require.EqualValues(t, 1, d.Number)
	try := func(edit func(*queues.Dictionary)) error {
		to := *d
		to.Subqueues = append([]queues.Entry(nil), d.Subqueues...)
		edit(&to)
		return r.write.Write(t.Context(), &queues.ChangeDictionary{Queue: r.queue, To: &to})
	}
	require.Error(t, try(set(queues.StateAllExceptPut, 0, 7)))
	require.Error(t, try(func(d *queues.Dictionary) { d.Subqueues = d.Subqueues[:1] }), "it may have messages")
	require.Error(t, try(add(7)), "twice")
	require.ErrorIs(t, try(func(d *queues.Dictionary) { d.Number = 0 }), queues.ErrStale)
	require.Equal(t, d, r.dictionary(t))
	r.change(t, set(queues.StateToBeDeleted, 7))
	d = r.dictionary(t)
	require.Error(t, try(set(queues.StateAll, 7)))
	require.NoError(t, try(func(d *queues.Dictionary) { d.Subqueues = d.Subqueues[:1] }))
}

// Q13: subqueues come and go while clients put, get and delete: nothing is lost, and nothing got twice.
func TestQ13ScalingUnderLoad(t *testing.T) {
	r := newRig(t)
	fronts := []*queues.Service{r.Service, r.another(), r.another()}
	var mu sync.Mutex
	put, got := map[string]bool{}, map[string]int{}
	var clients sync.WaitGroup
	var failed atomic.Pointer[error]
	for c := range 6 {
		front := fronts[c%len(fronts)]
		clients.Go(func() {
			for i := range 60 {
				text := fmt.Sprintf("%d-%d", c, i)
				_, err := front.Put(t.Context(), r.queue, queues.PutOptions{Text: []byte(text), TTL: -1})
				ms, errGet := front.Get(t.Context(), r.queue, 1, time.Hour)
				mu.Lock()
				put[text] = true
				for _, m := range ms {
					got[string(m.Text)]++
				}
				mu.Unlock()
				for _, m := range ms {
					err = errors.Join(err, front.Delete(t.Context(), r.queue, m.ID, m.Receipt))
				}
				if err = errors.Join(err, errGet); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	r.change(t, add(1, 2, 3, 4, 5, 6, 7))
	r.change(t, set(queues.StateAllExceptPut, 0, 1, 2, 3, 4, 5, 6))
	clients.Wait()
	require.Nil(t, failed.Load())
	for r.count(t) > 0 {
		ms, err := fronts[1].Get(t.Context(), r.queue, 32, time.Hour)
		require.NoError(t, err)
		require.NotEmpty(t, ms, "a queue that is not empty gives a message")
		for _, m := range ms {
			got[string(m.Text)]++
			require.NoError(t, fronts[2].Delete(t.Context(), r.queue, m.ID, m.Receipt))
		}
	}
	require.Len(t, got, len(put))
	for text, n := range got {
		require.Equal(t, 1, n, text)
	}
}

// Q14: a subqueue that drains takes no message from a front end that does not know it yet, which puts it elsewhere.
func TestQ14DrainingTakesNoPut(t *testing.T) {
	r := newRig(t)
	r.put(t, "a") // Now the front end knows of one subqueue.
	r.change(t, add(7))
	r.change(t, set(queues.StateAllExceptPut, 0))
	c := &queues.Put{Command: r.at(0), ID: queues.MessageID{1}, PutOptions: queues.PutOptions{TTL: -1}}
	require.ErrorIs(t, r.do(c), queues.ErrStale)
	r.put(t, "b")
	require.ElementsMatch(t, []string{"a", "b"}, r.get(t, 32, time.Hour))
	n := 0
	for _, id := range []queues.SubqueueID{0, 7} {
		g := &queues.Get{Command: r.at(id), Max: 32, Timeout: time.Hour}
		require.NoError(t, r.do(g))
		require.EqualValues(t, 1, g.Left, "one message in each")
		n++
	}
	require.Equal(t, 2, n)
}

// A front end that knows an older dictionary finds messages in a subqueue that was made since.
func TestGetOfANewSubqueue(t *testing.T) {
	r := newRig(t)
	require.Empty(t, r.get(t, 1, time.Hour))
	r.change(t, add(7))
	r.change(t, set(queues.StateAllExceptPut, 0))
	_, err := r.another().Put(t.Context(), r.queue, queues.PutOptions{Text: []byte("a"), TTL: -1})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, r.get(t, 1, time.Hour))
}

// Q15: a Clear in parallel with puts deletes what was put before it began, for good, and nothing that is put after it ended,
// through whichever front end; receipts of what it deleted name nothing.
func TestQ15ClearAndPuts(t *testing.T) {
	r := newRig(t)
	fronts := []*queues.Service{r.Service, r.another()}
	before := []queues.Message{r.put(t, "before"), r.put(t, "before")}
	_, err := fronts[1].Get(t.Context(), r.queue, 1, time.Second) // Both know of the first subqueue.
	require.NoError(t, err)
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for _, front := range fronts {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = front.Put(t.Context(), r.queue, queues.PutOptions{Text: []byte("beside"), TTL: -1})
				}
			}
		})
	}
	for range 3 {
		require.NoError(t, fronts[1].Clear(t.Context(), r.queue))
	}
	for _, front := range fronts {
		_, err := front.Put(t.Context(), r.queue, queues.PutOptions{Text: []byte("after"), TTL: -1})
		require.NoError(t, err)
	}
	close(stop)
	clients.Wait()
	r.clock.step(5 * time.Second)
	seen := map[string]int{}
	for {
		texts := r.get(t, 32, time.Hour)
		if len(texts) == 0 {
			break
		}
		for _, text := range texts {
			seen[text]++
		}
	}
	require.Equal(t, 2, seen["after"])
	require.Zero(t, seen["before"])
	for _, m := range before {
		require.ErrorIs(t, r.Delete(t.Context(), r.queue, m.ID, m.Receipt), storageerr.MessageNotFound)
	}
	for more := true; more; {
		more, err = r.Collect(t.Context(), r.queue)
		require.NoError(t, err)
	}
	require.Len(t, r.dictionary(t).Subqueues, 1, "what is collected leaves the dictionary")
}

// Q15: a Clear that ended in its middle, so that the subqueue which it replaced is still open, is finished by the next one.
func TestQ15ClearFinishesAnother(t *testing.T) {
	r := newRig(t)
	r.put(t, "a")
	d := r.dictionary(t)
	set(queues.StateToBeDeleted, 0)(d)
	add(7)(d)
	require.NoError(t, r.do(&queues.Open{Command: r.at(7)}))
	require.NoError(t, r.do(&queues.ChangeDictionary{Queue: r.queue, To: d}))
	require.NoError(t, r.another().Clear(t.Context(), r.queue))
	r.put(t, "b") // This front end knows of the first subqueue alone.
	require.Equal(t, []string{"b"}, r.get(t, 32, time.Hour))
}

// Q16: a queue that is created again is empty, whoever knows the one before; its commands are answered that it is gone.
func TestQ16DeleteAndCreate(t *testing.T) {
	r := newRig(t)
	old := r.put(t, "a")
	before := r.queue
	require.NoError(t, r.write.CloseGeneration(t.Context(), geo.Queue, "acct", "jobs", before.Generation))
	_, err := r.Put(t.Context(), before, queues.PutOptions{TTL: -1})
	require.ErrorIs(t, err, storageerr.QueueNotFound)
	_, err = r.Get(t.Context(), before, 1, time.Second)
	require.ErrorIs(t, err, storageerr.QueueNotFound)
	require.ErrorIs(t, r.Clear(t.Context(), before), storageerr.QueueNotFound)
	r.queue.Generation.Created += 2
	require.Zero(t, r.count(t))
	require.Empty(t, r.get(t, 32, time.Second))
	require.ErrorIs(t, r.Delete(t.Context(), r.queue, old.ID, old.Receipt), storageerr.MessageNotFound)
}

// rows are the rows of the queue, by the first byte of their keys.
func (r *rig) rows(t *testing.T) map[byte]int {
	out := map[byte]int{}
	snap := r.stamp.Leader(geo.FirstRange(geo.Queue)).State().Snapshot()
	prefix := keys.AppendContainer(nil, geo.Queue, r.queue.Account, r.queue.Name, r.queue.Generation)
	require.NoError(t, keys.Each(snap, prefix, func(key, _ []byte) error {
		_, row, err := keys.ParsePartition(key)
		out[row[0]]++
		return err
	}))
	require.NoError(t, snap.Close())
	return out
}

// Q18, Q19: a text of 64 KiB comes back as it was put, again after an update, and nothing of it is left once the message is
// deleted, or cleared and collected; the head alone is.
func TestQ19LongTexts(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("é", 32<<10)
	put := r.put(t, long)
	require.Equal(t, map[byte]int{1: 1, 2: 1, 3: 1}, r.rows(t))
	got, err := r.Get(t.Context(), r.queue, 1, time.Hour)
	require.NoError(t, err)
	require.Equal(t, long, string(got[0].Text))
	updated, err := r.Update(t.Context(), r.queue, put.ID, got[0].Receipt, 0, []byte(long[2:]))
	require.NoError(t, err)
	peeked, err := r.Peek(t.Context(), r.stamp, r.queue, 1)
	require.NoError(t, err)
	require.Equal(t, long[2:], string(peeked[0].Text))
	require.NoError(t, r.Delete(t.Context(), r.queue, put.ID, updated.Receipt))
	require.Equal(t, map[byte]int{1: 1}, r.rows(t))
	r.put(t, long)
	require.NoError(t, r.Clear(t.Context(), r.queue))
	require.Equal(t, map[byte]int{1: 2, 4: 1}, r.rows(t), "two heads and the dictionary")
}

// Q20, Q21: what has expired is neither got nor peeked, and is not counted once it is collected; what never expires is got
// after a year.
func TestQ20Expiry(t *testing.T) {
	r := newRig(t)
	m, err := r.Put(t.Context(), r.queue, queues.PutOptions{Text: []byte("short"), TTL: 2 * time.Second, Delay: time.Second})
	require.NoError(t, err)
	require.Equal(t, m.Inserted+2*geo.TicksPerSecond, m.Expires)
	require.Equal(t, m.Inserted+geo.TicksPerSecond, m.Visible)
	require.Zero(t, r.put(t, "for ever").Expires)
	require.Equal(t, []string{"for ever"}, r.get(t, 32, time.Second))
	r.clock.step(365 * 24 * time.Hour)
	peeked, err := r.Peek(t.Context(), r.stamp, r.queue, 32)
	require.NoError(t, err)
	require.Len(t, peeked, 1)
	require.ErrorIs(t, r.Delete(t.Context(), r.queue, m.ID, m.Receipt), storageerr.MessageNotFound)
	require.Equal(t, 2, r.count(t))
	next, err := r.CollectExpired(t.Context(), queues.Subqueue{Queue: r.queue}, nil)
	require.NoError(t, err)
	require.Nil(t, next)
	require.Equal(t, 1, r.count(t))
	require.Equal(t, []string{"for ever"}, r.get(t, 32, time.Second))
}

// A queue of several subqueues does what a set of messages does, whatever is done in which order, by which front end, while
// subqueues come and go (property, on a real range).
func TestServiceAgainstAModel(t *testing.T) {
	r := newRig(t)
	generation := r.queue.Generation
	rapid.Check(t, func(t *rapid.T) {
		generation.Created += 2
		r.queue.Generation = generation
		fronts := []*queues.Service{r.another(), r.another()}
		type state struct {
			receipt string
			hidden  time.Time
		}
		n, nextID := 0, queues.SubqueueID(1)
		live := map[string]*state{}
		ids := map[string]queues.MessageID{}
		front := func() *queues.Service { return fronts[rapid.IntRange(0, 1).Draw(t, "front end")] }
		collect := func() {
			for more := true; more; {
				var err error
				more, err = front().Collect(context.Background(), r.queue)
				require.NoError(t, err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				n++
				text := fmt.Sprint(n)
				m, err := front().Put(context.Background(), r.queue, queues.PutOptions{Text: []byte(text), TTL: -1})
				require.NoError(t, err)
				live[text], ids[text] = &state{receipt: m.Receipt}, m.ID
			},
			"get": func(t *rapid.T) {
				limit := rapid.SampledFrom([]int{1, 3, 32}).Draw(t, "limit")
				before := r.clock.Now()
				visible := 0
				for _, s := range live {
					if s.hidden.Before(before) {
						visible++
					}
				}
				got, err := front().Get(context.Background(), r.queue, limit, time.Minute)
				require.NoError(t, err)
				require.Len(t, got, min(limit, visible))
				for _, m := range got {
					s := live[string(m.Text)]
					require.NotNil(t, s)
					require.True(t, s.hidden.Before(before), "hidden")
					s.receipt, s.hidden = m.Receipt, m.Visible.Time()
				}
			},
			"delete": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip("nothing to delete")
				}
				text := rapid.SampledFrom(slices.Sorted(maps.Keys(live))).Draw(t, "message")
				require.NoError(t, front().Delete(context.Background(), r.queue, ids[text], live[text].receipt))
				delete(live, text)
			},
			"clear": func(t *rapid.T) {
				require.NoError(t, front().Clear(context.Background(), r.queue))
				for text := range live {
					require.ErrorIs(t, front().Delete(context.Background(), r.queue, ids[text], live[text].receipt), storageerr.MessageNotFound)
				}
				clear(live)
			},
			"scale up": func(t *rapid.T) {
				r.change(t, add(nextID))
				nextID++
			},
			"scale down": func(t *rapid.T) {
				d := r.dictionary(t)
				var open []queues.SubqueueID
				for _, e := range d.Subqueues {
					if e.State == queues.StateAll {
						open = append(open, e.ID)
					}
				}
				if len(open) > 1 {
					r.change(t, set(queues.StateAllExceptPut, open[0]))
				}
			},
			"collect": func(*rapid.T) { collect() },
			"time":    func(*rapid.T) { r.clock.step(61 * time.Second) },
			"":        func(t *rapid.T) { require.Equal(t, len(live), r.count(t)) },
		})
	})
}
