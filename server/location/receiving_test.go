package location

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/replication/site"
	"antipode/stamp/kv"
)

// The receiver runs while this process leads the catalog: it starts within site.LookEvery of the election,
// ends within that of the loss of the lead, starts again with the next term, with what the location knows
// then, and is waited for when the location stops.
//
// Capability: Two locations: Which stream a location received last is in its catalog (R15).
// Capability: Two locations: Who receives is stepped code.
func TestReceiverFollowsTheCatalogsLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var lead atomic.Uint64
		var running, started, read atomic.Int32
		f := newFollowing(clock.NewManual(time.Now()), site.Options{})
		f.lead = func() site.Term { return site.Term(lead.Load()) }
		f.read = func() (time.Time, error) { return time.Unix(int64(read.Add(1)), 0), nil }
		f.receive = func(ctx context.Context, e site.StartReceiver) {
			require.Equal(t, time.Unix(int64(started.Add(1)), 0), e.Incarnation)
			running.Add(1)
			<-ctx.Done()
			time.Sleep(time.Second) // The last group is committed.
			running.Add(-1)
		}
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			f.run(ctx)
		}()
		after := func(d time.Duration, run, start int32) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			require.Equal(t, []int32{run, start}, []int32{running.Load(), started.Load()})
		}
		after(time.Minute, 0, 0)
		lead.Store(1)
		after(site.LookEvery, 1, 1)
		after(time.Minute, 1, 1)
		lead.Store(0)
		after(site.LookEvery, 1, 1)
		lead.Store(3)
		after(time.Second/2, 1, 1) // The receiver of the last term has not ended.
		after(time.Second, 1, 2)
		lead.Store(4) // The lead was lost and won between two looks.
		after(time.Second/2, 1, 2)
		after(time.Second, 1, 3)
		lead.Store(0)
		after(site.LookEvery+time.Second, 0, 3)
		lead.Store(6)
		after(site.LookEvery, 1, 4)
		begun := time.Now()
		stop()
		<-stopped
		require.Equal(t, time.Second, time.Since(begun))
		require.Zero(t, running.Load())
	})
}

// A receiver does not begin while the location cannot say which stream it knows: it asks again.
//
// Capability: Two locations: Which stream a location received last is in its catalog (R15).
func TestReceiverWaitsForWhatTheLocationKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var read, started atomic.Int32
		c := clock.NewManual(time.Now())
		f := newFollowing(c, site.Options{})
		f.lead = func() site.Term { return 1 }
		f.read = func() (time.Time, error) {
			if read.Add(1) < 3 {
				return time.Time{}, kv.ErrBusy
			}
			return time.Unix(7, 0), nil
		}
		f.receive = func(ctx context.Context, e site.StartReceiver) {
			started.Add(1)
			require.Equal(t, time.Unix(7, 0), e.Incarnation)
			<-ctx.Done()
		}
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			f.run(ctx)
		}()
		for range 100 {
			time.Sleep(site.LookEvery)
			synctest.Wait()
			c.Advance(site.LookEvery)
		}
		require.EqualValues(t, 3, read.Load())
		require.EqualValues(t, 1, started.Load())
		stop()
		<-stopped
	})
}
