package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"antipode/geo"
)

const (
	// callTimeout bounds one call. It is above the longest operation the server
	// allows, so that the server's own answer arrives first.
	callTimeout = 90 * time.Second
	// readTimeout bounds a read, and the plan of a failover. It is above the 10 s that a server allows them. A process that is
	// paused takes a call and never answers: who asks what is wrong does not wait for it as for a move.
	readTimeout = 12 * time.Second
	// answerBytesMax bounds the answer held in memory.
	answerBytesMax = 16 << 20
)

// ErrUnreachable means that no server took the call: nothing happened.
var ErrUnreachable = errors.New("no server answers")

// ErrSilent means that a server took a read, or the plan of a failover, and did not answer in time. Nothing was changed.
var ErrSilent = errors.New("no answer in time")

// Error is an operation that failed, in the server's words.
type Error struct {
	// Status is the HTTP status.
	Status int `json:"-"`
	// Code is for programs. It is stable.
	Code string `json:"code"`
	// Message is one line: what happened, to what, what to do.
	Message string `json:"message"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ErrorDocument is the body of every answer with a status of 400 or above,
// those of /readyz and /metrics excepted.
type ErrorDocument struct {
	Error Error `json:"error"`
}

// Client calls one admin port. Its methods may be called concurrently. Each returns an *Error if the server refused
// or failed, ErrUnreachable in the chain if it was never asked, and ErrSilent if a read was not answered. Any other
// error means that the outcome is unknown: the reads may then be repeated, the others after a look at Status.
//
// A call that needs the token (401) is made again with it: see UseToken; without that the
// token is read from the file that a server on this machine names.
type Client struct {
	base  string
	http  *http.Client
	creds credentials
	// asked: see Asked.
	asked atomic.Bool
}

// reader is a request of which the server may change nothing: a dry run.
type reader interface{ reads() bool }

// plan is a request that asks what a failover would do: it is answered as soon as a read.
type plan interface{ Plans() bool }

// Asked reports whether a request was sent by which something may have changed: no read, and no dry run.
func (c *Client) Asked() bool { return c.asked.Load() }

// New returns a client of the admin port at base, such as http://127.0.0.1:10080.
// A nil h means a client with a time limit. Redirects are not followed: an admin port sends none,
// and a redirect of another server would send a challenge, or the token, elsewhere.
func New(base string, h *http.Client) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" {
		return nil, fmt.Errorf("%q is no admin URL: give one such as http://127.0.0.1:10080", base)
	}
	if h == nil {
		h = &http.Client{Timeout: callTimeout}
	}
	own := *h
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: strings.TrimRight(u.String(), "/"), http: &own}, nil
}

// URL is the admin port that is called.
func (c *Client) URL() string { return c.base }

// StatusJSON returns the status document as the server wrote it, byte for byte.
func (c *Client) StatusJSON(ctx context.Context) ([]byte, error) {
	return c.call(ctx, CallStatus.Method, CallStatus.Path, nil)
}

// Status returns the status document.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return CallStatus.Do(ctx, c, At{}, None{})
}

// Alive returns nil if the process behind the port answers, whatever it serves.
func (c *Client) Alive(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodGet, "/healthz", nil)
	return err
}

// Readiness returns the readiness of the locations that the port shows. /readyz answers 503 with
// the same document while one of them is not ready.
func (c *Client) Readiness(ctx context.Context) (Readiness, error) {
	var out Readiness
	err := c.soon(ctx, func(ctx context.Context) error {
		status, b, err := c.send(ctx, http.MethodGet, "/readyz", nil, "")
		if err == nil && json.Unmarshal(b, &out) != nil || err == nil && out.Locations == nil {
			err = c.refusal(status, "/readyz", b)
		}
		return err
	})
	return out, err
}

// Accounts returns all accounts the port knows.
func (c *Client) Accounts(ctx context.Context) ([]AccountInfo, error) {
	l, err := CallAccounts.Do(ctx, c, At{}, None{})
	return l.Accounts, err
}

// Account returns one account.
func (c *Client) Account(ctx context.Context, name geo.Account) (AccountInfo, error) {
	return CallAccount.Do(ctx, c, At{Account: name}, None{})
}

// Keys returns an account's keys.
func (c *Client) Keys(ctx context.Context, name geo.Account) (Keys, error) {
	return CallKeys.Do(ctx, c, At{Account: name}, None{})
}

// CreateAccount makes an account and returns when both locations serve it.
func (c *Client) CreateAccount(ctx context.Context, a NewAccount) (AccountInfo, error) {
	return CallCreateAccount.Do(ctx, c, At{}, a)
}

// UpdateAccount changes the redundancy of an account.
func (c *Client) UpdateAccount(ctx context.Context, name geo.Account, u UpdateAccount) (AccountUpdated, error) {
	return CallUpdateAccount.Do(ctx, c, At{Account: name}, u)
}

// StartNode starts a stopped or failed node.
func (c *Client) StartNode(ctx context.Context, node string) (Changed, error) {
	return CallStartNode.Do(ctx, c, At{Node: node}, None{})
}

// StopNode stops a node.
func (c *Client) StopNode(ctx context.Context, node string) (Changed, error) {
	return CallStopNode.Do(ctx, c, At{Node: node}, None{})
}

// StartLocation starts all of a location's nodes and its front end.
func (c *Client) StartLocation(ctx context.Context, l geo.Location) (Changed, error) {
	return CallStartLocation.Do(ctx, c, At{Location: l}, None{})
}

// StopLocation stops a location, its front end included.
func (c *Client) StopLocation(ctx context.Context, l geo.Location) (Changed, error) {
	return CallStopLocation.Do(ctx, c, At{Location: l}, None{})
}

// CutLink stops everything that passes between the locations.
func (c *Client) CutLink(ctx context.Context) (Link, error) {
	return CallCutLink.Do(ctx, c, At{}, None{})
}

// HealLink ends a cut or a delay.
func (c *Client) HealLink(ctx context.Context) (Link, error) {
	return CallHealLink.Do(ctx, c, At{}, None{})
}

// DelayLink holds back everything that passes between the locations by d; it ends
// a cut.
func (c *Client) DelayLink(ctx context.Context, d time.Duration) (Link, error) {
	return CallDelayLink.Do(ctx, c, At{}, Delay{Seconds: d.Seconds()})
}

// fetch calls and decodes the answer.
func fetch[T any](ctx context.Context, c *Client, method, path string, in any) (T, error) {
	var out T
	b, err := c.call(ctx, method, path, in)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, fmt.Errorf("%s%s answered what is no admin document: is it an admin port? (%w)", c.base, path, err)
	}
	return out, nil
}

// call returns the body of a successful answer. A server that asks for the token has done nothing,
// so call repeats the request with the token. A request body may hold keys, and every route with
// a body needs the token: bodies are sent only together with the token, and so only to a server
// that proved to have it.
func (c *Client) call(ctx context.Context, method, path string, in any) ([]byte, error) {
	if p, ok := in.(plan); method != http.MethodGet && (!ok || !p.Plans()) {
		return c.calling(ctx, method, path, in)
	}
	var b []byte
	err := c.soon(ctx, func(ctx context.Context) (err error) {
		b, err = c.calling(ctx, method, path, in)
		return err
	})
	return b, err
}

// soon bounds a read by readTimeout.
func (c *Client) soon(ctx context.Context, read func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := read(bounded)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		return fmt.Errorf("%s: %w", c.base, ErrSilent)
	}
	return err
}

// calling is call, without a bound of the time but that of the HTTP client.
func (c *Client) calling(ctx context.Context, method, path string, in any) ([]byte, error) {
	token := c.creds.last()
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		if token == "" {
			if token, err = c.obtain(ctx); err != nil {
				return nil, refused(fmt.Sprintf("could not send %s %s: this needs the admin token", method, path), err)
			}
		}
	}
	if r, ok := in.(reader); method != http.MethodGet && (!ok || !r.reads()) {
		c.asked.Store(true)
	}
	b, err := c.once(ctx, method, path, body, token)
	said := wantsToken(err)
	if said == nil {
		return b, err
	}
	token, err = c.obtain(ctx)
	if err != nil {
		return nil, refused(said.Message, err)
	}
	b, err = c.once(ctx, method, path, body, token)
	if said := wantsToken(err); said != nil { // Another code, because trying again is useless.
		return nil, &Error{Status: said.Status, Code: codeTokenRefused, Message: said.Message}
	}
	return b, err
}

// refused is the error of a call that needs the token if there is no token to present. The error
// of a server that does not answer or is busy is returned as it is: nothing was refused.
func refused(message string, err error) error {
	var local noTokenError
	var said *Error
	if !errors.As(err, &local) && (!errors.As(err, &said) || said.Status >= http.StatusInternalServerError) {
		return err
	}
	return &Error{Status: http.StatusUnauthorized, Code: CodeToken, Message: message + ": " + err.Error()}
}

// wantsToken returns the error of a server that asks for the token or for another one, else nil.
func wantsToken(err error) *Error {
	var said *Error
	if errors.As(err, &said) && said.Status == http.StatusUnauthorized && said.Code == CodeToken {
		return said
	}
	return nil
}

// once sends one request and returns the body of a successful answer.
func (c *Client) once(ctx context.Context, method, path string, in []byte, token Token) ([]byte, error) {
	status, b, err := c.send(ctx, method, path, in, token)
	if err == nil && status >= http.StatusMultipleChoices {
		err = c.refusal(status, path, b)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// send sends one request and returns the status and the body of the answer.
func (c *Client) send(ctx context.Context, method, path string, in []byte, token Token) (int, []byte, error) {
	var body io.Reader
	if in != nil {
		body = bytes.NewReader(in)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return 0, nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+string(token))
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, c.transportError(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(res.Body, answerBytesMax+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("%s%s broke off its answer: look at the status, then try again (%w)", c.base, path, err)
	case len(b) > answerBytesMax:
		return 0, nil, fmt.Errorf("%s%s answered more than %d bytes: is it an admin port?", c.base, path, answerBytesMax)
	}
	return res.StatusCode, b, nil
}

// transportError distinguishes a server that was not reached from an answer that was lost.
func (c *Client) transportError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // The URL is named by us.
	}
	if unreached(err) {
		return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.base, err)
	}
	return fmt.Errorf("%s gave no answer, the outcome is unknown: look at the status, then try again (%w)", c.base, err)
}

// refusal returns the error of an error document. Any other document is not from an admin port.
func (c *Client) refusal(status int, path string, b []byte) error {
	var d ErrorDocument
	if json.Unmarshal(b, &d) == nil && d.Error.Message != "" {
		d.Error.Status = status
		return &d.Error
	}
	return &Error{
		Status: status, Code: "NotAnAdminPort",
		Message: fmt.Sprintf("%s%s answered %s without an admin error: is it an admin port?", c.base, path, strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))),
	}
}

// unreached reports whether err occurred before any byte of the request was sent.
func unreached(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return (errors.As(err, &op) && op.Op == "dial") || errors.As(err, &dns)
}
