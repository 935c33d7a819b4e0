package conformance

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
)

// request is one request, as its bytes will stand on the wire.
type request struct {
	method, target, body string
	header               http.Header
	host                 string // the Host header
}

// The schemes of Authorization.
const (
	sharedKey     = "SharedKey"
	sharedKeyLite = "SharedKeyLite"
)

// schemeOf is the scheme in which the clients of a version sign (protocol/table.md 18).
func schemeOf(version string) string {
	if version == latest || version == "" || version == "2009-04-14" {
		return sharedKeyLite
	}
	return sharedKey
}

// request makes one of a case. path begins after the account; fields are names and values of
// headers, of which an empty value removes one of those that every request has.
func (r *rig) request(method, path, body string, fields ...string) *request {
	q := &request{method: method, target: "/" + r.account + path, body: body, host: r.suite.host, header: http.Header{
		"X-Ms-Version": {latest}, "Accept": {"application/json"}, "X-Ms-Client-Request-Id": {r.table},
	}}
	if body != "" {
		q.header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if q.header.Set(fields[i], fields[i+1]); fields[i+1] == "" {
			q.header.Del(fields[i])
		}
	}
	return q
}

// sign signs a request in the scheme of its version, unless it is signed already.
func (r *rig) sign(q *request) *request {
	if q.header.Get("Authorization") == "" && !strings.Contains(q.target, "sig=") {
		r.signAs(q, schemeOf(q.header.Get("X-Ms-Version")), q.target)
	}
	return q
}

// signAs signs a request for a target that may be another one than its own.
func (r *rig) signAs(q *request, scheme, target string) {
	if q.header.Get("X-Ms-Date") == "" {
		q.header.Set("X-Ms-Date", clock.System{}.Now().UTC().Format(http.TimeFormat))
	}
	q.header.Set("Authorization", scheme+" "+r.account+":"+mac(r.secret, stringToSign(q, scheme, r.account, target)))
}

// stringToSign is that of protocol/table.md 14.1.
func stringToSign(q *request, scheme, account, target string) string {
	resource, query, _ := strings.Cut(target, "?")
	resource = "/" + account + resource
	for option := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(option, "="); name == "comp" {
			resource += "?comp=" + value
		}
	}
	text := q.header.Get("X-Ms-Date") + "\n" + resource
	if scheme == sharedKey {
		text = q.method + "\n" + q.header.Get("Content-Md5") + "\n" + q.header.Get("Content-Type") + "\n" + text
	}
	return text
}

// mac signs a text with a key.
func mac(key []byte, text string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// once sends a request as it is.
func (s *suite) once(ctx context.Context, q *request) (*answer, error) {
	hr, err := http.NewRequestWithContext(ctx, q.method, "http://"+s.host, strings.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	path, query, _ := strings.Cut(q.target, "?")
	hr.URL = &url.URL{Scheme: "http", Host: s.host, Opaque: path, RawQuery: query} // Opaque: sent as it stands.
	hr.Host, hr.Header = q.host, q.header.Clone()
	if hr.Header.Get("User-Agent") == "" {
		hr.Header.Set("User-Agent", "")
	}
	resp, err := s.http.Do(hr)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return &answer{request: q, status: resp.StatusCode, header: resp.Header, body: string(body)}, err
}

// try signs and sends a request, again while it is answered that the server is busy: nothing
// happened then. It may be called by any goroutine.
func (r *rig) try(q *request) (a *answer, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), waitMax)
	defer cancel()
	r.sign(q)
	for {
		if a, err = r.suite.once(ctx, q); err != nil || a.status != http.StatusServiceUnavailable {
			return a, err
		}
		if err := clock.Wait(ctx, pollEvery); err != nil {
			return nil, fmt.Errorf("busy for %v: %w", waitMax, err)
		}
	}
}

// send is try, and checks what all answers have.
func (r *rig) send(q *request) *answer {
	r.Helper()
	a, err := r.try(q)
	require.NoError(r, err, "%s %s", q.method, q.target)
	a.rig = r
	a.plumbing()
	return a
}

// do sends a request to the primary.
func (r *rig) do(method, path, body string, fields ...string) *answer {
	r.Helper()
	return r.send(r.request(method, path, body, fields...))
}

// read gets something at the primary, and waits until the answer is the same at the secondary.
func (r *rig) read(path string, fields ...string) *answer {
	r.Helper()
	return r.mirrored(r.request("GET", path, "", fields...))
}

// mirrored sends a request that reads to the primary, and waits until the secondary answers it in
// the same way.
func (r *rig) mirrored(q *request) *answer {
	r.Helper()
	there := &request{method: q.method, body: q.body, host: q.host, header: q.header.Clone()}
	there.target = strings.Replace(q.target, "/"+r.account, "/"+r.account+geo.SecondarySuffix, 1)
	a := r.send(q)
	want, got := a.comparable(), ""
	r.sign(there)
	ctx, cancel := context.WithTimeout(r.Context(), waitMax)
	defer cancel()
	for got != want {
		b, err := r.suite.once(ctx, there)
		if err == nil {
			b.rig = r
			got = b.comparable()
		}
		if got != want && clock.Wait(ctx, pollEvery) != nil {
			require.Equal(r, want, got, "%s %s is not the same at the secondary", q.method, q.target)
			require.NoError(r, err)
		}
	}
	return a
}

// until waits for a condition. An error is one that may pass.
func (r *rig) until(what string, ok func() (bool, error)) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), waitMax)
	defer cancel()
	for {
		done, err := ok()
		if done {
			return
		}
		if clock.Wait(ctx, pollEvery) != nil {
			require.NoError(r, err, what)
			require.FailNow(r, "it never came to be that "+what)
		}
	}
}

// ago is a date of a request.
func ago(d time.Duration) string { return clock.System{}.Now().Add(-d).UTC().Format(http.TimeFormat) }
