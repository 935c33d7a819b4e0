package admin

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// tokenServer asks for a token for everything, and answers discovery as discover says.
type tokenServer struct {
	*httptest.Server
	token     Token
	discover  func(challenge []byte, at netip.AddrPort) TokenFile
	presented []string // every Authorization header that came
}

func newTokenServer(t *testing.T, token Token) *tokenServer {
	t.Helper()
	s := &tokenServer{token: token}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a := r.Header.Get("Authorization"); a != "" {
			s.presented = append(s.presented, a)
		}
		if r.URL.Path == "/v1/token-file" {
			challenge, _ := hex.DecodeString(r.URL.Query().Get("challenge"))
			_ = json.NewEncoder(w).Encode(s.discover(challenge, r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).AddrPort()))
			return
		}
		if !s.token.Is(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(ErrorDocument{Error{Code: CodeToken, Message: "could not do it: this needs the admin token"}})
			return
		}
		_, _ = w.Write([]byte(`{"state":"up"}`))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *tokenServer) heal(t *testing.T, url string) error {
	t.Helper()
	c, err := New(url, s.Client())
	require.NoError(t, err)
	_, err = c.HealLink(context.Background())
	return err
}

func writeToken(t *testing.T, token Token) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "admin-token")
	require.NoError(t, os.WriteFile(path, []byte(token+"\n"), 0o600))
	return path
}

// TestDiscover: a client on the server's machine finds the token by itself, once.
func TestDiscover(t *testing.T) {
	token, err := NewToken()
	require.NoError(t, err)
	path := writeToken(t, token)
	s := newTokenServer(t, token)
	asked := 0
	s.discover = func(challenge []byte, at netip.AddrPort) TokenFile {
		asked++
		return TokenFile{path, token.Prove(challenge, at)}
	}
	c, err := New(s.URL, s.Client())
	require.NoError(t, err)
	for range 2 {
		l, err := c.HealLink(context.Background())
		require.NoError(t, err)
		require.Equal(t, LinkUp, l.State)
	}
	require.Equal(t, 1, asked)
	require.Len(t, s.presented, 2)

	// A server that was started again with another token is asked once more.
	token, err = NewToken()
	require.NoError(t, err)
	s.token = token
	require.NoError(t, os.WriteFile(path, []byte(token), 0o600))
	_, err = c.HealLink(context.Background())
	require.NoError(t, err)
	require.Equal(t, 2, asked)
}

// TestFalseServer: a process that listens on the port while the real server is stopped can name
// any file of the user, and gets nothing of what is in it: neither a token that he does not
// have already, nor any other secret, nor through the real server on another port.
func TestFalseServer(t *testing.T) {
	token, err := NewToken()
	require.NoError(t, err)
	path := writeToken(t, token)
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	other := filepath.Join(t.TempDir(), "id_rsa")
	require.NoError(t, os.WriteFile(other, []byte("-----BEGIN PRIVATE KEY-----"), 0o600))
	open := writeToken(t, token)
	require.NoError(t, os.Chmod(open, 0o644))
	for name, answer := range map[string]func(challenge []byte, at netip.AddrPort) TokenFile{
		"no proof":  func([]byte, netip.AddrPort) TokenFile { return TokenFile{Path: path} },
		"made up":   func([]byte, netip.AddrPort) TokenFile { return TokenFile{path, strings.Repeat("0", 64)} },
		"own token": func(c []byte, at netip.AddrPort) TokenFile { return TokenFile{path, Token("x").Prove(c, at)} },
		"empty key": func(c []byte, at netip.AddrPort) TokenFile { return TokenFile{path, Token("").Prove(c, at)} },
		"passed on": func(c []byte, at netip.AddrPort) TokenFile {
			return TokenFile{path, token.Prove(c, netip.AddrPortFrom(at.Addr(), 10080))}
		},
		"replayed": func(_ []byte, at netip.AddrPort) TokenFile {
			return TokenFile{path, token.Prove(make([]byte, ChallengeBytes), at)}
		},
		"another":    func(c []byte, at netip.AddrPort) TokenFile { return TokenFile{other, token.Prove(c, at)} },
		"pipe":       func(c []byte, at netip.AddrPort) TokenFile { return TokenFile{fifo, token.Prove(c, at)} },
		"folder":     func(c []byte, at netip.AddrPort) TokenFile { return TokenFile{filepath.Dir(path), token.Prove(c, at)} },
		"missing":    func(c []byte, at netip.AddrPort) TokenFile { return TokenFile{path + "x", token.Prove(c, at)} },
		"relative":   func(c []byte, at netip.AddrPort) TokenFile { return TokenFile{"admin-token", token.Prove(c, at)} },
		"for others": func(c []byte, at netip.AddrPort) TokenFile { return TokenFile{open, token.Prove(c, at)} },
		"empty":      func([]byte, netip.AddrPort) TokenFile { return TokenFile{} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTokenServer(t, token)
			s.discover = answer
			err := s.heal(t, s.URL)
			var said *Error
			require.ErrorAs(t, err, &said)
			require.Equal(t, http.StatusUnauthorized, said.Status)
			require.NotContains(t, err.Error(), string(token))
			require.NotContains(t, err.Error(), "PRIVATE")
			require.Empty(t, s.presented)
		})
	}
}

