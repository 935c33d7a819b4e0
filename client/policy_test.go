package client

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// Each mode's tries while nothing answers: reads alternate where the mode has both endpoints, writes go to the primary only
// (protocol/service.md 13), in both styles of addresses.
func TestModes(t *testing.T) {
	for mode, want := range map[LocationMode][2]string{
		PrimaryOnly:          {"PPPP", "PPPP"},
		PrimaryThenSecondary: {"PSPS", "PPPP"},
		SecondaryOnly:        {"SSSS", ""},
		SecondaryThenPrimary: {"SPSP", "PPPP"},
	} {
		for i, methods := range [2][]string{{"GET", "HEAD", "OPTIONS"}, {"PUT", "POST", "DELETE", "PATCH", "MERGE"}} {
			for _, method := range methods {
				for _, primary := range []string{hostStyle, pathStyle} {
					f := &fake{t: t, answers: []answer{{err: errBroken}, {status: 503}}}
					_, err := f.do(t.Context(), f.policy(geo.Blob, primary, Options{Mode: mode}), method, primary+"/c/b", nil)
					require.Equal(t, want[i], f.path(), "%v: %s", mode, method)
					if want[i] == "" {
						require.ErrorIs(t, err, ErrWrite)
						require.ErrorContains(t, err, method+" /c/b")
					}
				}
			}
		}
	}
	require.Equal(t, "PrimaryOnly PrimaryThenSecondary SecondaryOnly SecondaryThenPrimary LocationMode(4)",
		strings.Join([]string{PrimaryOnly.String(), PrimaryThenSecondary.String(), SecondaryOnly.String(), SecondaryThenPrimary.String(), LocationMode(4).String()}, " "))
}

// The wait lies between two tries at the same endpoint, less the time since the last one there ended; the first one at an
// endpoint does not wait.
func TestWaits(t *testing.T) {
	for mode, want := range map[LocationMode][]time.Duration{
		PrimaryOnly: {5 * time.Second, 5 * time.Second, 5 * time.Second},
		// The primary's first try ended at 1 s and the secondary's at 2 s: the next ones begin at 6 s and, since that took until
		// 7 s, at once.
		PrimaryThenSecondary: {4 * time.Second},
	} {
		f := &fake{t: t, answers: statuses(500), took: time.Second}
		resp, err := f.do(t.Context(), f.policy(geo.Blob, hostStyle, Options{Mode: mode, Retry: Linear{Apart: 5 * time.Second}}), "GET", hostStyle+"/c/b", nil)
		require.NoError(t, err)
		require.Equal(t, 500, resp.StatusCode)
		require.Equal(t, want, f.waits, "%v", mode)
	}
}

// If the secondary lacks something, the primary is asked, and from then on the primary only. Where only the secondary
// may be asked, it is asked again, and its answer is reported.
func TestMissingAtTheSecondary(t *testing.T) {
	for _, c := range []struct {
		mode    LocationMode
		answers []answer
		path    string
		status  int
	}{
		{SecondaryThenPrimary, statuses(404, 200), "SP", 200},
		{SecondaryThenPrimary, statuses(404, 503), "SPPP", 503},
		{SecondaryThenPrimary, statuses(404, 404), "SP", 404},
		{PrimaryThenSecondary, statuses(503, 404, 503, 200), "PSPP", 200},
		{PrimaryThenSecondary, statuses(404), "P", 404},
		{PrimaryThenSecondary, statuses(503, 503, 503, 404, 200), "PSPSP", 200}, // One more, so that 404 is the primary's answer.
		{PrimaryThenSecondary, statuses(503, 503, 503, 404, 503), "PSPSP", 503},
		{SecondaryOnly, statuses(404), "SSSS", 404},
		{SecondaryOnly, statuses(404, 200), "SS", 200},
	} {
		f := &fake{t: t, answers: c.answers}
		resp, err := f.do(t.Context(), f.policy(geo.Blob, hostStyle, Options{Mode: c.mode}), "GET", hostStyle+"/c/b", nil)
		require.NoError(t, err)
		require.Equal(t, c.path, f.path(), "%v %v", c.mode, c.answers)
		require.Equal(t, c.status, resp.StatusCode)
	}
	f := &fake{t: t, answers: statuses(404, 200)}
	_, err := f.do(t.Context(), f.policy(geo.Blob, hostStyle, Options{Mode: SecondaryThenPrimary}), "GET", hostStyle+"/c/b", nil)
	require.NoError(t, err)
	require.Empty(t, f.waits)
}

