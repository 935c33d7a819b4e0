package rest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"antipode/api/auth"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
)

// The account that every emulator knows, and its key (protocol/auth.md 4).
const (
	DevAccount = geo.Account("devstoreaccount1")
	DevKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// serviceVersion is sent with every request; table, blob and queue know it.
const serviceVersion = "2019-02-02"

// Client speaks to one endpoint of one account: the primary's or the
// secondary's. Its methods may be called concurrently.
type Client struct {
	// HTTP carries the requests. It must not follow redirects on its own accord
	// to other hosts; the tests' client connects to 127.0.0.1 whatever the name.
	HTTP *http.Client
	// Base is the endpoint of each service with the account, without a final
	// slash: "http://127.0.0.1:10002/devstoreaccount1-secondary".
	Base map[geo.Service]string
	// Account is the name without -secondary, and Key its decoded key.
	Account geo.Account
	Key     []byte
	Clock   clock.Clock
}

// NewPathStyle returns a client of the dev account at the front end whose blob,
// queue and table ports are portBase, +1 and +2.
func NewPathStyle(hc *http.Client, portBase int, secondary bool) *Client {
	return NewPathStyleOf(hc, DevAccount, portBase, secondary)
}

// NewPathStyleOf is NewPathStyle for another account with the same key.
func NewPathStyleOf(hc *http.Client, account geo.Account, portBase int, secondary bool) *Client {
	key, err := base64.StdEncoding.DecodeString(DevKey)
	if err != nil {
		panic("rest: the well-known key is not Base64: " + err.Error())
	}
	label := string(account)
	if secondary {
		label += geo.SecondarySuffix
	}
	c := &Client{HTTP: hc, Base: map[geo.Service]string{}, Account: account, Key: key, Clock: clock.System{}}
	for i, s := range geo.Services {
		c.Base[s] = fmt.Sprintf("http://127.0.0.1:%d/%s", portBase+i, label)
	}
	return c
}

// Request is one call. The zero value of each field but Method leaves it out.
type Request struct {
	Method string
	// Path begins with a slash and is sent as it stands, percent-encoding
	// included; Query has no question mark.
	Path, Query string
	Header      map[string]string
	Body        []byte
}

// Answer is what came back, whatever its status.
type Answer struct {
	Status int
	// Code is the storage error code of a failed call, "" if none was found.
	Code   string
	Header http.Header
	Body   []byte
}

// OK reports a status of the 200s.
func (a Answer) OK() bool { return a.Status >= 200 && a.Status < 300 }

func (a Answer) String() string {
	if a.OK() {
		return strconv.Itoa(a.Status)
	}
	return fmt.Sprintf("%d %s: %.200q", a.Status, a.Code, a.Body)
}

// Do signs and sends one request and reads the whole answer. An error means that
// the outcome is unknown, unless NeverSent says otherwise.
func (c *Client) Do(ctx context.Context, s geo.Service, in Request) (Answer, error) {
	target := c.Base[s] + in.Path
	if in.Query != "" {
		target += "?" + in.Query
	}
	r, err := http.NewRequestWithContext(ctx, in.Method, target, bytes.NewReader(in.Body))
	if err != nil {
		return Answer{}, fmt.Errorf("rest: request %s %s: %w", in.Method, in.Path, err)
	}
	for name, value := range in.Header {
		r.Header.Set(name, value)
	}
	r.Header.Set(protocol.HeaderVersion, serviceVersion)
	sign := auth.Sign
	if s == geo.Table {
		sign = auth.SignSharedKeyLite
	}
	if err := sign(r, s, c.Account, c.Key, c.Clock.Now()); err != nil {
		return Answer{}, fmt.Errorf("rest: signing %s %s: %w", in.Method, in.Path, err)
	}
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return Answer{}, err
	}
	body, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return Answer{}, fmt.Errorf("rest: reading the answer of %s %s: %w", in.Method, in.Path, err)
	}
	a := Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}
	if !a.OK() {
		a.Code = errorCode(resp.Header, body)
	}
	return a, nil
}

// NeverSent reports whether err means that no server can have seen the request:
// no connection was made.
func NeverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// errorCode finds the code in the header or, where the table service leaves the
// header out, in a JSON or XML body.
func errorCode(h http.Header, body []byte) string {
	if code := h.Get("x-ms-error-code"); code != "" {
		return code
	}
	text := string(body)
	for _, mark := range [...][2]string{{`"code":"`, `"`}, {"<Code>", "<"}, {"<m:code>", "<"}, {"<code>", "<"}} {
		if _, rest, found := strings.Cut(text, mark[0]); found {
			code, _, _ := strings.Cut(rest, mark[1])
			return code
		}
	}
	return ""
}
