package blobs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/geo"
)

// BenchmarkListPage is the server's own cost of a page of 1,000 blobs.
func BenchmarkListPage(b *testing.B) {
	r := newRig(b, nil)
	for i := range 1000 {
		require.Equal(b, http.StatusCreated, r.put(fmt.Sprintf("/cont/dir/%04d", i), nil).status)
	}
	req := httptest.NewRequest(http.MethodGet, "/acct"+listPath, nil)
	query, err := protocol.ParseQuery("restype=container&comp=list")
	require.NoError(b, err)
	for b.Loop() {
		w := httptest.NewRecorder()
		q := &protocol.Request{
			HTTP: req, Target: protocol.Target{Service: geo.Blob, Resource: "/cont", Base: "http://x/acct/"}, Query: query, Version: testVersion, Account: &r.account,
		}
		require.NoError(b, r.handler.Serve(w, q, Lookup(q)))
		b.SetBytes(int64(w.Body.Len()))
	}
}
