package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
)

// Sign adds a SharedKey Authorization header to a request that is about to be
// sent, and x-ms-date with the given time unless the request has it already. It
// signs the request as it is: headers that are part of the string (x-ms-version
// above all, which it does not add) must be set before, and the path and query
// changed no more. The length signed is r.ContentLength. Account is the name
// without -secondary; for a path-style URL the path holds it too. Only a query
// with bad percent-encoding is an error.
func Sign(r *http.Request, s geo.Service, account geo.Account, key []byte, now time.Time) error {
	return sign(r, s, account, key, now, sharedKey)
}

// SignSharedKeyLite is Sign with the SharedKeyLite scheme, which table clients
// use.
func SignSharedKeyLite(r *http.Request, s geo.Service, account geo.Account, key []byte, now time.Time) error {
	return sign(r, s, account, key, now, sharedKeyLite)
}

func sign(r *http.Request, s geo.Service, account geo.Account, key []byte, now time.Time, sc scheme) error {
	q, err := protocol.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	if r.Header[headerDate] == nil {
		r.Header[headerDate] = []string{wire.FormatHTTPTime(now)}
	}
	t := protocol.Target{Service: s, Account: account, RawPath: r.URL.EscapedPath()}
	if t.RawPath == "" {
		t.RawPath = "/"
	}
	version := protocol.Version(r.Header.Get(protocol.HeaderVersion))
	m := messageOf(r, t, q, version, sc)
	var c canonicalizer
	var mac [sha256.Size]byte
	new(macState).sum(&mac, key, c.append(make([]byte, 0, 512), &m, 0))
	word := "SharedKey "
	if sc == sharedKeyLite {
		word = "SharedKeyLite "
	}
	r.Header[headerAuthorization] = []string{
		word + string(account) + ":" + encodeSignature(mac),
	}
	return nil
}

func encodeSignature(mac [sha256.Size]byte) string { return base64.StdEncoding.EncodeToString(mac[:]) }
