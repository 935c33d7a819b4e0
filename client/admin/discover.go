package admin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"path/filepath"
	"sync"
)

// CodeToken is the code of a refusal for want of the token, with status 401.
const CodeToken = "TokenRequired"

// codeTokenRefused is the code of a call whose token was refused.
const codeTokenRefused = "TokenRefused"

// noTokenError says why there is no token to present; it will be so next time, too.
type noTokenError struct{ error }

// credentials hold the token of one client.
type credentials struct {
	// given returns the token that the user of the client chose; nil where there is none
	// and the server is asked for the file.
	given func() (Token, error)

	mu sync.Mutex
	// token is the last one obtained. Guarded by mu.
	token Token
}

func (c *credentials) last() Token {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

func (c *credentials) keep(t Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = t
}

// UseToken makes the client present what given returns, whenever a call needs a token.
// It is called before the first call.
func (c *Client) UseToken(given func() (Token, error)) { c.creds.given = given }

// obtain returns a token to present instead of the one that was refused, or none.
func (c *Client) obtain(ctx context.Context) (t Token, err error) {
	if c.creds.given != nil {
		if t, err = c.creds.given(); err != nil {
			err = noTokenError{err}
		}
	} else {
		t, err = c.discover(ctx)
	}
	if err == nil {
		c.creds.keep(t)
	}
	return t, err
}

// discover reads the token from the file that a server on this machine names. The server
// is not trusted: anybody may listen on the port while the real one is stopped, and name
// any file. Therefore
//   - only a server reached at a loopback address is believed, since a path means nothing
//     on another machine;
//   - the file must hold a token, so that no other secret is sent;
//   - the server must prove, before it sees the token, that it has the same one, for the
//     very address that the client is connected to. A process that took the port cannot.
//
// That the file may be read at all is for its mode to say: 600 admits the server's user.
func (c *Client) discover(ctx context.Context) (Token, error) {
	challenge := make([]byte, ChallengeBytes)
	if _, err := rand.Read(challenge); err != nil {
		return "", err
	}
	var server netip.AddrPort
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if a, ok := i.Conn.RemoteAddr().(*net.TCPAddr); ok {
			server = a.AddrPort()
		}
	}})
	b, err := c.once(traced, http.MethodGet, "/v1/token-file?challenge="+hex.EncodeToString(challenge), nil, "")
	if err != nil {
		return "", err
	}
	if !server.Addr().Unmap().IsLoopback() {
		return "", noTokenError{fmt.Errorf("%s is not on this machine: copy its token file and name the copy", c.base)}
	}
	var f TokenFile
	if err := json.Unmarshal(b, &f); err != nil || !filepath.IsAbs(f.Path) {
		return "", noTokenError{fmt.Errorf("%s names no token file", c.base)}
	}
	t, err := ReadTokenFile(f.Path)
	if err != nil {
		return "", noTokenError{fmt.Errorf("%w; run as the user of the server, or name a copy", err)}
	}
	if !hmac.Equal([]byte(t.Prove(challenge, server)), []byte(f.Proof)) {
		return "", noTokenError{fmt.Errorf("the server at %s does not have the token in %s, so it is not shown to it: "+
			"if the port is mapped, name the file; else find out who listens there", c.base, f.Path)}
	}
	return t, nil
}
