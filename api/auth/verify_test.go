package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/storageerr"
)

var testNow = time.Date(2013, 10, 23, 22, 5, 54, 0, time.UTC)

func testVerifier() *Verifier {
	return &Verifier{Clock: clock.NewManual(testNow), FutureSkew: DateWindow}
}

// verify runs a request through what the front end does before and with Verify.
func verify(v *Verifier, r *http.Request, s geo.Service, keys Keys) error {
	_, err := verifyQuery(v, r, s, keys)
	return err
}

func verifyQuery(v *Verifier, r *http.Request, s geo.Service, keys Keys) (protocol.Query, error) {
	target, err := protocol.ParseTarget(s, "http", r.Host, r.RequestURI, hostZones...)
	if err != nil {
		return nil, err
	}
	q, err := protocol.ParseQuery(target.RawQuery)
	if err != nil {
		return nil, err
	}
	version, err := protocol.ServiceVersion(target.Service, r.Header.Get("x-ms-version"), false)
	if err != nil {
		return nil, err
	}
	err = v.Verify(r, target, &q, version, keys)
	return q, err
}

// wantFailed checks for 403 AuthenticationFailed whose detail holds the text.
func wantFailed(t *testing.T, err error, detail string) {
	t.Helper()
	e, ok := storageerr.Of(err)
	if !ok || e.Row != storageerr.AuthenticationFailed {
		t.Errorf("got %v, want AuthenticationFailed", err)
		return
	}
	if len(e.Details) != 1 || e.Details[0].Name != "AuthenticationErrorDetail" ||
		!strings.Contains(e.Details[0].Value, detail) {
		t.Errorf("details %q, want one with %q", e.Details, detail)
	}
}

// Any change of what a vector signed is refused (protocol/auth.md 25, negative tests).
// It holds invariant 7.
func TestTampered(t *testing.T) {
	tests := []struct {
		name   string
		vector string
		change func(r *http.Request)
	}{
		{"one bit of sig", "1", func(r *http.Request) {
			a := r.Header.Get("Authorization")
			r.Header.Set("Authorization", strings.Replace(a, ":r6u0", ":r6u1", 1))
		}},
		{"unused bits of sig", "1", func(r *http.Request) {
			a := r.Header.Get("Authorization")
			r.Header.Set("Authorization", strings.Replace(a, "WQrY=", "WQrZ=", 1))
		}},
		{"sig is no Base64", "1", func(r *http.Request) { r.Header.Set("Authorization", "SharedKey devstoreaccount1:*") }},
		{"verb", "1", func(r *http.Request) { r.Method = "PUT" }},
		{"verb, table", "9c", func(r *http.Request) { r.Method = "DELETE" }},
		{"standard header changed", "1", func(r *http.Request) { r.Header.Set("Content-Type", "text/xml") }},
		{"standard header added", "1", func(r *http.Request) { r.Header.Set("If-Match", "*") }},
		{"second line of a standard header", "4a", func(r *http.Request) { r.Header.Add("If-None-Match", `"x"`) }},
		{"standard header removed", "4a", func(r *http.Request) { r.Header.Del("If-None-Match") }},
		{"content length changed", "1", func(r *http.Request) { r.Header.Set("Content-Length", "99") }},
		{"x-ms header changed", "4a", func(r *http.Request) { r.Header.Set("x-ms-meta-a1", "w") }},
		{"x-ms header added", "4a", func(r *http.Request) { r.Header.Set("x-ms-meta-b", "") }},
		{"x-ms header removed", "4a", func(r *http.Request) { r.Header.Del("x-ms-meta-a1") }},
		{"x-ms values exchanged", "4b", func(r *http.Request) {
			r.Header.Set("x-ms-meta-a1", "u")
			r.Header.Set("x-ms-meta-a_1", "v")
		}},
		{"x-ms-date changed", "9a", func(r *http.Request) { r.Header.Set("x-ms-date", "Wed, 23 Oct 2013 22:05:55 GMT") }},
		{"parameter added", "1", func(r *http.Request) { r.RequestURI += "&timeout=30" }},
		{"parameter changed", "1", func(r *http.Request) { r.RequestURI = strings.Replace(r.RequestURI, "3600", "3601", 1) }},
		{"parameter removed", "7", func(r *http.Request) { r.RequestURI = "/mycontainer/blob1.txt" }},
		{"comp added, lite", "9a", func(r *http.Request) { r.RequestURI += "?comp=acl" }},
		{"parameters merged", "2", func(r *http.Request) { r.RequestURI = "/?comp=stats%0Arestype:service" }},
		{"parameter cut elsewhere", "7", func(r *http.Request) { r.RequestURI = "/mycontainer/blob1.txt?timeout:30" }},
		{"parameter with a colon", "7", func(r *http.Request) { r.RequestURI = "/mycontainer/blob1.txt?timeout:3=0" }},
		{"path case", "5", func(r *http.Request) { r.RequestURI = strings.Replace(r.RequestURI, "/my", "/My", 1) }},
		{"path encoding", "4a", func(r *http.Request) { r.RequestURI = strings.Replace(r.RequestURI, "/dir/", "/dir%2F", 1) }},
		{"path, table", "9a", func(r *http.Request) { r.RequestURI = strings.Replace(r.RequestURI, "p1", "p2", 1) }},
		{"other scheme", "9a", func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "SharedKeyLite", "SharedKey", 1))
		}},
		{"host style container named as a secondary", "4a", func(r *http.Request) { r.RequestURI = "/devstoreaccount1-secondary" + r.RequestURI }},
	}
	v := testVerifier()
	keys := Keys{Key1: testKey(t)}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := slices.IndexFunc(vectors, func(v vector) bool { return v.name == tt.vector })
			r := vectors[i].request(t)
			if err := verify(v, r, vectors[i].service, keys); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			tt.change(r)
			wantFailed(t, verify(v, r, vectors[i].service, keys), "")
		})
	}
}

