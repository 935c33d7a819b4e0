package admin

import (
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// TestTokenRequired: keys and every change need the token, and nothing is asked of the
// Cluster before; what shows neither does not.
func TestTokenRequired(t *testing.T) {
	for _, presented := range []string{"", "Bearer", "Bearer ", "Basic " + string(secret.token), string(secret.token), "Bearer " + string(secret.token) + "0"} {
		for _, route := range routes {
			method, target, _ := strings.Cut(route, " ")
			f := newFake()
			r := request(method, target, nil)
			r.Header.Set("Authorization", presented)
			if presented == "" {
				r.Header.Del("Authorization")
			}
			w := send(f, Options{}, r)
			if method != http.MethodPost && !strings.HasSuffix(target, "/keys") {
				require.NotEqual(t, http.StatusUnauthorized, w.Code, route)
				continue
			}
			require.Equal(t, http.StatusUnauthorized, w.Code, route)
			require.Contains(t, w.Header().Get("WWW-Authenticate"), "Bearer")
			e := refused(t, w)
			require.Equal(t, wire.CodeToken, e.Code)
			require.NotContains(t, e.Message, string(secret.token))
			require.Empty(t, f.calls())
		}
	}
}

// TestNoToken: a port without a token refuses those to everybody, one with an empty token
// included.
func TestNoToken(t *testing.T) {
	h := Handler(newFake(), prometheus.NewRegistry(), Options{})
	for _, target := range []string{"GET /v1/accounts/devstoreaccount1/keys", "POST /v1/link/heal"} {
		method, path, _ := strings.Cut(target, " ")
		r := request(method, path, nil)
		r.Header.Set("Authorization", "Bearer ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusForbidden, w.Code)
		require.Equal(t, codeNoToken, refused(t, w).Code)
	}
}

// TestOpenTokenFile: the file is made once, whole, for its owner alone, by whichever of
// several processes is first; what others can read, or what is no token, is refused.
func TestOpenTokenFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data", TokenFileName)
	files := make([]TokenFile, 8)
	var made sync.WaitGroup
	for i := range files {
		made.Go(func() {
			f, err := OpenTokenFile(path)
			if err == nil {
				files[i] = f
			}
		})
	}
	made.Wait()
	for _, f := range files {
		require.Equal(t, files[0], f)
	}
	require.NotEmpty(t, files[0].Token())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "no half file is left")

	again, err := OpenTokenFile(path)
	require.NoError(t, err)
	require.Equal(t, files[0], again)
	require.NoError(t, os.Chmod(path, 0o640))
	_, err = OpenTokenFile(path)
	require.NoError(t, err, "a group of operators")
	require.NoError(t, os.Chmod(path, 0o604))
	_, err = OpenTokenFile(path)
	require.ErrorContains(t, err, "chmod 600")
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, []byte("half"), 0o600))
	_, err = OpenTokenFile(path)
	require.ErrorIs(t, err, wire.ErrNoToken)
	require.NotContains(t, err.Error(), "half")
}

// TestTokenFileRoute: the port shows where its token is, and proves that it has it for the
// address that it was asked at, without showing anything of it.
func TestTokenFileRoute(t *testing.T) {
	file, err := OpenTokenFile(filepath.Join(t.TempDir(), TokenFileName))
	require.NoError(t, err)
	srv := httptest.NewServer(Handler(newFake(), prometheus.NewRegistry(), Options{TokenFile: file}))
	defer srv.Close()
	challenge := make([]byte, wire.ChallengeBytes)
	res, err := srv.Client().Get(srv.URL + "/v1/token-file?challenge=" + hex.EncodeToString(challenge))
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(t, http.StatusOK, res.StatusCode)
	var doc wire.TokenFile
	require.NoError(t, json.NewDecoder(res.Body).Decode(&doc))
	require.Equal(t, file.path, doc.Path)
	at := srv.Listener.Addr().(*net.TCPAddr).AddrPort()
	require.Equal(t, file.Token().Prove(challenge, at), doc.Proof)
	require.NotContains(t, doc.Proof, strings.TrimPrefix(string(file.Token()), "antipode-admin-"))

	for _, bad := range []string{"", "?challenge=", "?challenge=00", "?challenge=" + strings.Repeat("zz", wire.ChallengeBytes), "?challenge=" + strings.Repeat("00", 1+wire.ChallengeBytes)} {
		require.Equal(t, codeInvalid, refused(t, ask(t, newFake(), Options{}, http.MethodGet, "/v1/token-file"+bad, "")).Code, bad)
	}
}