// stubborn always sends the next try to the secondary.
type stubborn struct{ most int }

func (s stubborn) Evaluate(_ context.Context, c RetryContext) (Retry, bool) {
	return Retry{Wait: -1, Endpoint: Secondary, Mode: SecondaryOnly}, c.Retries < s.most
}

// A retry policy chooses the endpoint of a read, but a write goes to the primary whatever it says.
func TestWritesStayAtThePrimary(t *testing.T) {
	for method, want := range map[string]string{"GET": "PSS", "PUT": "PPP", "DELETE": "PPP"} {
		f := &fake{t: t, answers: statuses(503)}
		_, err := f.do(t.Context(), f.policy(geo.Blob, pathStyle, Options{Retry: stubborn{2}}), method, pathStyle+"/c/b", nil)
		require.NoError(t, err)
		require.Equal(t, want, f.path(), method)
		require.Empty(t, f.waits)
	}
}

// A queue hides from others what it gives out, so a get is a write; peeking, and whatever else is called messages, is
// a read. Statistics are read from the secondary only.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		service geo.Service
		url     string
		mode    LocationMode
		path    string
		err     error
	}{
		{geo.Queue, "/q/messages?numofmessages=1", PrimaryThenSecondary, "PPPP", nil},
		{geo.Queue, "/q/messages", SecondaryOnly, "", ErrWrite},
		{geo.Queue, "/q/messages?peekonly=true", SecondaryOnly, "SSSS", nil},
		{geo.Queue, "/messages?comp=metadata", SecondaryOnly, "SSSS", nil},
		{geo.Queue, "/q?comp=metadata", PrimaryThenSecondary, "PSPS", nil},
		{geo.Blob, "/c/messages", SecondaryOnly, "SSSS", nil},
		{geo.Table, "/q/messages", SecondaryOnly, "SSSS", nil},
		{geo.Blob, "?restype=service&comp=stats", SecondaryOnly, "SSSS", nil},
		{geo.Blob, "?restype=service&comp=stats", PrimaryThenSecondary, "", ErrStatistics},
		{geo.Blob, "?restype=service&comp=stats", PrimaryOnly, "", ErrStatistics},
		{geo.Blob, "?restype=service&comp=properties", PrimaryThenSecondary, "PSPS", nil},
	} {
		for _, primary := range []string{hostStyle, pathStyle} {
			f := &fake{t: t, answers: statuses(503)}
			_, err := f.do(t.Context(), f.policy(c.service, primary, Options{Mode: c.mode}), "GET", primary+c.url, nil)
			require.ErrorIs(t, err, c.err, c.url)
			require.Equal(t, c.path, f.path(), "%s %v", c.url, c.mode)
		}
	}
	f := &fake{t: t, answers: statuses(200)}
	_, err := f.do(t.Context(), f.policy(geo.Blob, hostStyle, Options{}), "GET", "https://other.blob.example.net/c", nil)
	require.ErrorIs(t, err, ErrEndpoint)
	_, err = f.do(WithLocationMode(t.Context(), 7), f.policy(geo.Blob, hostStyle, Options{}), "GET", hostStyle, nil)
	require.ErrorContains(t, err, "LocationMode(7)")
	require.Empty(t, f.hosts)
}

// A context changes mode and retries of one request.
func TestContextOfARequest(t *testing.T) {
	f := &fake{t: t, answers: statuses(503)}
	p := f.policy(geo.Blob, hostStyle, Options{Mode: PrimaryThenSecondary})
	get := func(ctx context.Context) string {
		f.hosts = nil
		_, err := f.do(ctx, p, "GET", hostStyle+"/c/b", nil)
		require.NoError(t, err)
		return f.path()
	}
	require.Equal(t, "PSPS", get(t.Context()))
	require.Equal(t, "SSSS", get(WithLocationMode(t.Context(), SecondaryOnly)))
	require.Equal(t, "P", get(WithRetryPolicy(t.Context(), NoRetry{})))
	require.Equal(t, "SP", get(WithLocationMode(WithRetryPolicy(t.Context(), Linear{Retries: 1}), SecondaryThenPrimary)))
}

// The end of a request's context ends it: between two tries, and in a try, after which no policy is asked.
func TestContextEnds(t *testing.T) {
	f := &fake{t: t, answers: statuses(503)}
	ctx, cancel := context.WithCancel(t.Context())
	p := f.policy(geo.Blob, hostStyle, Options{OnTry: func(_ context.Context, tr Try) {
		if tr.Number == 2 {
			cancel()
		}
	}})
	_, err := f.do(ctx, p, "GET", hostStyle+"/c/b", nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "PP", f.path())

	asked := f.policy(geo.Blob, hostStyle, Options{Retry: failing{t}})
	_, err = f.do(ctx, asked, "GET", hostStyle+"/c/b", nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, f.tries, 1)
	require.Nil(t, f.tries[0].Next)
}

