package dns

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"time"

	msg "github.com/miekg/dns"

	"antipode/internal/clock"
)

// Key signs what is sent to a server (TSIG, RFC 8945), by HMAC-SHA-256.
type Key struct {
	// Name is the name that both sides know the key by.
	Name string
	// Secret is in base64.
	Secret string
}

// Valid reports whether the key can sign.
func (k Key) Valid() bool {
	b, err := base64.StdEncoding.DecodeString(k.Secret)
	_, isName := msg.IsDomainName(k.Name)
	return isName && k.Name != "" && err == nil && len(b) > 0
}

// The ways in which an exchange with a server fails.
var (
	errUnreachable = errors.New("the server does not answer")
	errKey         = errors.New("the server does not accept the key, or its clock differs by more than five minutes")
	errRefused     = errors.New("the server refuses the update")
	errForeign     = errors.New("the server has a record that Antipode did not write, which stays")
	// errRaced: a prerequisite did not hold, so that nothing has changed.
	errRaced = errors.New("the records have changed since they were read")
)

// exchangeMax bounds a question and its answer, signFudge how far the clocks may be apart.
const (
	exchangeMax = 5 * time.Second
	signFudge   = 300
)

// peer is a server that takes updates, over one connection at a time. It is used by one goroutine.
type peer struct {
	addr   string
	key    Key
	clock  clock.Clock
	client *msg.Client
	conn   net.Conn
}

func newPeer(addr string, key Key, c clock.Clock) *peer {
	key.Name = msg.CanonicalName(key.Name)
	return &peer{
		addr: addr, key: key, clock: c,
		client: &msg.Client{Net: "tcp", Timeout: exchangeMax, TsigSecret: map[string]string{key.Name: key.Secret}},
	}
}

// exchange sends a signed message and returns the answer, which the server must have signed, too. It fails
// where the server did not carry out what it was asked for; an answer that there is no such name is no failure.
func (p *peer) exchange(ctx context.Context, m *msg.Msg) (*msg.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeMax)
	defer cancel()
	if p.conn == nil {
		conn, err := p.client.DialContext(ctx, p.addr)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUnreachable, err)
		}
		p.conn = conn.Conn
	}
	// A connection knows deadlines only.
	conn := &msg.Conn{Conn: p.conn} // One that is used again signs with what it signed before.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	m.SetTsig(p.key.Name, msg.HmacSHA256, signFudge, p.clock.Now().Unix())
	r, _, err := p.client.ExchangeWithConnContext(ctx, m, conn)
	if err = outcome(r, err); err != nil && !errors.Is(err, errRaced) && !errors.Is(err, errForeign) {
		p.close()
	}
	return r, err
}

// outcome returns how an exchange failed, nil if it did not.
func outcome(r *msg.Msg, err error) error {
	if r == nil {
		return fmt.Errorf("%w: %w", errUnreachable, err)
	}
	code := msg.RcodeToString[r.Rcode]
	switch {
	case r.Rcode == msg.RcodeNotAuth && r.IsTsig() != nil && r.IsTsig().Error == 0:
		return fmt.Errorf("%w (%s: the zone is not the server's)", errRefused, code)
	case isSignature(err) || r.Rcode == msg.RcodeNotAuth:
		return fmt.Errorf("%w (%s)", errKey, code)
	case err != nil:
		return fmt.Errorf("%w: %w", errUnreachable, err)
	case r.Rcode == msg.RcodeSuccess || r.Rcode == msg.RcodeNameError:
		if r.IsTsig() == nil {
			return fmt.Errorf("%w: the answer is not signed", errKey)
		}
		return nil
	case r.Rcode == msg.RcodeYXDomain:
		return errForeign
	case r.Rcode == msg.RcodeNXRrset || r.Rcode == msg.RcodeYXRrset:
		return errRaced
	}
	return fmt.Errorf("%w (%s)", errRefused, code)
}

// isSignature reports whether the signature of an answer is wrong.
func isSignature(err error) bool {
	for _, one := range []error{msg.ErrSig, msg.ErrAuth, msg.ErrKeyAlg, msg.ErrNoSig, msg.ErrSecret, msg.ErrTime} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// ask asks for the records of a name.
func (p *peer) ask(ctx context.Context, name string, t uint16) ([]msg.RR, error) {
	m := new(msg.Msg)
	m.SetQuestion(name, t)
	m.RecursionDesired = false
	r, err := p.exchange(ctx, m)
	if err != nil {
		return nil, err
	}
	var out []msg.RR
	for _, rr := range r.Answer {
		if rr.Header().Rrtype == t {
			out = append(out, rr)
		}
	}
	return out, nil
}

// close ends the connection. The next exchange opens another one.
func (p *peer) close() {
	if p.conn != nil {
		_ = p.conn.Close()
		p.conn = nil
	}
}