// TestRedirectedDiscovery: a process that took the port of a stopped server does not get the token
// by a redirect. It sends the question for the token on to a server that has it, such as another
// port of the same deployment.
func TestRedirectedDiscovery(t *testing.T) {
	token, err := NewToken()
	require.NoError(t, err)
	path := writeToken(t, token)
	honest := newTokenServer(t, token)
	honest.discover = func(c []byte, at netip.AddrPort) TokenFile { return TokenFile{path, token.Prove(c, at)} }
	var presented []string
	impostor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		presented = append(presented, r.Header.Values("Authorization")...)
		if r.URL.Path == "/v1/token-file" {
			http.Redirect(w, r, honest.URL+r.RequestURI, http.StatusTemporaryRedirect)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(ErrorDocument{Error{Code: CodeToken, Message: "could not do it: this needs the admin token"}})
	}))
	defer impostor.Close()
	c, err := New(impostor.URL, nil)
	require.NoError(t, err)
	_, err = c.HealLink(context.Background())
	require.Error(t, err)
	require.Empty(t, presented)
	require.Empty(t, honest.presented)
}

// elsewhere is a connection to another machine.
type elsewhere struct{ net.Conn }

func (elsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 10080} }

// TestDiscoveryElsewhere: a server on another machine is not believed what file has the
// token, though it proves that it has what is in a file of that name here.
func TestDiscoveryElsewhere(t *testing.T) {
	token, err := NewToken()
	require.NoError(t, err)
	path := writeToken(t, token)
	s := newTokenServer(t, token)
	s.discover = func(c []byte, _ netip.AddrPort) TokenFile {
		return TokenFile{path, token.Prove(c, netip.MustParseAddrPort("192.0.2.1:10080"))}
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return elsewhere{conn}, err
	}}
	c, err := New(s.URL, &http.Client{Transport: transport})
	require.NoError(t, err)
	_, err = c.HealLink(context.Background())
	require.ErrorContains(t, err, "is not on this machine")
	require.Empty(t, s.presented)
}

// TestBodyNeedsProof: the keys in a request's body are not sent to a server that does not
// prove that it has the token.
func TestBodyNeedsProof(t *testing.T) {
	token, err := NewToken()
	require.NoError(t, err)
	path := writeToken(t, token)
	var bodies []string
	impostor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b, err := io.ReadAll(r.Body); err == nil && len(b) > 0 {
			bodies = append(bodies, string(b))
		}
		_ = json.NewEncoder(w).Encode(TokenFile{Path: path, Proof: strings.Repeat("0", 64)})
	}))
	defer impostor.Close()
	c, err := New(impostor.URL, nil)
	require.NoError(t, err)
	_, err = c.CreateAccount(context.Background(), NewAccount{Name: "pictures", Key1: "c2VjcmV0"})
	var said *Error
	require.ErrorAs(t, err, &said)
	require.Equal(t, http.StatusUnauthorized, said.Status)
	require.Empty(t, bodies)
}

