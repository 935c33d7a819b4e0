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

// CodeNoNodeAnswers is the code of a refusal because no node that could do it answers, with
// status 503.
const CodeNoNodeAnswers = "NoNodeAnswers"

// codeTokenRefused is the code of a call whose token was refused.
const codeTokenRefused = "TokenRefused"

// noTokenError is why there is no token to present. It is permanent.
type noTokenError struct{ error }

// credentials hold the token of one client.
type credentials struct {
	// given returns the token that the user of the client chose. If nil, the server is asked
	// for its token file.
	given func() (Token, error)
	// prove means that a server on this machine must prove that it has the given token.
	prove bool

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

// UseToken makes the client present what given returns when a call needs a token. UseToken is called
// before the first call.
func (c *Client) UseToken(given func() (Token, error)) { c.creds.given = given }

// UseSharedToken is UseToken for a token that the server has, too. A server on this machine must
// prove that it has the token before it is shown it. It is for servers that call each other, without
// a person who could check who listens there.
func (c *Client) UseSharedToken(given func() (Token, error)) {
	c.creds.given, c.creds.prove = given, true
}

// obtain returns a token to present instead of none or of the one that was refused.
func (c *Client) obtain(ctx context.Context) (t Token, err error) {
	if c.creds.given != nil {
		if t, err = c.creds.given(); err != nil {
			err = noTokenError{err}
		} else if c.creds.prove {
			t, err = c.proven(ctx, t)
		}
	} else {
		t, err = c.discover(ctx)
	}
	if err == nil && !c.creds.prove { // With prove, another process may listen at the next call.
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
	q, err := c.question(ctx)
	if err != nil {
		return "", err
	}
	if !q.local() {
		return "", noTokenError{fmt.Errorf("%s is not on this machine: copy its token file and name the copy", c.base)}
	}
	if !filepath.IsAbs(q.answer.Path) {
		return "", noTokenError{fmt.Errorf("%s names no token file", c.base)}
	}
	t, err := ReadTokenFile(q.answer.Path)
	if err != nil {
		return "", noTokenError{fmt.Errorf("%w; run as the user of the server, or name a copy", err)}
	}
	if !q.proves(t) {
		return "", noTokenError{fmt.Errorf("the server at %s does not have the token in %s, so it is not shown to it: "+
			"if the port is mapped, name the file; else find out who listens there", c.base, q.answer.Path)}
	}
	return t, nil
}

// proven returns the given token if the server may see it: one on this machine must prove
// that it has the same token, since any user may listen on the port of a server that is
// stopped. One elsewhere cannot prove it, as ports may be mapped on the way.
func (c *Client) proven(ctx context.Context, t Token) (Token, error) {
	q, err := c.question(ctx)
	if err != nil {
		return "", err
	}
	if q.local() && !q.proves(t) {
		return "", noTokenError{fmt.Errorf("the server at %s does not have the same token, so it is not shown to it: "+
			"find out who listens there, or give both the same token file (a port that is mapped cannot prove it)", c.base)}
	}
	return t, nil
}

// question is what a server answered to a challenge.
type question struct {
	challenge []byte
	server    netip.AddrPort // that the client is connected to
	answer    TokenFile
}

func (q question) local() bool { return q.server.Addr().Unmap().IsLoopback() }

// proves reports whether the server has the token.
func (q question) proves(t Token) bool {
	return hmac.Equal([]byte(t.Prove(q.challenge, q.server)), []byte(q.answer.Proof))
}

// question asks the server to prove that it has its token. An answer of another form
// proves nothing.
func (c *Client) question(ctx context.Context) (question, error) {
	q := question{challenge: make([]byte, ChallengeBytes)}
	if _, err := rand.Read(q.challenge); err != nil {
		return q, err
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if a, ok := i.Conn.RemoteAddr().(*net.TCPAddr); ok {
			q.server = a.AddrPort()
		}
	}})
	b, err := c.once(traced, http.MethodGet, "/v1/token-file?challenge="+hex.EncodeToString(q.challenge), nil, "")
	if err != nil {
		return q, err
	}
	if json.Unmarshal(b, &q.answer) != nil {
		q.answer = TokenFile{}
	}
	return q, nil
}
