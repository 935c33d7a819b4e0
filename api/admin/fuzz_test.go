package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// Any body of an operation is taken, or refused with one line and asks nothing of the
// cluster.
func FuzzBody(f *testing.F) {
	targets := []string{"/v1/accounts", "/v1/link/delay"}
	f.Add(uint8(0), `{"name":"abc","location":"northcentralus","key1":"AAAA"}`)
	f.Add(uint8(0), `{"name":"abc"} {}`)
	f.Add(uint8(1), `{"seconds":1e308}`)
	f.Add(uint8(1), `{"seconds":-0.0}`)
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		c := newFake()
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, targets[int(which)%len(targets)], strings.NewReader(body))
		Handler(c, prometheus.NewRegistry(), Options{}).ServeHTTP(w, r)
		if w.Code < 300 {
			require.Len(t, c.calls(), 1)
			return
		}
		require.Less(t, w.Code, http.StatusInternalServerError, "%s", w.Body)
		refused(t, w)
	})
}
