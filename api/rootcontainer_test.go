package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
)

// A blob of the root container is signed for by the name of its container, whichever of its two paths is asked for
// (protocol/auth.md 17); a key signs the path as it is sent. A signature reaches no further than its container.
func TestAccessToRootContainer(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	for _, request := range []string{"PUT /acct/$root?restype=container", "PUT /acct/b", "PUT /acct/%24root/c"} {
		rig.want(t, blob(request, "x", "x-ms-blob-type", blockBlobs), 201, "")
	}
	paths := []string{"/acct/b", "/acct/$root/b", "/acct/%24root/b", "/acct/%62"}
	by := func(path string, on auth.Resource, params string) answer {
		t.Helper()
		values, err := url.ParseQuery("se=2999-01-01&" + params)
		require.NoError(t, err)
		sas, err := auth.SignSAS(protocol.Target{Service: geo.Blob, Account: "acct"}, on, values, key)
		require.NoError(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rig.urls[geo.Blob]+path+"?"+sas, nil)
		require.NoError(t, err)
		return send(t, r)
	}
	of, box := auth.Resource{Container: "$root", Blob: "b"}, auth.Resource{Container: "$root"}
	for _, sv := range []string{"2012-02-12", "2014-02-14", "2018-03-28", "2020-10-02", "2024-08-04"} {
		for _, path := range paths {
			for on, sr := range map[auth.Resource]string{of: "b", box: "c"} {
				a := by(path, on, "sp=r&sv="+sv+"&sr="+sr)
				require.Equal(t, 200, a.status, "%s %s %s: %s", path, sv, sr, a.body)
				require.Equal(t, "x", a.body)
			}
			for params, on := range map[string]auth.Resource{
				"sr=b": {Container: "b"}, "sr=b&": {Container: "$root", Blob: "c"}, "sr=c": {Container: "cont"}, "sr=c&": {Container: "b"},
			} {
				a := by(path, on, "sp=r&sv="+sv+"&"+params)
				require.Equal(t, "403 AuthenticationFailed", fmt.Sprint(a.status, " ", a.code), "%s %s %s", path, sv, params)
				want := "\n/acct/$root"
				if sv > "2015" {
					want = "\n/blob/acct/$root"
				}
				if strings.HasPrefix(params, "sr=b") {
					want += "/b"
				}
				require.Contains(t, a.body, want+"\n")
			}
		}
		require.Equal(t, 403, by("/acct/cont/there", box, "sp=r&sr=c&sv="+sv).status)
		require.Equal(t, 200, by("/acct/cont/there", auth.Resource{Container: "cont"}, "sp=r&sr=c&sv="+sv).status)
	}
	require.Equal(t, 200, by("/acct/b", auth.Resource{}, "sv=2024-08-04&ss=b&srt=o&sp=r").status)
	require.Equal(t, "AuthorizationResourceTypeMismatch", by("/acct/b", auth.Resource{}, "sv=2024-08-04&ss=b&srt=c&sp=r").code)

	rig.want(t, blob("PUT /acct/$root?restype=container&comp=acl", policies("reader 2999-01-01 r")), 200, "")
	values := url.Values{"sv": {"2024-08-04"}, "sr": {"c"}, "si": {"reader"}}
	sas, err := auth.SignSAS(protocol.Target{Service: geo.Blob, Account: "acct"}, box, values, key)
	require.NoError(t, err)
	for _, c := range []struct {
		method, path string
		status       int
	}{{"GET", "/acct/b", 200}, {"GET", "/acct/none", 404}, {"DELETE", "/acct/b", 403}, {"GET", "/acct/cont/there", 403}} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, rig.urls[geo.Blob]+c.path+"?"+sas, nil)
		require.NoError(t, err)
		require.Equal(t, c.status, send(t, r).status, "%+v", c)
	}

	for _, sent := range paths {
		for _, signed := range paths {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rig.urls[geo.Blob]+signed, nil)
			require.NoError(t, err)
			r.Header.Set("x-ms-version", "2021-12-02")
			require.NoError(t, auth.Sign(r, geo.Blob, "acct", key, clock.System{}.Now()))
			r.URL.Opaque = sent
			want := 403
			if signed == sent {
				want = 200
			}
			require.Equal(t, want, send(t, r).status, "signed for %s, sent as %s", signed, sent)
		}
	}
}
