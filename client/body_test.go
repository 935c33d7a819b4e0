package client

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// transport is a function as a transport.
type transport func(*http.Request) (*http.Response, error)

// Do implements policy.Transporter.
func (f transport) Do(r *http.Request) (*http.Response, error) { return f(r) }

// do sends a GET through azcore's pipeline, whose answer's body the caller reads.
func (f transport) do(t *testing.T, p *Policy, url string) (*http.Response, error) {
	pl := runtime.NewPipeline("test", "v0.0.0", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: f, PerCallPolicies: []policy.Policy{p}})
	r, err := runtime.NewRequest(t.Context(), http.MethodGet, url)
	require.NoError(t, err)
	runtime.SkipBodyDownload(r)
	return pl.Do(r)
}

// counted is a body that counts how often it was closed.
type counted struct {
	*strings.Reader
	closed int
}

func (c *counted) Close() error { c.closed++; return nil }

// Each try sends the whole body, it is closed once, when there is an answer; and a connection that still sends it when its try
// has ended reads nothing of it.
func TestBodyIsSentWhole(t *testing.T) {
	f := &fake{t: t, answers: statuses(503, 201)}
	body := &counted{Reader: strings.NewReader("the whole body")}
	_, err := f.do(t.Context(), f.policy(geo.Blob, hostStyle, Options{}), "PUT", hostStyle+"/c/b", body)
	require.NoError(t, err)
	require.Equal(t, []string{"the whole body", "the whole body"}, f.bodies)
	require.Equal(t, 1, body.closed)

	var left io.ReadCloser
	half := make([]byte, 4)
	f = &fake{t: t, answers: statuses(201)}
	_, err = transport(func(r *http.Request) (*http.Response, error) {
		require.Equal(t, int64(14), r.ContentLength)
		require.Equal(t, "text/plain", r.Header.Get("Content-Type"))
		if left == nil {
			left = r.Body
			_, err := left.Read(half)
			require.NoError(t, err)
			return nil, errBroken
		}
		require.Zero(t, body.closed-1)
		_, err := left.Read(half)
		require.ErrorIs(t, err, errEnded)
		_, err = left.(io.Seeker).Seek(3, io.SeekStart)
		require.ErrorIs(t, err, errEnded)
		return f.Do(r)
	}).put(t, f.policy(geo.Blob, hostStyle, Options{}), body)
	require.NoError(t, err)
	require.Equal(t, []string{"the whole body"}, f.bodies)
	require.Equal(t, 2, body.closed)
}

// The body of an answer that is not returned is closed: here that of a status whose body azcore leaves to the caller.
func TestAnswersAreClosed(t *testing.T) {
	f := &fake{t: t}
	var bodies []*counted
	resp, err := transport(func(r *http.Request) (*http.Response, error) {
		bodies = append(bodies, &counted{Reader: strings.NewReader("moved")})
		return &http.Response{StatusCode: http.StatusFound, Header: http.Header{}, Body: bodies[len(bodies)-1], Request: r}, nil
	}).do(t, f.policy(geo.Blob, hostStyle, Options{Retry: stubborn{1}}), hostStyle+"/c/b")
	require.NoError(t, err)
	require.Equal(t, http.StatusFound, resp.StatusCode)
	require.Len(t, bodies, 2)
	require.Equal(t, 1, bodies[0].closed)
	require.Zero(t, bodies[0].Len())
	require.Zero(t, bodies[1].closed)
}

func (f transport) put(t *testing.T, p *Policy, body io.ReadSeekCloser) (*http.Response, error) {
	pl := runtime.NewPipeline("test", "v0.0.0", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: f, PerCallPolicies: []policy.Policy{p}})
	r, err := runtime.NewRequest(t.Context(), http.MethodPut, hostStyle+"/c/b")
	require.NoError(t, err)
	require.NoError(t, r.SetBody(body, "text/plain"))
	return pl.Do(r)
}
