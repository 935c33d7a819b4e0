package ranges

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/stamp/replica"
)

// R5: a read under a lease asks the replica, which the scheduler replaces when it is rebuilt. The race detector finds one
// that asks another goroutine's.
//
// Capability: The primary location: Reads at any node (R5).
func TestR5ReadWhileTheReplicaIsReplaced(t *testing.T) {
	r := &Range{o: Options{Clock: clock.System{}, Running: clock.NewRunning(time.Second), LeaseLength: time.Hour}}
	r.leading.Store(1)
	r.leaseUntil.Store(int64(clock.System{}.Mono() + time.Hour))
	r.Attach(&replica.Replica{})
	var g sync.WaitGroup
	g.Go(func() {
		for range 100 {
			require.NoError(t, r.Read(t.Context(), func(State) error { return nil }))
		}
	})
	for range 100 {
		r.Attach(&replica.Replica{})
	}
	g.Wait()
}
