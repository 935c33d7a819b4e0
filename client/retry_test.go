package client

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// finalError is one that azcore does not retry.
type finalError struct{}

func (finalError) Error() string { return "refused here" }
func (finalError) NonRetriable() {}

// The statuses of protocol/service.md 13 that are retried, and no other ones.
func TestRetriable(t *testing.T) {
	retried := map[int]bool{408: true, 404: false}
	for status := 300; status < 600; status++ {
		retried[status] = status == 408 || status >= 500 && status != 501 && status != 505
	}
	for status, want := range retried {
		require.Equal(t, want, Retriable(Result{Endpoint: Primary, Status: status}), "%d", status)
		require.Equal(t, want || status == 404, Retriable(Result{Endpoint: Secondary, Status: status}), "%d", status)
	}
	require.True(t, Retriable(Result{Status: StatusNoReply, Err: errBroken}))
	require.True(t, Retriable(Result{Status: 200, Err: errBroken}))
	require.False(t, Retriable(Result{Status: StatusNoReply, Err: fmt.Errorf("sign: %w", finalError{})}))
	require.False(t, Retriable(Result{Status: 200, Err: errors.Join(errBroken, finalError{})}))
}

// The distances of Exponential grow, with their jitter, up to their maximum, and do not overflow.
func TestExponential(t *testing.T) {
	apart := func(jitter float64, retries int, e Exponential) time.Duration {
		e.Jitter = func() float64 { return jitter }
		e.Retries = 1 << 30
		r, again := e.Evaluate(t.Context(), RetryContext{
			Retries: retries, Last: Result{Status: 500}, Since: map[Endpoint]time.Duration{Primary: 0},
		})
		require.True(t, again)
		return r.Wait
	}
	for retries, want := range map[int]time.Duration{0: 3000, 1: 6200, 2: 12600, 3: 25400, 5: 102200, 6: 120000, 5000: 120000} {
		require.Equal(t, want*time.Millisecond, apart(0, retries, Exponential{}).Round(time.Microsecond), "%d", retries)
	}
	require.Equal(t, 7*time.Second, apart(0.5, 1, Exponential{}))
	require.Equal(t, time.Second, apart(0, 0, Exponential{Min: time.Second}))
	require.Equal(t, 2*time.Second, apart(0.5, 1, Exponential{Min: time.Second, Delta: time.Second}))
	require.Equal(t, 5*time.Second, apart(0.5, 9, Exponential{Max: 5 * time.Second}))
	got := apart(0, 1, Exponential{})
	require.Equal(t, 6200*time.Millisecond, got)
	unjittered, again := Exponential{}.Evaluate(t.Context(), RetryContext{Retries: 1, Last: Result{Status: 500}, Since: map[Endpoint]time.Duration{Primary: 0}})
	require.True(t, again)
	require.InDelta(t, 7.0, unjittered.Wait.Seconds(), 0.8)
}

// The policies end after as many retries as they were given, 3 without a number.
func TestRetriesEnd(t *testing.T) {
	for _, c := range []struct {
		policy RetryPolicy
		want   int
	}{{Linear{}, 3}, {Linear{Retries: 1}, 1}, {Exponential{}, 3}, {Exponential{Retries: 7}, 7}, {NoRetry{}, 0}} {
		n := 0
		for ; n < 20; n++ {
			if _, again := c.policy.Evaluate(t.Context(), RetryContext{Retries: n, Last: Result{Status: 503}}); !again {
				break
			}
		}
		require.Equal(t, c.want, n, "%#v", c.policy)
	}
	_, again := NoRetry{}.Evaluate(t.Context(), RetryContext{Last: Result{Endpoint: Secondary, Status: 404}, Mode: SecondaryThenPrimary})
	require.False(t, again)
	r, again := Linear{}.Evaluate(t.Context(), RetryContext{Last: Result{Status: 503}, Since: map[Endpoint]time.Duration{Primary: 0}})
	require.True(t, again)
	require.Equal(t, 30*time.Second, r.Wait)
}