// A signature for one request is none for another that would make the same
// string: a parameter cut at another colon, a container whose name ends like the
// secondary's account, an account without a key.
func TestLookalikes(t *testing.T) {
	key := testKey(t)
	tests := []struct {
		name         string
		signed, sent string
		key          []byte
	}{
		{"colon", "/c?comp=list&prefix=a:b", "/c?comp=list&prefix:a=b", key},
		{"line feed in a name", "/c?comp=list&prefix=a", "/c?comp%3Alist%0Aprefix=a", key},
		{"line feed in a value", "/c?comp=list&prefix=a", "/c?comp=list%0Aprefix:a", key},
		{"suffix", "/devstoreaccount1/b", "/devstoreaccount1-secondary/b", key},
		{"empty key", "/c", "/c", []byte{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, c := range []struct {
				headers []string
				way     variant
			}{{[]string{msDate, "x-ms-version: 2020-10-02"}, 0}, {[]string{msDate}, fullLayout}} { // The latter as parts of batches.
				r := read(t, "GET "+tt.signed, hostBlob, c.headers...)
				signAs(t, r, geo.Blob, sharedKey, c.way, tt.key)
				r.RequestURI = tt.sent
				wantFailed(t, verify(testVerifier(), r, geo.Blob, Keys{Key1: tt.key, Key2: []byte{}}), "")
			}
		})
	}
}

// A date counts from 15 minutes ago up to 15 minutes ahead; unreadable and absent
// ones have one detail text.
func TestDateWindow(t *testing.T) {
	keys := Keys{Key1: testKey(t)}
	tests := []struct {
		name   string
		age    time.Duration
		skew   time.Duration
		detail string
	}{
		{"now", 0, DateWindow, ""},
		{"15 minutes old", 15 * time.Minute, DateWindow, ""},
		{"16 minutes old", 16 * time.Minute, DateWindow, "Request date header too old: 'Wed, 23 Oct 2013 22:05:54 GMT'"},
		{"15 minutes ahead", -15 * time.Minute, DateWindow, ""},
		{"16 minutes ahead", -16 * time.Minute, DateWindow, "Request date header too far in the future: '"},
		{"a day ahead, allowed", -24 * time.Hour, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := &Verifier{Clock: clock.NewManual(testNow.Add(tt.age)), FutureSkew: tt.skew}
			err := verify(v, vectors[0].request(t), vectors[0].service, keys)
			if tt.detail == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantFailed(t, err, tt.detail)
		})
	}
	for _, header := range []string{"User-Agent: x", "x-ms-date: yesterday", "x-ms-date:"} {
		headers := []string{header}
		if strings.HasPrefix(header, "x-ms-date") {
			headers = append(headers, "Date: "+testDate) // x-ms-date decides, even unreadable
		}
		r := read(t, "GET /", hostTable, headers...)
		r.Header.Set("Authorization", "SharedKeyLite devstoreaccount1:AAAA")
		wantFailed(t, verify(testVerifier(), r, geo.Table, keys), "Request date header not specified")
	}
}

