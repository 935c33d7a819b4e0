package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/protocol"
	"antipode/internal/outbound"
)

// outsideOf is a client of the servers of entries, whose names all have the address 127.0.0.1.
func outsideOf(t *testing.T, entries ...outbound.Entry) *outbound.Client {
	t.Helper()
	l, err := outbound.NewList(entries...)
	require.NoError(t, err)
	c := outbound.NewClient(outbound.Options{List: l, Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
		if name == "none.example" {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	t.Cleanup(c.Close)
	return c
}

// A server that is not listed is not read, whatever its URL: the answer is the same whether there is one. Among them are this
// machine and its ports, in every spelling, and hosts that look like ours.
func TestUnlistedSourcesAreRefused(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := stub(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	port := server[strings.LastIndexByte(server, ':'):]
	for name, o := range map[string]api.Options{
		"nothing listed": {},
		"others listed":  {Outside: outsideOf(t, outbound.Entry{Host: "good.example" + port}, outbound.Entry{Host: "*.good.example"})},
	} {
		f := newSourceEnd(t, o)
		for _, host := range []string{
			"127.0.0.1" + port, "127.0.0.1.:1", "[::1]" + port, "[::ffff:127.0.0.1]" + port, "[::ffff:7f00:1]", "2130706433" + port, "0x7f000001" + port, "0x7f.0.0.1",
			"0177.0.0.1", "127.1" + port, "127.0.1", "0" + port, "0.0.0.0" + port, "[::]" + port, "169.254.169.254", "10.0.0.1", "192.168.1.1:9000", "[fd00::1]",
			"metadata.google.internal", "none.example", "good.example", "good.example.:9", "good.example.evil" + port, "evil-good.example", "GOOD.example:81", "example",
			"storage.example.evil:10000", "127.0.0.1.nip.io",
		} {
			_, _, err := f.SourceOf(copyRequest(t), "http://"+host+"/acct/cont/b")
			require.Equal(t, "403 CannotVerifyCopySource", sourceError(err), "%s: %s", name, host)
			require.ErrorContains(t, err, "copy_sources of node.yaml")
			_, _, other := f.SourceOf(copyRequest(t), "http://nobody.example/cont/b")
			require.Equal(t, other.Error(), err.Error(), host)
		}
		for _, host := range []string{"good.example" + port + "@127.0.0.1" + port, "good.example@127.0.0.1" + port, "127.0.0.1\\@good.example" + port, "127.0.0.1%2f@good.example", "good.example:x", "good.example:99999", "[::1", "[::1%25lo]" + port} {
			_, _, err := f.SourceOf(copyRequest(t), "http://"+host+"/acct/cont/b")
			require.Contains(t, []string{"400 InvalidHeaderValue", "403 CannotVerifyCopySource"}, sourceError(err), "%s: %s", name, host)
		}
	}
	require.Zero(t, asked.Load())
}

// A server that is listed is sent the URL as the client gave it, the range and the conditions, and nothing of ours; its
// answer is shown as it came. The address is looked at as a connection is made.
func TestOutsideSources(t *testing.T) {
	t.Parallel()
	var got atomic.Pointer[http.Request]
	server := stub(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Clone(context.Background()))
		switch r.URL.Path {
		case "/bucket/redirect":
			http.Redirect(w, r, "/bucket/key", http.StatusTemporaryRedirect)
			return
		case "/bucket/denied":
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, "content")
	})
	port := server[strings.LastIndexByte(server, ':'):]
	f := newSourceEnd(t, api.Options{
		Outside: outsideOf(
			t, outbound.Entry{Host: "127.0.0.1" + port}, outbound.Entry{Host: "storage.example" + port, AllowPrivate: true}, outbound.Entry{Host: "none.example"},
			outbound.Entry{Host: "127.0.0.1:1"}),
	})
	const query = "?X-Amz-Signature=abc%2F%2B&versionid=7&sig=%2Fsecret&sv=2021-12-02&sr=b"
	s, _, err := f.SourceOf(copyRequest(t), server+"/bucket/a%20key\u00fc"+query)
	require.NoError(t, err)
	require.Nil(t, s.Read)
	require.Equal(t, server+"/bucket/a%20key%C3%BC?versionid=7", s.Shown)
	resp, body := askSource(t, s, http.MethodGet, "Range", "bytes=0-6", "If-Match", `"x"`, "Authorization", "Bearer x", "X-Antipode-Hop", "x", "Cookie", "x")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "content", string(body))
	require.Equal(t, "/bucket/a%20key%C3%BC"+query, got.Load().RequestURI)
	require.Equal(t, http.Header{"Range": {"bytes=0-6"}, "If-Match": {`"x"`}, "X-Ms-Version": {"2021-12-02"}, "User-Agent": {"Antipode"}}, got.Load().Header)
	// A request by a signature may read it as well: what the URL permits is the server's to say.
	s, _, err = f.SourceOf(copyInto(t, "acct", readSAS(t, "acct", "cont", "copy", "sp=w")), server+"/bucket/denied")
	require.NoError(t, err)
	resp, _ = askSource(t, s, http.MethodHead)
	require.Equal(t, http.StatusForbidden, resp.StatusCode, "an answer")

	for uri, want := range map[string]string{
		server + "/bucket/redirect":                     "403 CannotVerifyCopySource",
		"http://none.example/x":                         "500 CannotVerifyCopySource",
		"http://127.0.0.1:1/x":                          "500 CannotVerifyCopySource",
		"http://storage.example" + port + "/bucket/key": "403 CannotVerifyCopySource", // Its address is loopback.
	} {
		s, _, err := f.SourceOf(copyRequest(t), uri)
		require.NoError(t, err, uri)
		require.NotNil(t, s.Do, uri)
		u, err := url.Parse("/")
		require.NoError(t, err)
		_, err = s.Do((&http.Request{Method: http.MethodGet, URL: u}).WithContext(t.Context()))
		require.Equal(t, want, sourceError(err), uri)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Do((&http.Request{Method: http.MethodGet}).WithContext(ctx))
	require.ErrorIs(t, err, context.Canceled)
	e, _ := protocol.ErrorOf(err)
	require.Equal(t, "OperationTimedOut", e.Code)
}
