package admin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The life of a clone is checked before anybody is asked. To open and to drop one needs the token, to see it does not.
func TestCloneRoutes(t *testing.T) {
	f := newFake()
	ask := func(method, path, body string, token bool) (int, string) {
		r := request(method, path, strings.NewReader(body))
		if !token {
			r.Header.Del("Authorization")
		}
		w := send(f, Options{TokenFile: secret}, r)
		return w.Code, w.Body.String()
	}
	const path = "/v1/accounts/pictures/clone"
	for _, to := range []string{path, path + "/drop"} {
		code, _ := ask(http.MethodPost, to, "{}", false)
		require.Equal(t, http.StatusUnauthorized, code)
	}
	for _, body := range []string{"", `{"for":1}`, `{"for_seconds":0.5}`, `{"for_seconds":-1}`, `{"for_seconds":86401}`, `{"for_seconds":1e400}`} {
		code, _ := ask(http.MethodPost, path, body, true)
		require.Equal(t, http.StatusBadRequest, code, body)
	}
	code, _ := ask(http.MethodPost, "/v1/accounts/No/clone", "{}", true)
	require.Equal(t, http.StatusNotFound, code)
	require.Empty(t, f.asked)

	for _, body := range []string{"{}", `{"for_seconds":60}`} {
		code, answer := ask(http.MethodPost, path, body, true)
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, answer, `"name": "pictures-drill"`)
	}
	code, _ = ask(http.MethodGet, path, "", false)
	require.Equal(t, http.StatusOK, code)
	code, _ = ask(http.MethodPost, path+"/drop", "", true)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, []string{"open clone pictures for 3600s", "open clone pictures for 60s", "clone pictures", "drop clone pictures"}, f.asked)
}
