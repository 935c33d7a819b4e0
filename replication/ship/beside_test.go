package ship

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Acknowledgements come from another goroutine than Step, also while it names all streams in a full closed record.
func TestAcknowledgedBesideAFullRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p", "p", "p")
	r.steps()
	st := testStream("p")
	cursor := StreamCursor{Stream: st, Head: r.leader().Machine.Head(st)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 1000 {
			if _, err := r.ship.Acknowledge(Acknowledgement{Cursors: []StreamCursor{cursor}}); err != nil {
				t.Error(err)
				return
			}
			r.ship.mu.Lock()
			delete(r.ship.acked, st)
			r.ship.mu.Unlock()
		}
	})
	for range 1000 {
		r.ship.fullNext = true
		require.True(t, r.ship.closedRecord().Full)
	}
	wg.Wait()
}
