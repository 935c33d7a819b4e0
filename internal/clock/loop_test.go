package clock

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A loop steps at once, when the last step asked for it, after a Wake (once for several) and
// after an arrival, and returns when its context ends.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var woken int
		var steps atomic.Int32 // A step by time is ordered behind nothing that the test did.
		l := NewLoop(func() { woken++ })
		arrived := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.Run(ctx, System{}, arrived, func(time.Duration) time.Duration {
				steps.Add(1)
				return time.Second
			})
		}()
		after := func(want int32, what string) {
			t.Helper()
			synctest.Wait()
			require.Equal(t, want, steps.Load(), what)
		}
		after(1, "at once")
		time.Sleep(time.Second - 1)
		after(1, "not yet")
		time.Sleep(time.Nanosecond)
		after(2, "by time")
		l.Wake()
		after(3, "by a wake")
		arrived <- struct{}{}
		after(4, "by an arrival")
		time.Sleep(time.Second - 1)
		after(4, "the time runs from the last step")
		cancel()
		<-ended
		l.Wake()
		require.Equal(t, 2, woken)
	})
}
