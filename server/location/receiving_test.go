package location

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The receiver runs while this process leads the catalog: it starts within leadPoll of the election,
// ends within leadPoll of the loss of the lead, starts again with the next term, and is waited for when
// the location stops.
func TestReceiverFollowsTheCatalogsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var leads atomic.Bool
		var running, started atomic.Int32
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			follow(ctx, leads.Load, func(ctx context.Context) {
				started.Add(1)
				running.Add(1)
				<-ctx.Done()
				time.Sleep(time.Second) // The last group is committed.
				running.Add(-1)
			})
		}()
		after := func(d time.Duration, run, start int32) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			require.Equal(t, []int32{run, start}, []int32{running.Load(), started.Load()})
		}
		after(time.Minute, 0, 0)
		leads.Store(true)
		after(leadPoll, 1, 1)
		after(time.Minute, 1, 1)
		leads.Store(false)
		after(leadPoll, 1, 1)
		leads.Store(true)
		after(time.Second/2, 1, 1) // The receiver of the last term has not ended.
		after(time.Second, 1, 2)
		leads.Store(false)
		after(leadPoll+time.Second, 0, 2)
		leads.Store(true)
		after(leadPoll, 1, 3)
		begun := time.Now()
		stop()
		<-stopped
		require.Equal(t, time.Second, time.Since(begun))
		require.Zero(t, running.Load())
	})
}
