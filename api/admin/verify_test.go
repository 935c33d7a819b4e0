package admin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A comparison is checked before anybody is asked. Its answer names what clients stored, so that both
// routes need the token.
func TestVerifyRoutes(t *testing.T) {
	f := newFake()
	ask := func(method, path, body string, token bool) (int, string) {
		r := request(method, path, strings.NewReader(body))
		if !token {
			r.Header.Del("Authorization")
		}
		w := send(f, Options{TokenFile: secret}, r)
		return w.Code, w.Body.String()
	}
	const path = "/v1/accounts/pictures/verify"
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		code, _ := ask(method, path, "{}", false)
		require.Equal(t, http.StatusUnauthorized, code)
	}
	for _, body := range []string{`{"service":"file"}`, `{"service":"catalog"}`, `{"mend":true}`, `{"bytes_per_second":-1}`, `{"bytes_per_second":65535}`, `{"repair":true,"repair_bytes_per_second":1}`} {
		code, _ := ask(http.MethodPost, path, body, true)
		require.Equal(t, http.StatusBadRequest, code, body)
	}
	code, _ := ask(http.MethodPost, "/v1/accounts/No/verify", "{}", true)
	require.Equal(t, http.StatusNotFound, code)
	require.Empty(t, f.asked)

	code, _ = ask(http.MethodPost, path, `{"service":"blob","payload":true,"bytes_per_second":65536,"repair":true,"repair_bytes_per_second":65537}`, true)
	require.Equal(t, http.StatusOK, code)
	code, body := ask(http.MethodGet, path, "", true)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"not_compared": []`)
	require.Contains(t, body, `"differences": []`)
	require.Equal(t, []string{"verify pictures {Service:blob Payload:true BytesPerSecond:65536 Repair:true RepairBytesPerSecond:65537}", "verified pictures"}, f.asked)
}