// The account in the header is the one the URL addresses, without suffix.
func TestAccountInHeader(t *testing.T) {
	keys := Keys{Key1: testKey(t)}
	for _, account := range []string{"devstoreaccount1-secondary", "other", "DevStoreAccount1", "a:b"} {
		r := vectors[2].request(t)
		r.Header.Set("Authorization", "SharedKey "+account+":"+vectors[2].sig)
		wantFailed(t, verify(testVerifier(), r, geo.Queue, keys), "not the account of the request's URL")
	}
}

// Every way in which clients are known to sign is accepted, one at a time and
// together; a parameter that was not signed is removed.
func TestVariants(t *testing.T) {
	const old, modern = "x-ms-version: 2014-02-14", "x-ms-version: 2020-10-02"
	tests := []struct {
		name    string
		line    string
		host    string
		headers []string
		scheme  scheme
		way     variant
		service geo.Service
		query   string
	}{
		{"byte order", "PUT /c/b", hostBlob, []string{modern, "x-ms-meta-a1: v", "x-ms-meta-a_1: u"}, sharedKey, byteSorted, geo.Blob, ""},
		{"empty parameters", "GET /c?comp=list&prefix=&delimiter", hostBlob, []string{modern}, sharedKey, noEmptyParams, geo.Blob, "comp"},
		{"empty parameters kept", "GET /c?comp=list&prefix=&delimiter", hostBlob, []string{modern}, sharedKey, 0, geo.Blob, "comp,prefix,delimiter"},
		{"zero length", "PUT /q", "devstoreaccount1.queue.x", []string{old, "Content-Length: 0"}, sharedKey, noZeroLength, geo.Queue, ""},
		{"spaces", "PUT /c/b", hostBlob, []string{modern, "x-ms-meta-a: v  w\tx"}, sharedKey, spacesCollapsed, geo.Blob, ""},
		{"secondary", "GET /devstoreaccount1-secondary/q", hostPathStyle, []string{modern}, sharedKey, noSuffix, geo.Queue, ""},
		{"secondary root", "GET /devstoreaccount1-secondary?comp=list", hostPathStyle, []string{modern}, sharedKey, noSuffix, geo.Queue, "comp"},
		{"secondary, table", "GET /devstoreaccount1-secondary/T()", hostPathStyle, nil, sharedKeyLite, noSuffix, geo.Table, ""},
		{"no version", "GET /q?a=1", "devstoreaccount1.queue.x", nil, sharedKey, 0, geo.Queue, "a"},
		{"batch part", "DELETE /c/b?snapshot=x", "devstoreaccount1.queue.x", nil, sharedKey, fullLayout, geo.Queue, "snapshot"},
		{"quotes encoded", "GET /T(PartitionKey='a',RowKey='b')", hostTable, nil, sharedKeyLite, quotesEncoded, geo.Table, ""},
		{"quotes raw", "GET /T(PartitionKey=%27a%27,RowKey=%27b%27)", hostTable, nil, sharedKey, quotesRaw, geo.Table, ""},
		{"empty comp, table", "GET /T?comp=", hostTable, nil, sharedKeyLite, noEmptyParams, geo.Table, ""},
		{
			"several at once", "PUT /devstoreaccount1-secondary/q?x=&comp=metadata", hostPathStyle,
			[]string{old, "Content-Length: 0", "x-ms-meta-a1: v  w", "x-ms-meta-a_1: u"},
			sharedKey, byteSorted | noEmptyParams | noSuffix | noZeroLength | spacesCollapsed, geo.Queue, "comp",
		},
	}
	key := testKey(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := read(t, tt.line, tt.host, append(tt.headers, msDate)...)
			signAs(t, r, tt.service, tt.scheme, tt.way, key)
			q, err := verifyQuery(testVerifier(), r, tt.service, Keys{Key2: key})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, p := range q {
				names = append(names, p.Name)
			}
			if got := strings.Join(names, ","); got != tt.query {
				t.Errorf("parameters left: %s, want %s", got, tt.query)
			}
		})
	}
}