// TestBusyDiscovery: a server that is too busy to name its token file has refused nothing,
// so who tries again may go on.
func TestBusyDiscovery(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, status := CodeToken, http.StatusUnauthorized
		if r.URL.Path == "/v1/token-file" {
			code, status = "ServerBusy", http.StatusServiceUnavailable
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(ErrorDocument{Error{Code: code, Message: "could not do it"}})
	}))
	defer srv.Close()
	c, err := New(srv.URL, nil)
	require.NoError(t, err)
	_, err = c.HealLink(context.Background())
	var said *Error
	require.ErrorAs(t, err, &said)
	require.Equal(t, http.StatusServiceUnavailable, said.Status)
}

// TestUseToken: a token that the user names is presented, to a server anywhere; a wrong one
// is refused under another code, since another attempt is in vain.
func TestUseToken(t *testing.T) {
	token, err := NewToken()
	require.NoError(t, err)
	s := newTokenServer(t, token)
	s.discover = func([]byte, netip.AddrPort) TokenFile { t.Error("asked though a token was named"); return TokenFile{} }
	c, err := New(s.URL, s.Client())
	require.NoError(t, err)
	path := writeToken(t, token)
	c.UseToken(func() (Token, error) { return ReadTokenFile(path) })
	_, err = c.HealLink(context.Background())
	require.NoError(t, err)

	wrong, err := NewToken()
	require.NoError(t, err)
	c, err = New(s.URL, s.Client())
	require.NoError(t, err)
	c.UseToken(func() (Token, error) { return wrong, nil })
	_, err = c.HealLink(context.Background())
	var said *Error
	require.ErrorAs(t, err, &said)
	require.Equal(t, codeTokenRefused, said.Code)
}

// TestSharedToken: a server that shares its token with another one shows it only to one that
// proves that it has it, at every call: another process may have taken the port meanwhile.
func TestSharedToken(t *testing.T) {
	token, err := NewToken()
	require.NoError(t, err)
	s := newTokenServer(t, token)
	proof := func(t Token) func([]byte, netip.AddrPort) TokenFile {
		return func(c []byte, server netip.AddrPort) TokenFile { return TokenFile{Proof: t.Prove(c, server)} }
	}
	s.discover = proof(token)
	c, err := New(s.URL, s.Client())
	require.NoError(t, err)
	c.UseSharedToken(func() (Token, error) { return token, nil })
	_, err = c.HealLink(context.Background())
	require.NoError(t, err)
	require.NotEmpty(t, s.presented)

	other, err := NewToken()
	require.NoError(t, err)
	s.presented, s.discover = nil, proof(other)
	for _, call := range []func() error{
		func() error { _, err := c.HealLink(context.Background()); return err },
		func() error {
			_, err := c.CreateAccount(context.Background(), NewAccount{Name: "pictures", Key1: "c2VjcmV0"})
			return err
		},
	} {
		var said *Error
		require.ErrorAs(t, call(), &said)
		require.Equal(t, CodeToken, said.Code)
		require.ErrorContains(t, said, "does not have the same token")
	}
	require.Empty(t, s.presented)
}

// TestParseToken: a token has one form, and does not print.
func TestParseToken(t *testing.T) {
	token, err := NewToken()
	require.NoError(t, err)
	got, err := ParseToken(" " + string(token) + "\r\n")
	require.NoError(t, err)
	require.Equal(t, token, got)
	for _, text := range []string{
		"", "antipode-admin-", string(token) + "0", string(token)[1:], strings.ToUpper(string(token)), strings.TrimPrefix(string(token), tokenPrefix),
		string(token) + " " + string(token),
	} {
		_, err := ParseToken(text)
		require.ErrorIs(t, err, ErrNoToken, text)
	}
	for _, form := range []string{"%v", "%s", "%q", "%+v"} {
		require.NotContains(t, fmt.Sprintf(form, token), string(token)[len(tokenPrefix):])
	}
	require.False(t, Token("").Is(""))
}
