package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"antipode/geo"
	"antipode/internal/clock"
)

// Requests that are refused before anything is sent.
var (
	// ErrWrite means that a request writes, and its mode is SecondaryOnly.
	ErrWrite = errors.New("client: nothing is written in the mode SecondaryOnly")
	// ErrStatistics means that a request reads the statistics of the service in another mode than SecondaryOnly: only the
	// secondary has them.
	ErrStatistics = errors.New("client: statistics are read in the mode SecondaryOnly")
)

// Options configures a Policy. The zero value is valid.
type Options struct {
	// Mode is that of requests whose context has none: see WithLocationMode.
	Mode LocationMode
	// Retry is the policy of requests whose context has none: see WithRetryPolicy. Nil means Exponential{}.
	Retry RetryPolicy
	// TryTimeout bounds each try, the reading of the answer's body included. 0 means that only the request's context does:
	// a location that takes requests and never answers them is then waited for. Negative values are refused.
	TryTimeout time.Duration
	// Secondary is the secondary endpoint where it is not the primary one with -secondary behind the account.
	Secondary string
	// OnTry is called when a try has ended and what follows is decided. Nil for nobody. It may be called concurrently.
	OnTry func(ctx context.Context, t Try)
	// Now is a clock that does not step, and Wait waits, or returns an error when ctx ends. Nil means the machine's.
	Now  func() time.Duration
	Wait func(ctx context.Context, d time.Duration) error
}

// Try is a try that has ended.
type Try struct {
	// Number counts the tries of a request from 1.
	Number int
	Method string
	// Host is where it went.
	Host string
	Result
	// Next is the try that follows, nil after the last.
	Next *Retry
}

// Policy sends the requests of a client to the endpoints of one account and retries them: see the package. Its methods may be
// called concurrently, by any number of clients.
type Policy struct {
	o         Options
	service   geo.Service
	endpoints endpoints
}

// New returns the policy of clients of a service of an account, at the primary endpoint that these are made with.
func New(s geo.Service, primary string, o Options) (*Policy, error) {
	e, err := newEndpoints(primary, o.Secondary)
	switch {
	case err != nil:
		return nil, err
	case s != geo.Blob && s != geo.Queue && s != geo.Table:
		return nil, fmt.Errorf("client: %v is no service of accounts", s)
	case !o.Mode.valid():
		return nil, fmt.Errorf("client: there is no %v", o.Mode)
	case o.TryTimeout < 0:
		return nil, fmt.Errorf("client: a time limit of %v", o.TryTimeout)
	}
	if o.Retry == nil {
		o.Retry = Exponential{}
	}
	if o.OnTry == nil {
		o.OnTry = func(context.Context, Try) {}
	}
	if o.Now == nil {
		o.Now = clock.System{}.Mono
	}
	if o.Wait == nil {
		o.Wait = clock.Wait
	}
	return &Policy{o, s, e}, nil
}

// Do implements policy.Policy.
func (p *Policy) Do(req *policy.Request) (*http.Response, error) {
	ctx := req.Raw().Context()
	c := call{p: p, req: req, mode: p.o.Mode, retry: p.o.Retry, ended: map[Endpoint]time.Duration{}}
	if m, ok := ctx.Value(modeKey{}).(LocationMode); ok {
		c.mode = m
	}
	if r, ok := ctx.Value(retryKey{}).(RetryPolicy); ok {
		c.retry = r
	}
	if !c.mode.valid() {
		return nil, fmt.Errorf("client: there is no %v", c.mode)
	}
	var err error
	if c.at, err = p.endpoints.resource(req.Raw().URL); err != nil {
		return nil, err
	}
	switch c.kind = kindOf(p.service, req.Raw(), c.at); {
	case c.kind == write && c.mode == SecondaryOnly:
		return nil, fmt.Errorf("%w: %s %s", ErrWrite, req.Raw().Method, c.at.path)
	case c.kind == write:
		c.mode = PrimaryOnly
	case c.kind == statistics && c.mode != SecondaryOnly:
		return nil, fmt.Errorf("%w, not %v", ErrStatistics, c.mode)
	}
	if b, ok := ctx.Value(pinKey{}).(*pin); ok && c.kind == read {
		c.pin, c.mode = b, b.mode(c.mode)
	}
	if body := req.Body(); body != nil {
		defer func() { _ = body.Close() }() // As azcore does: the request has its answer.
	}
	return c.run(ctx)
}

