package auth

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
)

// A header that parses is its parts put together again.
func FuzzParseAuthorization(f *testing.F) {
	for _, s := range []string{
		"SharedKey a:b", "sharedkeylite acct:sig==", "Bearer x", "SharedKey  a:b", "SharedKey a:b:c", "", " ", "SharedKey :", "SharedKey a b:c",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := parseAuthorization(s)
		if err != nil || a.scheme == bearer {
			return
		}
		if a.account == "" || a.signature == "" {
			t.Fatalf("%q parsed to an empty part: %+v", s, a)
		}
		tail := " " + a.account + ":" + a.signature
		if word := map[scheme]int{sharedKey: 9, sharedKeyLite: 13}[a.scheme]; len(s) != word+len(tail) || s[word:] != tail {
			t.Fatalf("%q parsed to %+v", s, a)
		}
	})
}

// Whatever request the server reads: signing it in the first way verifies, and a
// key of another account does not.
func FuzzVerify(f *testing.F) {
	f.Add([]byte("GET /a?b=c HTTP/1.1\r\nHost: acct.blob.x\r\nx-ms-version: 2020-10-02\r\nx-ms-date: "+testDate+"\r\n\r\n"), uint8(2), false)
	f.Add([]byte("PUT /acct-secondary/q?b&c= HTTP/1.1\r\nHost: 127.0.0.1\r\nDate: "+testDate+"\r\nx-ms-meta-a_1: 1  2\r\n\r\n"), uint8(3), true)
	f.Add([]byte("GET /acct/T('%27') HTTP/1.1\r\nHost: localhost\r\nx-ms-date: "+testDate+"\r\n\r\n"), uint8(4), true)
	f.Fuzz(func(t *testing.T, raw []byte, service uint8, lite bool) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		target, err := protocol.ParseTarget(geo.Service(2+service%3), "http", r.Host, r.RequestURI, hostZones...)
		if err != nil || target.Account == "" {
			return
		}
		q, err := protocol.ParseQuery(target.RawQuery)
		if err != nil || ambiguous(q) {
			return
		}
		sc, word := sharedKey, "SharedKey "
		if lite {
			sc, word = sharedKeyLite, "SharedKeyLite "
		}
		version, err := protocol.ServiceVersion(target.Service, r.Header.Get("x-ms-version"), false)
		if err != nil {
			return
		}
		m := messageOf(r, target, q, version, sc)
		var c canonicalizer
		var sum [32]byte
		new(macState).sum(&sum, []byte("key"), c.append(nil, &m, 0))
		r.Header["Authorization"] = []string{word + string(target.Account) + ":" + encodeSignature(sum)}
		err = testVerifier().Verify(r, target, &q, version, Keys{Key1: []byte("key")})
		other := testVerifier().Verify(r, target, &q, version, Keys{Key1: []byte("other")})
		if other == nil {
			t.Fatal("another key verifies")
		}
		if _, ok := wire.ParseHTTPTime(requestDate(r.Header)); !ok {
			return
		}
		if _, perr := parseAuthorization(r.Header.Get("Authorization")); perr != nil {
			return // an account with a blank in it cannot be named in the header
		}
		if derr := testVerifier().checkDate(r.Header); derr != nil {
			return
		}
		if err != nil {
			t.Fatalf("%v for %q", err, raw)
		}
	})
}
