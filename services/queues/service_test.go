package queues_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services"
	"antipode/services/queues"
	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/stamptest"
)

// A message is put, got, updated and deleted; a new queue costs no row before that (protocol/queue.md 9).
func TestLifeOfAMessage(t *testing.T) {
	t.Parallel()
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

// Q1, Q6: no acknowledged message is lost, and the count is right, when nodes are killed while many clients put,
// get and delete. The effect of a get or delete whose answer is not known is found out afterwards.
func TestQ1AcknowledgedPutsAreDelivered(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

// Q4, Q5: of the receipts of a message the newest works, also after the timeout, as long as nobody else got the
// message.
func TestQ4OnlyTheNewestReceipt(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

// Q16: a queue that is created again is empty, also for who knows the one before; its commands are answered that it is
// gone.
func TestQ16DeleteAndCreate(t *testing.T) {
	t.Parallel()
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

// Q18, Q19: a text of 64 KiB comes back as it was put, again after an update, and nothing of it is left once the
// message is deleted, or cleared and collected; the head alone is.
func TestQ19LongTexts(t *testing.T) {
	t.Parallel()
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

// Q20, Q21: what has expired is neither got nor peeked, and is not counted once it is collected; what never expires is
// got after a year.
func TestQ20Expiry(t *testing.T) {
	t.Parallel()
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

// paused is a writer that stands still before or behind the commit of its first command, until it may go on.
type paused struct {
	services.Writer
	behind       bool
	stands, goOn chan struct{}
	once         sync.Once
}

func (p *paused) Write(ctx context.Context, w services.Write) error {
	var err error
	if p.behind {
		err = p.Writer.Write(ctx, w)
	}
	p.once.Do(func() {
		close(p.stands)
		<-p.goOn
	})
	if !p.behind {
		err = p.Writer.Write(ctx, w)
	}
	return err
}

// Q11: a get that stands still, before its commit or before its answer, holds up no other one.
func TestQ11GetsWaitForNoOther(t *testing.T) {
	t.Parallel()
	for _, behind := range []bool{false, true} {
		r := newRig(t)
		for i := range 3 {
			r.put(t, fmt.Sprint(i))
		}
		w := &paused{Writer: r.write, behind: behind, stands: make(chan struct{}), goOn: make(chan struct{})}
		slow := queues.New(queues.Options{Stamp: r.stamp, Writer: w, Clock: r.clock})
		var got []queues.Message
		var err error
		var done sync.WaitGroup
		done.Go(func() { got, err = slow.Get(t.Context(), r.queue, 1, time.Minute) })
		<-w.stands
		others := r.get(t, 32, time.Minute)
		close(w.goOn)
		done.Wait()
		require.NoError(t, err)
		if behind {
			require.Len(t, got, 1)
			require.Equal(t, []string{"1", "2"}, others)
		} else {
			require.Empty(t, got)
			require.Equal(t, []string{"0", "1", "2"}, others)
		}
	}
}
