package ranges

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Invariant 8: the proposal queue is bounded. A batch that does not fit is refused as a whole, and the queue stays as
// it was.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	woken := 0
	r := Range{o: Options{Clock: clock.System{}, Wake: func() { woken++ }}}
	r.leading.Store(1)
	refused := 0
	done := func(err error) {
		require.ErrorIs(t, err, kv.ErrBusy)
		refused++
	}
	for i := range queueMax - 1 {
		r.Submit(waits{i}, done)
	}
	require.Zero(t, refused)
	r.SubmitAll([]Command{waits{-1}, waits{-2}}, func(_ int, err error) { done(err) })
	require.Equal(t, 2, refused)
	r.Submit(waits{queueMax - 1}, done)
	require.Equal(t, 2, refused)
	r.Submit(waits{-3}, done)
	require.Equal(t, 3, refused)
	require.Len(t, r.queue, queueMax)
	for i, w := range r.queue {
		require.Equal(t, waits{i}, w.cmd)
	}
	require.Equal(t, 1, woken)

	r.takeQueue(false)
	r.Submit(waits{queueMax}, done)
	require.Equal(t, 3, refused, "there is room again")
}

// Invariant 8: the generations that a leader remembers as open are bounded. One that it forgot is looked up again.
func TestOpenGenerationsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	generation := func(i int) []byte {
		return keys.ClosedGeneration(benchRange, geo.Table, "acct", "t", keys.Generation{Epoch: 1, Created: geo.Timestamp(i)})
	}
	looksUp := func(i int, closed bool) func(tx *Tx) error {
		return func(tx *Tx) error {
			is, err := tx.GenerationClosed(generation(i))
			require.Equal(t, closed, is)
			return err
		}
	}
	for i := range openMax {
		require.NoError(t, b.propose(looksUp(i+1, false))[0])
	}
	require.Len(t, b.r.open, openMax)
	require.NoError(t, b.propose(looksUp(openMax, false))[0])
	require.Len(t, b.r.open, openMax, "one that it remembers")
	require.NoError(t, b.propose(looksUp(openMax+1, false))[0])
	require.Len(t, b.r.open, 1)
	closes := func(tx *Tx) error { tx.CloseGeneration(generation(1)); return nil }
	for _, err := range b.propose(closes, looksUp(1, true), looksUp(2, false)) {
		require.NoError(t, err)
	}
}