// signAs signs a received request in the given way.
func signAs(t *testing.T, r *http.Request, s geo.Service, sc scheme, way variant, key []byte) {
	t.Helper()
	target, err := protocol.ParseTarget(s, "http", r.Host, r.RequestURI, hostZones...)
	if err != nil {
		t.Fatal(err)
	}
	q, err := protocol.ParseQuery(target.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	m := messageOf(r, target, q, protocol.Version(r.Header.Get("x-ms-version")), sc)
	var c canonicalizer
	h := hmac.New(sha256.New, key)
	h.Write(c.append(nil, &m, way))
	word := "SharedKey "
	if sc == sharedKeyLite {
		word = "sharedkeylite " // the scheme is matched without case
	}
	r.Header.Set("Authorization", word+testAccount+":"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
}

// A huge request gets its first candidate alone.
func TestVariantTextMax(t *testing.T) {
	key := testKey(t)
	for _, tt := range []struct {
		size int
		way  variant
		ok   bool
	}{
		{variantTextMax - 1<<10, spacesCollapsed, true},
		{variantTextMax, spacesCollapsed, false},
		{variantTextMax, 0, true},
	} {
		r := read(t, "GET /c/b", hostBlob, msDate, "x-ms-version: 2020-10-02", "x-ms-meta-a: b  "+strings.Repeat("c", tt.size))
		signAs(t, r, geo.Blob, sharedKey, tt.way, key)
		if err := verify(testVerifier(), r, geo.Blob, Keys{Key1: key}); (err == nil) != tt.ok {
			t.Errorf("%d bytes, way %d: accepted %v, want %v", tt.size, tt.way, err == nil, tt.ok)
		}
	}
}

// Swapped encoding and language pass with the setting alone.
func TestSwappedEncoding(t *testing.T) {
	key := testKey(t)
	r := read(t, "PUT /c/b", hostBlob, msDate, "x-ms-version: 2020-10-02", "Content-Encoding: gzip")
	signAs(t, r, geo.Blob, sharedKey, swappedEncoding, key)
	v := testVerifier()
	wantFailed(t, verify(v, r, geo.Blob, Keys{Key1: key}), "PUT\ngzip\n\n")
	v.AcceptSwappedEncoding = true
	if err := verify(v, r, geo.Blob, Keys{Key1: key}); err != nil {
		t.Error(err)
	}
}

// Requests without a usable Authorization header get the answer of their service
// and version.
func TestNoSignature(t *testing.T) {
	tests := []struct {
		name          string
		service       geo.Service
		authorization []string
		version       string
		line          string
		want          storageerr.Row
	}{
		{"blob, none", geo.Blob, nil, "", "GET /c/b", storageerr.ResourceNotFound},
		{"blob, none, old", geo.Blob, nil, "2019-10-10", "GET /c/b", storageerr.ResourceNotFound},
		{"blob, none, new", geo.Blob, nil, "2019-12-12", "GET /c/b", storageerr.NoAuthentication},
		{"queue, none, new", geo.Queue, nil, "2024-08-04", "GET /q", storageerr.NoAuthentication},
		{"table, none", geo.Table, nil, "", "GET /T()", storageerr.AuthenticationFailed},
		{"table, none, 2019", geo.Table, nil, "2019-12-12", "GET /T()", storageerr.AuthenticationFailed},
		{"table, none, new", geo.Table, nil, "2020-12-06", "GET /T()", storageerr.NoAuthentication},
		{"header beside sig", geo.Blob, []string{"Bearer x"}, "", "GET /c/b?sig=x", storageerr.BearerRefused},
		{"bearer, old table", geo.Table, []string{"bearer x"}, "2019-02-02", "GET /T()", storageerr.AuthenticationFailed},
		{"unknown scheme", geo.Table, []string{"Basic YTpi"}, "", "GET /T()", storageerr.InvalidAuthentication},
		{"empty", geo.Table, []string{""}, "", "GET /T()", storageerr.InvalidAuthentication},
		{"scheme alone", geo.Table, []string{"SharedKey"}, "", "GET /T()", storageerr.InvalidAuthentication},
		{"two spaces", geo.Table, []string{"SharedKey  a:b"}, "", "GET /T()", storageerr.InvalidAuthentication},
		{"no colon", geo.Table, []string{"SharedKey ab"}, "", "GET /T()", storageerr.InvalidAuthentication},
		{"no account", geo.Table, []string{"SharedKey :b"}, "", "GET /T()", storageerr.InvalidAuthentication},
		{"no signature", geo.Table, []string{"SharedKey a:"}, "", "GET /T()", storageerr.InvalidAuthentication},
		{"two headers", geo.Table, []string{"SharedKey a:b", "SharedKey a:b"}, "", "GET /T()", storageerr.InvalidAuthentication},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			host := "devstoreaccount1." + tt.service.String() + ".storage.test"
			r := read(t, tt.line, host, msDate)
			r.Header["Authorization"] = tt.authorization
			if tt.version != "" {
				r.Header.Set("x-ms-version", tt.version)
			}
			if tt.authorization == nil {
				delete(r.Header, "Authorization")
			}
			err := verify(testVerifier(), r, tt.service, Keys{Key1: testKey(t)})
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}