// call is one request.
type call struct {
	p     *Policy
	req   *policy.Request
	at    resource
	kind  kind
	mode  LocationMode
	retry RetryPolicy
	// pin is nil for reads that are not bound, and for writes.
	pin *pin
	// ended is when the last try at an endpoint ended.
	ended map[Endpoint]time.Duration
}

// run makes tries until one succeeds, or the retry policy or the context ends them.
func (c *call) run(ctx context.Context) (*http.Response, error) {
	to := c.mode.first()
	for retries := 0; ; retries++ {
		resp, t := c.try(ctx, to)
		t.Number = retries + 1
		if ctx.Err() != nil || t.Err == nil && t.Status < http.StatusMultipleChoices {
			c.p.o.OnTry(ctx, t)
			if c.pin != nil && t.Err == nil {
				c.pin.succeeded(to)
			}
			return resp, t.Err
		}
		next, again := c.retry.Evaluate(ctx, c.context(retries, t.Result))
		if c.kind == write {
			next.Endpoint, next.Mode = Primary, PrimaryOnly
		}
		if again {
			t.Next = &next
		}
		c.p.o.OnTry(ctx, t)
		if !again {
			return resp, t.Err
		}
		runtime.Drain(resp)
		if next.Wait > 0 {
			if err := c.p.o.Wait(ctx, next.Wait); err != nil {
				return nil, err
			}
		}
		to, c.mode = next.Endpoint, next.Mode
	}
}

// context is what a retry policy is asked with.
func (c *call) context(retries int, last Result) RetryContext {
	out := RetryContext{Retries: retries, Last: last, Next: c.mode.next(last.Endpoint), Mode: c.mode, Since: map[Endpoint]time.Duration{}}
	for e, ended := range c.ended {
		out.Since[e] = c.p.o.Now() - ended
	}
	return out
}

// try sends a copy of the request to an endpoint. azcore's retry policy, which comes next, makes one try and bounds it.
func (c *call) try(ctx context.Context, to Endpoint) (*http.Response, Try) {
	req := c.req.Clone(policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1, TryTimeout: c.p.o.TryTimeout}))
	c.p.endpoints.direct(req.Raw(), c.at, to)
	t := Try{Method: req.Raw().Method, Host: req.Raw().URL.Host, Result: Result{Endpoint: to, Status: StatusNoReply}}
	began := c.p.o.Now()
	var resp *http.Response
	if resp, t.Err = c.send(req); resp != nil {
		t.Status = resp.StatusCode
	}
	c.ended[to] = c.p.o.Now()
	t.Took = c.ended[to] - began
	return resp, t
}

// send sends one try, whose body is the request's until it has ended.
func (c *call) send(req *policy.Request) (*http.Response, error) {
	if body := c.req.Body(); body != nil {
		own := &tryBody{body: body}
		defer own.end()
		if err := req.SetBody(own, req.Raw().Header.Get("Content-Type")); err != nil {
			return nil, err
		}
	}
	return req.Next()
}

// errEnded is what a connection reads of the body of a try that has ended.
var errEnded = errors.New("client: the try has ended")

// tryBody is the body of a request for one try. Its Close does not close the request's body, since there may be another try;
// and a connection that still sends it when the try has ended does not move what the next try sends.
type tryBody struct {
	mu sync.Mutex
	// body is nil when the try has ended. Guarded by mu.
	body io.ReadSeeker
}

// Read implements io.Reader.
func (b *tryBody) Read(to []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.body == nil {
		return 0, errEnded
	}
	return b.body.Read(to)
}

// Seek implements io.Seeker.
func (b *tryBody) Seek(offset int64, whence int) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.body == nil {
		return 0, errEnded
	}
	return b.body.Seek(offset, whence)
}

// Close implements io.Closer.
func (b *tryBody) Close() error { return nil }

func (b *tryBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.body = nil
}
