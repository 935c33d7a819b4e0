package queues_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/services/queues"
	"antipode/stamp/kv"
)

// hasty is a clock by which all time has passed at the second look.
type hasty struct {
	*offset
	mono atomic.Int64
}

func (c *hasty) Mono() time.Duration { return time.Duration(c.mono.Add(int64(time.Minute))) }

// Q20: a message behind 50,000 that have expired and that nobody has collected is peeked by one call, and got by one call,
// which deletes those before it. A peek whose time is over before that is refused: it does not answer that nothing is there.
//
// Capability: Queues: A message behind many that have expired.
func TestQ20MessageBehindManyExpired(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow under the race detector")
	}
	r := newRig(t)
	const n, putters = 50_000, 100
	put := func(n int) {
		var done sync.WaitGroup
		for range putters {
			done.Go(func() {
				for range n / putters {
					_, err := r.Put(t.Context(), r.queue, queues.PutOptions{Text: []byte("old"), TTL: time.Hour})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		done.Wait()
	}
	put(n)
	peek := func(s *queues.Service) (texts []string, err error) {
		ms, err := s.Peek(t.Context(), r.stamp, r.queue, 32)
		for _, m := range ms {
			texts = append(texts, string(m.Text))
		}
		return texts, err
	}
	r.clock.step(2 * time.Hour)
	none, err := peek(r.Service)
	require.NoError(t, err)
	require.Empty(t, none)
	slow := queues.New(queues.Options{Stamp: r.stamp, Writer: r.write, Clock: &hasty{offset: r.clock}})
	_, err = peek(slow)
	require.ErrorIs(t, err, kv.ErrBusy)
	r.put(t, "live")
	_, err = peek(slow)
	require.ErrorIs(t, err, kv.ErrBusy)
	over, end := context.WithCancel(t.Context())
	end()
	_, err = r.Peek(over, r.stamp, r.queue, 32)
	require.ErrorIs(t, err, context.Canceled)

	texts, err := peek(r.Service)
	require.NoError(t, err)
	require.Equal(t, []string{"live"}, texts)
	require.Equal(t, n+1, r.count(t), "a peek changes nothing")
	require.Equal(t, []string{"live"}, r.get(t, 32, time.Second))
	require.Equal(t, 1, r.count(t))

	// A peek answers with what it has found by the end of its time.
	r.clock.step(time.Minute)
	put(5000)
	r.clock.step(2 * time.Hour)
	texts, err = peek(slow)
	require.NoError(t, err)
	require.Equal(t, []string{"live"}, texts)
}
