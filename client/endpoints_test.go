package client

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// The secondary endpoint follows from the primary's in both styles, or is given.
func TestEndpoints(t *testing.T) {
	for _, c := range []struct{ primary, secondary, request, want string }{
		{hostStyle, "", "/c/b?x=1", "https://acct-secondary.blob.example.net/c/b?x=1"},
		{hostStyle + "/?sv=1", "", "", "https://acct-secondary.blob.example.net"},
		{pathStyle, "", "/c/a%2Fb%20c", "http://127.0.0.1:10000/acct-secondary/c/a%2Fb%20c"},
		{pathStyle + "/", "", "?comp=list", "http://127.0.0.1:10000/acct-secondary?comp=list"},
		{"http://acct.table.localhost:10002", "", "/T(PartitionKey='%C3%B8',RowKey='')", "http://acct-secondary.table.localhost:10002/T(PartitionKey='%C3%B8',RowKey='')"},
		{hostStyle, "http://127.0.0.1:1/acct-secondary", "/c/acct", "http://127.0.0.1:1/acct-secondary/c/acct"},
		{pathStyle, "http://acct-secondary.blob.localhost", "/c/%2E", "http://acct-secondary.blob.localhost/c/%2E"},
	} {
		f := &fake{t: t, answers: statuses(200)}
		p, err := New(geo.Blob, c.primary, Options{Secondary: c.secondary, Mode: SecondaryOnly})
		require.NoError(t, err)
		primary := p.endpoints[Primary]
		_, err = f.do(t.Context(), p, "GET", primary.String()+c.request, nil)
		require.NoError(t, err)
		_, err = f.do(t.Context(), p, "GET", c.want, nil) // A client of the secondary endpoint.
		require.NoError(t, err)
		_, err = f.do(WithLocationMode(t.Context(), PrimaryOnly), p, "GET", c.want, nil)
		require.NoError(t, err)
		require.Equal(t, []string{c.want, c.want, primary.String() + c.request}, f.urls)
	}
	for _, c := range []struct{ primary, secondary, says string }{
		{"", "", "no endpoint"},
		{"acct.blob.example.net", "", "no endpoint"},
		{"ftp://acct.blob.example.net", "", "no endpoint"},
		{"https://%zz", "", "no endpoint"},
		{"http://127.0.0.1:10000", "", "names no account"},
		{"http://localhost:10000", "", "names no account"},
		{hostStyle + "/c/b", "", "is below an endpoint"},
		{pathStyle + "/c", "", "is below an endpoint"},
		{"http://127.0.0.1/a%20b", "", "is below an endpoint"},
		{"https://acct-secondary.blob.example.net", "", "is a secondary endpoint"},
		{"http://127.0.0.1:10000/acct-secondary", "", "is a secondary endpoint"},
		{hostStyle, "x", "no endpoint"},
		{hostStyle, hostStyle, "is both endpoints"},
	} {
		_, err := New(geo.Blob, c.primary, Options{Secondary: c.secondary})
		require.ErrorContains(t, err, c.says, "%q", c.primary)
	}
	for says, f := range map[string]func() (*Policy, error){
		"no service":   func() (*Policy, error) { return New(geo.Catalog, hostStyle, Options{}) },
		"there is no":  func() (*Policy, error) { return New(geo.Blob, hostStyle, Options{Mode: -1}) },
		"a time limit": func() (*Policy, error) { return New(geo.Blob, hostStyle, Options{TryTimeout: -1}) },
	} {
		_, err := f()
		require.ErrorContains(t, err, says)
	}
	f := &fake{t: t, answers: statuses(200)}
	for _, other := range []string{"http://127.0.0.1:10000/acct2/c", "http://127.0.0.1:10001/acct/c", "https://127.0.0.1:10000/acct/c", "http://127.0.0.1:10000/"} {
		_, err := f.do(t.Context(), f.policy(geo.Blob, pathStyle, Options{}), "GET", other, nil)
		require.ErrorIs(t, err, ErrEndpoint, other)
	}
}

// dated sets the date that is signed.
type dated struct{}

// Do implements policy.Policy.
func (dated) Do(r *policy.Request) (*http.Response, error) {
	r.Raw().Header.Set("x-ms-date", time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat))
	return r.Next()
}

const key = "c2VjcmV0"

// reads are one read of each SDK, by a client of an endpoint.
func reads(ctx context.Context, t *testing.T, s geo.Service, endpoint string, o azcore.ClientOptions) error {
	var err error
	switch s {
	case geo.Blob:
		cred, e := azblob.NewSharedKeyCredential("acct", key)
		require.NoError(t, e)
		c, e := azblob.NewClientWithSharedKeyCredential(endpoint, cred, &azblob.ClientOptions{ClientOptions: o})
		require.NoError(t, e)
		_, err = c.DownloadStream(ctx, "c", "a b/ø", nil)
	case geo.Queue:
		cred, e := azqueue.NewSharedKeyCredential("acct", key)
		require.NoError(t, e)
		c, e := azqueue.NewServiceClientWithSharedKeyCredential(endpoint, cred, &azqueue.ClientOptions{ClientOptions: o})
		require.NoError(t, e)
		_, err = c.NewQueueClient("q").PeekMessage(ctx, nil)
	default:
		cred, e := aztables.NewSharedKeyCredential("acct", key)
		require.NoError(t, e)
		c, e := aztables.NewServiceClientWithSharedKey(endpoint, cred, &aztables.ClientOptions{ClientOptions: o})
		require.NoError(t, e)
		_, err = c.NewClient("T").GetEntity(ctx, "p q", "ø", nil)
	}
	return err
}

// A try at the secondary is signed as a client of the secondary endpoint signs it, in both styles (protocol/auth.md 9): in path
// style that is another signature than the primary's.
func TestSignatures(t *testing.T) {
	for _, s := range geo.Services {
		for _, primary := range []string{hostStyle, pathStyle} {
			f := &fake{t: t, answers: statuses(503)}
			p := f.policy(s, primary, Options{Mode: PrimaryThenSecondary, Retry: Linear{Retries: 1}})
			o := azcore.ClientOptions{Transport: f, PerCallPolicies: []policy.Policy{dated{}, p}}
			require.Error(t, reads(t.Context(), t, s, primary, o))
			require.Equal(t, "PS", f.path(), "%v", s)

			direct := &fake{t: t, answers: statuses(503)}
			o = azcore.ClientOptions{Transport: direct, PerCallPolicies: []policy.Policy{dated{}}, Retry: policy.RetryOptions{MaxRetries: -1}}
			for _, e := range p.endpoints {
				require.Error(t, reads(t.Context(), t, s, e.String(), o))
			}
			require.Equal(t, direct.urls, f.urls)
			require.Equal(t, direct.auth, f.auth)
			require.NotEmpty(t, f.auth[0])
			require.Equal(t, primary == hostStyle, f.auth[0] == f.auth[1])
		}
	}
}
