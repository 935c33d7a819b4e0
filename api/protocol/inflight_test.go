package protocol

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// request is one of an account, without a body.
func request(a geo.Account) *Request {
	return &Request{HTTP: httptest.NewRequest(http.MethodPut, "/x", nil), Account: &catalog.Account{Name: a}}
}

// Holds that grow in steps, of several accounts, each beyond what all could have at once,
// all come to their end, and never hold more than the bound and the shares.
// It holds invariant 8.
func TestGrowingHoldsEnd(t *testing.T) {
	const bound, most, step = 64, 16, 1
	f := NewInFlightOf(bound, most)
	var held atomic.Int64
	var of [3]atomic.Int64
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			account := i % len(of)
			h := f.Hold(request(geo.Account(string(rune('a' + account)))))
			mine := int64(0)
			for mine < most {
				n := min(step+rng.Int64N(6), most-mine)
				if err := h.Grow(t.Context(), n); err != nil {
					t.Error(err)
					break
				}
				mine += n
				if held.Add(n) > bound || of[account].Add(n) > bound/2 {
					t.Error("too much is held")
				}
			}
			held.Add(-mine)
			of[account].Add(-mine)
			h.Release()
		})
	}
	wg.Wait()
	require.Zero(t, f.held)
	require.Empty(t, f.accounts)
	require.Empty(t, f.waiting)
	require.Nil(t, f.first)
}

// One account holds half of the bound, and the next one finds memory at once.
// It holds invariant 8.
func TestAccountShare(t *testing.T) {
	f := NewInFlight(64)
	hostile, honest := f.Of("hostile"), f.Of("honest")
	for range 32 {
		held, ok := hostile.TryAdmit(1)
		require.True(t, ok)
		require.EqualValues(t, 1, held)
	}
	_, ok := hostile.TryAdmit(1)
	require.False(t, ok)
	held, ok := honest.TryAdmit(16)
	require.True(t, ok)
	honest.Release(held)
	held, ok = f.TryAdmit(32)
	require.True(t, ok, "what no account counts for is bounded by the whole")
	f.Release(held)
	for range 32 {
		hostile.Release(1)
	}
	require.Empty(t, f.accounts)
}

// A hold that waits gives up with its context, and what it held is the next one's.
func TestHoldGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewInFlight(8)
		held, err := f.Admit(t.Context(), 8)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h := f.Hold(request("a"))
		require.ErrorIs(t, h.Grow(ctx, 1), storageerr.ServerBusy)
		h.Release()
		h.Release()
		require.Nil(t, f.first)
		f.Release(held)
		require.Zero(t, f.held)
	})
}

// dripping is a body that brings one byte each period, until its deadline, and the
// connection that it comes on.
type dripping struct {
	http.ResponseWriter
	period time.Duration
	// moved has an element after the deadline was set.
	moved chan struct{}

	mu  sync.Mutex
	end time.Time // Guarded by mu.
}

func newDripping(period time.Duration) *dripping {
	return &dripping{ResponseWriter: httptest.NewRecorder(), period: period, moved: make(chan struct{}, 1)}
}

func (d *dripping) SetReadDeadline(t time.Time) error {
	d.mu.Lock()
	d.end = t
	d.mu.Unlock()
	select {
	case d.moved <- struct{}{}:
	default:
	}
	return nil
}

// untilDeadline is how long is left, and a time beyond each test where there is no deadline.
func (d *dripping) untilDeadline() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.end.IsZero() {
		return 24 * time.Hour
	}
	return time.Until(d.end)
}

// Read implements io.Reader. Like a connection's it ends when a deadline is set that has
// passed: who sets it may hold what the clock of a test waits for.
func (d *dripping) Read(p []byte) (int, error) {
	drop := time.After(d.period)
	for {
		left := d.untilDeadline()
		if left <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		select {
		case <-drop:
			p[0] = 'x'
			return 1, nil
		case <-time.After(left):
		case <-d.moved:
		}
	}
}

// A sender that drips a byte just before it would be given up is given up all the same,
// since it brings less than it must; one that is fast enough and pauses is not.
// It holds invariant 8.
func TestMinimumRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDripping(29 * time.Second)
		r := httptest.NewRequest(http.MethodPut, "/x", d)
		r.ContentLength = 1 << 30
		WatchSender(d, r)
		start := time.Now()
		n, err := io.Copy(io.Discard, r.Body)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.EqualValues(t, 1, n)
		require.Less(t, time.Since(start), 31*time.Second)

		fast := &watchedBody{allowance: SenderStallMax}
		for range 20 {
			fast.begin()
			time.Sleep(20 * time.Second)
			fast.took(20 * senderBytesPerSecond)
		}
		require.Equal(t, SenderStallMax, fast.allowance)
	})
}

// A sender that drips while others wait for its memory is broken off, with 503: the one
// that waits has the memory long before the minimum rate would end the slow one. A fast
// sender is not.
// It holds invariant 8.
func TestSlowSenderGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewInFlight(8)
		d := newDripping(100 * time.Millisecond)
		slow := request("a")
		slow.HTTP = httptest.NewRequest(http.MethodPut, "/x", d)
		slow.HTTP.ContentLength = 1 << 30
		WatchSender(d, slow.HTTP)
		ended := make(chan error)
		go func() {
			h := f.Hold(slow)
			defer h.Release()
			if err := h.Take(t.Context(), 4); err != nil {
				ended <- err
				return
			}
			_, err := io.Copy(io.Discard, slow.HTTP.Body)
			h.Release()
			ended <- err
		}()
		time.Sleep(2 * time.Second)
		h := f.Hold(request("a"))
		start := time.Now()
		require.NoError(t, h.Take(t.Context(), 4))
		require.Less(t, time.Since(start), time.Second)
		h.Release()
		require.ErrorIs(t, <-ended, errPressed)
	})
}
