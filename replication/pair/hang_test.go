package pair

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/link"
)

// hungEnd answers nothing until the caller gives up, as a location that was stopped does.
type hungEnd struct {
	End
	running, most, asked atomic.Int64
}

func (h *hungEnd) hang(ctx context.Context) error {
	h.asked.Add(1)
	if n := h.running.Add(1); n > h.most.Load() {
		h.most.Store(n)
	}
	defer h.running.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

func (h *hungEnd) Records(ctx context.Context, _ geo.Stream, _ geo.Seq, _ int) ([][]byte, error) {
	return nil, h.hang(ctx)
}

// While the other location hangs, so many calls run and so many wait; the others fail at
// once, and each of the rest within twice link.CallTimeout.
// It holds invariant 8.
func TestHungPulls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &hungEnd{}
		l := link.New()
		defer l.Close()
		s := NewSource(l, far, clock.System{})
		var atOnce, later atomic.Int64
		for range callsOpen + 100 {
			s.Records(testStream("acct", 1), 1, 10, func(_ [][]byte, err error) {
				if errors.Is(err, link.ErrBusy) && later.Load() == 0 {
					atOnce.Add(1)
				} else {
					require.Error(t, err)
					later.Add(1)
				}
			})
		}
		require.EqualValues(t, 100, atOnce.Load())
		time.Sleep(2*link.CallTimeout + time.Second)
		synctest.Wait()
		require.EqualValues(t, callsOpen+100, atOnce.Load()+later.Load())
		require.Zero(t, far.running.Load())
		require.EqualValues(t, bulkRunning, far.most.Load())
	})
}

// A cut ends the calls in flight, and Close ends them and all that wait.
func TestCutAndCloseEndCalls(t *testing.T) {
	for name, end := range map[string]func(*link.Link){"cut": (*link.Link).Cut, "close": (*link.Link).Close} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far := &hungEnd{}
				l := link.New()
				defer l.Close()
				s := NewSource(l, far, clock.System{})
				var ended atomic.Int64
				for range 3 * bulkRunning {
					s.Records(testStream("acct", 1), 1, 10, func(_ [][]byte, err error) {
						require.ErrorIs(t, err, link.ErrCut)
						ended.Add(1)
					})
				}
				synctest.Wait()
				require.EqualValues(t, bulkRunning, far.running.Load())
				start := time.Now()
				end(l)
				synctest.Wait()
				require.EqualValues(t, 3*bulkRunning, ended.Load())
				require.Equal(t, start, time.Now())
				require.EqualValues(t, bulkRunning, far.asked.Load(), "nothing got through after it")
			})
		})
	}
}
