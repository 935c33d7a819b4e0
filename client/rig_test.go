package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/geo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	hostStyle = "https://acct.blob.example.net"
	pathStyle = "http://127.0.0.1:10000/acct"
)

var errBroken = errors.New("connection reset")

// fake is a transport and a clock: it answers as a script says, each try takes as long, and a wait ends at once.
type fake struct {
	t       *testing.T
	answers []answer
	took    time.Duration

	now    time.Duration
	hosts  []string // of the tries, "P" or "S"
	urls   []string
	bodies []string
	auth   []string
	waits  []time.Duration
	tries  []Try
}

// answer is a status, or none with an error; with both the body breaks.
type answer struct {
	status int
	err    error
	body   string
}

// statuses are answers that are statuses only.
func statuses(s ...int) (out []answer) {
	for _, status := range s {
		out = append(out, answer{status: status})
	}
	return out
}

// Do implements policy.Transporter. The last answer is repeated.
func (f *fake) Do(r *http.Request) (*http.Response, error) {
	f.now += f.took
	where := "P"
	if strings.Contains(r.URL.Host+r.URL.Path, geo.SecondarySuffix) {
		where = "S"
	}
	require.Equal(f.t, r.URL.Host, r.Host)
	f.hosts, f.urls = append(f.hosts, where), append(f.urls, r.URL.String())
	f.auth = append(f.auth, r.Header.Get("Authorization"))
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		require.NoError(f.t, err)
		body = string(b)
	}
	f.bodies = append(f.bodies, body)
	a := f.answers[min(len(f.hosts), len(f.answers))-1]
	if a.status == 0 {
		return nil, a.err
	}
	var b io.Reader = strings.NewReader(a.body)
	if a.err != nil {
		b = io.MultiReader(b, broken{a.err})
	}
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(b), Request: r}, nil
}

// broken is a reader that fails.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// policy returns a policy of the fake's clock.
func (f *fake) policy(s geo.Service, primary string, o Options) *Policy {
	f.t.Helper()
	o.Now = func() time.Duration { return f.now }
	o.Wait = func(ctx context.Context, d time.Duration) error {
		f.waits = append(f.waits, d)
		f.now += d
		return ctx.Err()
	}
	if o.OnTry == nil {
		o.OnTry = func(_ context.Context, t Try) { f.tries = append(f.tries, t) }
	}
	p, err := New(s, primary, o)
	require.NoError(f.t, err)
	return p
}

// do sends a request through azcore's pipeline.
func (f *fake) do(ctx context.Context, p *Policy, method, url string, body io.ReadSeekCloser) (*http.Response, error) {
	f.t.Helper()
	pl := runtime.NewPipeline("test", "v0.0.0", runtime.PipelineOptions{}, &policy.ClientOptions{
		Transport: f, PerCallPolicies: []policy.Policy{p},
	})
	r, err := runtime.NewRequest(ctx, method, url)
	require.NoError(f.t, err)
	if body != nil {
		require.NoError(f.t, r.SetBody(body, "text/plain"))
	}
	return pl.Do(r)
}

// path is where the tries went: "PSP".
func (f *fake) path() string { return strings.Join(f.hosts, "") }