// failing must not be asked.
type failing struct{ t *testing.T }

func (f failing) Evaluate(_ context.Context, c RetryContext) (Retry, bool) {
	require.Fail(f.t, "asked", "%+v", c)
	return Retry{}, false
}

// The reads of a pinned context stay where the first one succeeded, also when that endpoint fails later; writes do not.
func TestPin(t *testing.T) {
	f := &fake{t: t, answers: statuses(503, 200, 200, 201, 503)}
	p := f.policy(geo.Blob, hostStyle, Options{Mode: PrimaryThenSecondary})
	ctx := Pin(t.Context())
	for _, method := range []string{"GET", "GET", "PUT", "GET"} {
		_, err := f.do(ctx, p, method, hostStyle+"/c?restype=container&comp=list", nil)
		require.NoError(t, err)
	}
	require.Equal(t, "PS"+"S"+"P"+"SSSS", f.path())
	first := ctx.Value(pinKey{}).(*pin)
	first.succeeded(Primary) // Of a read that was sent beside the first one.
	require.Equal(t, SecondaryOnly, first.mode(PrimaryOnly))
}

// A read that its context has ended binds no other read.
func TestPinOfAReadThatEnds(t *testing.T) {
	f := &fake{t: t, answers: statuses(200)}
	p := f.policy(geo.Blob, hostStyle, Options{Mode: SecondaryThenPrimary})
	ctx := Pin(t.Context())
	one, cancel := context.WithCancel(ctx)
	cancel()
	_, err := f.do(one, p, "GET", hostStyle+"/c/b", nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = f.do(WithLocationMode(ctx, PrimaryOnly), p, "GET", hostStyle+"/c/b", nil)
	require.NoError(t, err)
	require.Equal(t, "SP", f.path())
}

// Every try is reported with what follows.
func TestTries(t *testing.T) {
	f := &fake{t: t, answers: []answer{{err: errBroken}, {status: 404}, {status: 200}}, took: time.Second}
	_, err := f.do(t.Context(), f.policy(geo.Blob, hostStyle, Options{Mode: PrimaryThenSecondary, Retry: Linear{Apart: 3 * time.Second}}), "GET", hostStyle+"/c/b", nil)
	require.NoError(t, err)
	require.Equal(t, []Try{
		{1, "GET", "acct.blob.example.net", Result{Primary, StatusNoReply, errBroken, time.Second}, &Retry{0, Secondary, PrimaryThenSecondary}},
		{2, "GET", "acct-secondary.blob.example.net", Result{Secondary, 404, nil, time.Second}, &Retry{2 * time.Second, Primary, PrimaryOnly}},
		{3, "GET", "acct.blob.example.net", Result{Primary, 200, nil, time.Second}, nil},
	}, f.tries)
	require.Equal(t, "primary secondary", Primary.String()+" "+Secondary.String())
}

// A try that takes longer than its limit is over, and another one is made; the request's context goes on.
func TestTryTimeout(t *testing.T) {
	f := &fake{t: t, answers: []answer{{status: 200, body: "whole"}}}
	slow := transport(func(r *http.Request) (*http.Response, error) {
		if len(f.hosts) == 0 {
			f.hosts = append(f.hosts, "-")
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return f.Do(r)
	})
	p := f.policy(geo.Blob, hostStyle, Options{Mode: PrimaryThenSecondary, TryTimeout: 5 * time.Millisecond})
	resp, err := slow.do(t, p, hostStyle+"/c/b")
	require.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "whole", string(b))
	require.Equal(t, "-S", f.path())
	require.ErrorIs(t, f.tries[0].Err, context.DeadlineExceeded)
	require.Equal(t, StatusNoReply, f.tries[0].Status)
}

// A reply whose body breaks counts as a broken connection, at whichever status.
func TestBrokenBody(t *testing.T) {
	f := &fake{t: t, answers: []answer{{status: 200, err: errBroken, body: "ha"}, {status: 200, body: "whole"}}}
	resp, err := f.do(t.Context(), f.policy(geo.Blob, hostStyle, Options{Mode: PrimaryThenSecondary}), "GET", hostStyle+"/c/b", nil)
	require.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "PS whole", f.path()+" "+string(b))
}
