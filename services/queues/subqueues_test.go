package queues_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/services"
	"antipode/services/queues"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
)

// Q12: no change of a dictionary leaves a queue without a subqueue that takes messages, brings one back that is to be
// deleted, or drops one that is not; nor one that was made of an older dictionary.
func TestQ12OneTakesMessages(t *testing.T) {
	t.Parallel()
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
	was := d.Subqueues
	d = r.dictionary(t)
	require.Equal(t, was[0], d.Subqueues[0])
	require.Greater(t, d.Subqueues[1].Since, was[1].Since, "its state has changed since")
	require.Equal(t, d.Changed, d.Subqueues[1].Since)
	require.Error(t, try(set(queues.StateAll, 7)))
	require.NoError(t, try(func(d *queues.Dictionary) { d.Subqueues = d.Subqueues[:1] }))
}

// Q13: subqueues come and go while clients put, get and delete: nothing is lost, and nothing got twice.
func TestQ13ScalingUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ends := []*queues.Service{r.Service, r.another(), r.another()}
	var mu sync.Mutex
	put, got := map[string]bool{}, map[string]int{}
	var clients sync.WaitGroup
	var failed atomic.Pointer[error]
	for c := range 6 {
		end := ends[c%len(ends)]
		clients.Go(func() {
			for i := range 60 {
				text := fmt.Sprintf("%d-%d", c, i)
				_, err := end.Put(t.Context(), r.queue, queues.PutOptions{Text: []byte(text), TTL: -1})
				ms, errGet := end.Get(t.Context(), r.queue, 1, time.Hour)
				mu.Lock()
				put[text] = true
				for _, m := range ms {
					got[string(m.Text)]++
				}
				mu.Unlock()
				for _, m := range ms {
					err = errors.Join(err, end.Delete(t.Context(), r.queue, m.ID, m.Receipt))
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
		ms, err := ends[1].Get(t.Context(), r.queue, 32, time.Hour)
		require.NoError(t, err)
		require.NotEmpty(t, ms, "a queue that is not empty gives a message")
		for _, m := range ms {
			got[string(m.Text)]++
			require.NoError(t, ends[2].Delete(t.Context(), r.queue, m.ID, m.Receipt))
		}
	}
	require.Len(t, got, len(put))
	for text, n := range got {
		require.Equal(t, 1, n, text)
	}
}

// Q14: a subqueue that drains takes no message from a front end that does not know it yet, which puts it elsewhere.
func TestQ14DrainingTakesNoPut(t *testing.T) {
	t.Parallel()
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

// Q14, Q15: a subqueue that is to be deleted stays so: it takes no put, is not opened again, and its receipts name
// nothing, also while its rows are there.
func TestQ15ToBeDeletedIsForGood(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.put(t, "a")
	require.NoError(t, r.do(&queues.SetState{Command: r.at(0), To: queues.StateToBeDeleted}))
	require.Equal(t, map[byte]int{1: 1, 2: 1}, r.rows(t))
	peeked, err := r.Peek(t.Context(), r.stamp, r.queue, 32)
	require.NoError(t, err)
	require.Empty(t, peeked)
	require.ErrorIs(t, r.Delete(t.Context(), r.queue, m.ID, m.Receipt), storageerr.MessageNotFound)
	_, err = r.Update(t.Context(), r.queue, m.ID, m.Receipt, 0, nil)
	require.ErrorIs(t, err, storageerr.MessageNotFound)
	require.ErrorIs(t, r.do(&queues.SetState{Command: r.at(0), To: queues.StateAll}), queues.ErrStale)
	require.ErrorIs(t, r.do(&queues.Open{Command: r.at(0)}), queues.ErrStale)
	require.ErrorIs(t, r.do(&queues.Put{Command: r.at(0), PutOptions: queues.PutOptions{TTL: -1}}), queues.ErrStale)
	require.ErrorIs(t, r.do(&queues.Get{Command: r.at(0), Max: 1}), queues.ErrStale)
	require.ErrorIs(t, r.do(&queues.SetState{Command: r.at(9), To: queues.StateAll}), queues.ErrStale, "it was never opened")
}

// A subqueue that is disabled gives and takes nothing, by receipt neither, is counted, and outlives a Clear: when it is enabled
// again its messages are there (protocol/queue.md 15, 23).
func TestDisabledSubqueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.put(t, "a")
	r.change(t, add(7))
	r.change(t, set(queues.StateDisabled, 0))
	end := r.another()
	r.put(t, "b")
	peeked, err := end.Peek(t.Context(), r.stamp, r.queue, 32)
	require.NoError(t, err)
	require.Len(t, peeked, 1)
	require.Equal(t, []string{"b"}, r.get(t, 32, time.Hour))
	require.ErrorIs(t, r.do(&queues.Get{Command: r.at(0), Max: 1, Timeout: time.Hour}), queues.ErrStale)
	require.ErrorIs(t, r.Delete(t.Context(), r.queue, m.ID, m.Receipt), kv.ErrBusy)
	_, err = r.Update(t.Context(), r.queue, m.ID, m.Receipt, 0, nil)
	require.ErrorIs(t, err, kv.ErrBusy)
	require.Equal(t, 2, r.count(t))
	require.NoError(t, r.Clear(t.Context(), r.queue))
	require.Equal(t, 1, r.count(t))
	r.change(t, set(queues.StateAll, 0))
	require.Equal(t, []string{"a"}, r.get(t, 32, time.Hour))
}

// A front end that knows an older dictionary finds messages in a subqueue that was made since.
func TestGetFindsOtherSubqueues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Empty(t, r.get(t, 1, time.Hour))
	r.change(t, add(7))
	r.change(t, set(queues.StateAllExceptPut, 0))
	_, err := r.another().Put(t.Context(), r.queue, queues.PutOptions{Text: []byte("a"), TTL: -1})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, r.get(t, 1, time.Hour))
}

// Q15: a Clear in parallel with puts deletes what was put before it began, for good, and nothing that is put after it
// ended, through whichever front end; receipts of what it deleted name nothing.
func TestQ15ClearAndPuts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ends := []*queues.Service{r.Service, r.another()}
	before := []queues.Message{r.put(t, "before"), r.put(t, "before")}
	_, err := ends[1].Get(t.Context(), r.queue, 1, time.Second) // Both know of the first subqueue.
	require.NoError(t, err)
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for _, end := range ends {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = end.Put(t.Context(), r.queue, queues.PutOptions{Text: []byte("beside"), TTL: -1})
				}
			}
		})
	}
	for range 3 {
		require.NoError(t, ends[1].Clear(t.Context(), r.queue))
	}
	for _, end := range ends {
		_, err := end.Put(t.Context(), r.queue, queues.PutOptions{Text: []byte("after"), TTL: -1})
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

// Q15: a Clear that ended in its middle, so that the subqueue which it replaced is still open, is finished by the next
// one.
func TestQ15ClearFinishesAnother(t *testing.T) {
	t.Parallel()
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

// Q15: every subqueue that a Clear replaces is closed before the answer, also where the rows of the first are too many to
// be collected at once: a front end that knows the one before puts nothing into any of them.
func TestQ15ClearClosesAll(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.change(t, add(7))
	var putters sync.WaitGroup
	for c := range 10 {
		putters.Go(func() {
			for i := range 101 {
				put := &queues.Put{Command: r.at(0), ID: queues.MessageID{byte(c), byte(i)}, PutOptions: queues.PutOptions{TTL: -1}}
				if err := r.do(put); err != nil {
					t.Error(err)
				}
			}
		})
	}
	putters.Wait()
	require.NoError(t, r.Clear(t.Context(), r.queue))
	require.Positive(t, r.rows(t)[2], "some rows are left")
	require.Zero(t, r.count(t))
	for _, id := range []queues.SubqueueID{0, 7} {
		require.ErrorIs(t, r.do(&queues.Put{Command: r.at(id), PutOptions: queues.PutOptions{TTL: -1}}), queues.ErrStale)
	}
}

// A queue of several subqueues behaves as a set of messages, for any operations in any order by any front end.
// Subqueues come and go meanwhile (property, on a real range).
func TestServiceAgainstAModel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	generation := r.queue.Generation
	rapid.Check(t, func(t *rapid.T) {
		generation.Created += 2
		r.queue.Generation = generation
		ends := []*queues.Service{r.another(), r.another()}
		type state struct {
			receipt string
			hidden  time.Time
		}
		n, nextID := 0, queues.SubqueueID(1)
		live := map[string]*state{}
		ids := map[string]queues.MessageID{}
		end := func() *queues.Service { return ends[rapid.IntRange(0, 1).Draw(t, "front end")] }
		collect := func() {
			for more := true; more; {
				var err error
				more, err = end().Collect(context.Background(), r.queue)
				require.NoError(t, err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				n++
				text := fmt.Sprint(n)
				m, err := end().Put(context.Background(), r.queue, queues.PutOptions{Text: []byte(text), TTL: -1})
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
				got, err := end().Get(context.Background(), r.queue, limit, time.Minute)
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
				require.NoError(t, end().Delete(context.Background(), r.queue, ids[text], live[text].receipt))
				delete(live, text)
			},
			"clear": func(t *rapid.T) {
				require.NoError(t, end().Clear(context.Background(), r.queue))
				for text := range live {
					require.ErrorIs(t, end().Delete(context.Background(), r.queue, ids[text], live[text].receipt), storageerr.MessageNotFound)
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

// failing fails every write of one subqueue.
type failing struct {
	services.Writer
	of queues.SubqueueID
}

func (w failing) Write(ctx context.Context, c services.Write) error {
	if c.Partition().Object == w.of.String() {
		return kv.ErrUnknown
	}
	return w.Writer.Write(ctx, c)
}

// zeros makes every choice the first one.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A Get answers with what it has taken from one subqueue, though another one fails: it is hidden now. With nothing
// taken the error is the answer.
func TestGetAnswersWhatItHasTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(t, "a")
	r.change(t, add(7))
	fails := func(of queues.SubqueueID) *queues.Service {
		return queues.New(queues.Options{Stamp: r.stamp, Writer: failing{r.write, of}, Clock: r.clock, Random: zeros{}})
	}
	_, err := fails(0).Get(t.Context(), r.queue, 32, time.Hour)
	require.ErrorIs(t, err, kv.ErrUnknown)
	got, err := fails(7).Get(t.Context(), r.queue, 32, time.Hour)
	require.NoError(t, err)
	require.Len(t, got, 1)
}
