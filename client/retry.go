package client

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"time"
)

// StatusNoReply is the status of a try to which no reply came (protocol/service.md 13).
const StatusNoReply = 306

// Result is how one try ended.
type Result struct {
	Endpoint Endpoint
	// Status is that of the reply, or StatusNoReply.
	Status int
	// Err is why there was no reply, or why its body could not be read. Nil for whole replies, of any status.
	Err error
	// Took is how long the try took, up to the headers of a reply whose body the caller reads.
	Took time.Duration
}

// missing reports whether the secondary does not have what the primary may have.
func (r Result) missing() bool { return r.Endpoint == Secondary && r.Status == http.StatusNotFound }

// Retriable reports whether another try may succeed (protocol/service.md 13): after a connection that broke, a time limit, 408
// and 5xx, but not after 501, 505 and other statuses from 300; and after 404 from the secondary, which may not have it yet. An
// error that azcore marks as one that is not to be retried is not.
func Retriable(r Result) bool {
	var final interface {
		error
		NonRetriable()
	}
	switch {
	case r.Err != nil:
		return !errors.As(r.Err, &final)
	case r.missing(), r.Status == http.StatusRequestTimeout:
		return true
	case r.Status == http.StatusNotImplemented, r.Status == http.StatusHTTPVersionNotSupported:
		return false
	default:
		return r.Status >= http.StatusInternalServerError
	}
}

// RetryContext is what a retry policy knows after a try that failed (protocol/service.md 13).
type RetryContext struct {
	// Retries is how many retries were made: 0 after the first try.
	Retries int
	// Last is how the last try ended.
	Last Result
	// Next is where the mode sends the next try.
	Next Endpoint
	// Mode is that of the tries so far, PrimaryOnly for writes.
	Mode LocationMode
	// Since is how long ago the last try at an endpoint ended. An endpoint without a try is absent.
	Since map[Endpoint]time.Duration
}

// Wait returns how long to wait so that two tries at an endpoint are that far apart: the time since the last one there counts,
// which was spent at the other endpoint, and the first one does not wait.
func (c RetryContext) Wait(at Endpoint, apart time.Duration) time.Duration {
	since, visited := c.Since[at]
	if !visited {
		return 0
	}
	return max(apart-since, 0)
}

// Retry is one more try.
type Retry struct {
	// Wait comes before it. Below 0 is 0.
	Wait time.Duration
	// Endpoint is where it goes. Writes go to the primary whatever it is.
	Endpoint Endpoint
	// Mode is that of the tries after it.
	Mode LocationMode
}

// RetryPolicy decides after each try that failed (protocol/service.md 13).
type RetryPolicy interface {
	// Evaluate returns the next try, or false to return what the last one was answered. It is called with every status from 300
	// and every error, by concurrent requests, and not once the context of the request has ended.
	Evaluate(ctx context.Context, c RetryContext) (Retry, bool)
}

// Retries of the policies below where 0 is given.
const retriesDefault = 3

// NoRetry makes one try.
type NoRetry struct{}

// Evaluate implements RetryPolicy.
func (NoRetry) Evaluate(context.Context, RetryContext) (Retry, bool) { return Retry{}, false }

// Linear retries what Retriable says, at equal distances. After 404 from the secondary it asks only the primary, unless the
// mode is SecondaryOnly; that try is made even if it is one more than Retries, so that an object that the primary may have is
// not reported missing.
type Linear struct {
	// Retries is the number of tries after the first. 0 means 3.
	Retries int
	// Apart lies between two tries at the same endpoint. 0 means 30 s.
	Apart time.Duration
}

// Evaluate implements RetryPolicy.
func (l Linear) Evaluate(_ context.Context, c RetryContext) (Retry, bool) {
	return retry(c, orDefault(l.Retries, retriesDefault), orDefault(l.Apart, 30*time.Second))
}

// Exponential retries what Linear does, at growing distances: Min + (2^n - 1) times 0.8 to 1.2 times Delta after n retries, Max
// at most, between two tries at the same endpoint.
type Exponential struct {
	// Retries is the number of tries after the first. 0 means 3.
	Retries int
	// Delta is 4 s, Min 3 s and Max 120 s where they are 0.
	Delta, Min, Max time.Duration
	// Jitter returns numbers from 0 to below 1. It may be called concurrently. Nil means those of math/rand.
	Jitter func() float64
}

// Evaluate implements RetryPolicy.
func (e Exponential) Evaluate(_ context.Context, c RetryContext) (Retry, bool) {
	return retry(c, orDefault(e.Retries, retriesDefault), e.apart(c.Retries))
}

func (e Exponential) apart(retries int) time.Duration {
	jitter := e.Jitter
	if jitter == nil {
		jitter = rand.Float64
	}
	most := orDefault(e.Max, 120*time.Second)
	increment := (math.Pow(2, float64(retries)) - 1) * (0.8 + 0.4*jitter()) * float64(orDefault(e.Delta, 4*time.Second))
	if increment >= float64(most) {
		return most
	}
	return min(most, orDefault(e.Min, 3*time.Second)+time.Duration(increment))
}

// retry is what both policies decide.
func retry(c RetryContext, retries int, apart time.Duration) (Retry, bool) {
	out := Retry{Endpoint: c.Next, Mode: c.Mode}
	elsewhere := c.Last.missing() && c.Mode != SecondaryOnly
	if elsewhere {
		out = Retry{Endpoint: Primary, Mode: PrimaryOnly}
	}
	if !Retriable(c.Last) || c.Retries >= retries && !elsewhere {
		return Retry{}, false
	}
	out.Wait = c.Wait(out.Endpoint, apart)
	return out, true
}

func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}
