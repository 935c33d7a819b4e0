package auth

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"antipode/api/protocol"
	"antipode/geo"
)

const (
	testAccount = "devstoreaccount1"
	testDate    = "Wed, 23 Oct 2013 22:05:54 GMT"
	testKeyText = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

	clientID = "x-ms-client-request-id: c0ffee00-0000-4000-8000-000000000001"
	msDate   = "x-ms-date: " + testDate

	hostBlob      = "devstoreaccount1.blob.storage.test"
	hostBlobSec   = "devstoreaccount1-secondary.blob.storage.test"
	hostTable     = "devstoreaccount1.table.storage.test"
	hostTableSec  = "devstoreaccount1-secondary.table.storage.test"
	hostPathStyle = "127.0.0.1:10001"
)

// hostZones are those of the host-style names in these tests.
var hostZones = []geo.Zone{"storage.test", "x"}

func testKey(t testing.TB) []byte {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(testKeyText)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// vector is one row of protocol/auth.md 25.
type vector struct {
	name    string
	service geo.Service
	scheme  string
	line    string // method and request target
	host    string
	headers []string
	sts     string
	sig     string
}

var vectors = []vector{
	{
		"1", geo.Queue, "SharedKey", "POST /devstoreaccount1/myqueue/messages?messagettl=3600&visibilitytimeout=0", hostPathStyle,
		[]string{clientID, msDate, "x-ms-version: 2024-08-04", "Content-Type: application/xml", "Content-Length: 100"},
		"POST\n\n\n100\n\napplication/xml\n\n\n\n\n\n\nx-ms-client-request-id:c0ffee00-0000-4000-8000-000000000001\nx-ms-date:Wed, 23 Oct 2013 22:05:54 GMT\nx-ms-version:2024-08-04\n/devstoreaccount1/devstoreaccount1/myqueue/messages\nmessagettl:3600\nvisibilitytimeout:0",
		"r6u0rUdK7J43uepS1rMIcPjw0Q0IPGfQZdYJiFNWQrY=",
	},
	{
		"2", geo.Blob, "SharedKey", "GET /?comp=stats&restype=service", hostBlobSec,
		[]string{clientID, msDate, "x-ms-version: 2025-05-05"},
		"GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:c0ffee00-0000-4000-8000-000000000001\nx-ms-date:Wed, 23 Oct 2013 22:05:54 GMT\nx-ms-version:2025-05-05\n/devstoreaccount1/\ncomp:stats\nrestype:service",
		"SPVgD29tXbFBcFP/KgjmB2iXccUzcRRpQsVCvNS6v+Y=",
	},
	{
		"3a", geo.Queue, "SharedKey", "GET /devstoreaccount1-secondary/myqueue/messages?numofmessages=32&peekonly=true", hostPathStyle,
		[]string{clientID, msDate, "x-ms-version: 2024-08-04"},
		"GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:c0ffee00-0000-4000-8000-000000000001\nx-ms-date:Wed, 23 Oct 2013 22:05:54 GMT\nx-ms-version:2024-08-04\n/devstoreaccount1/devstoreaccount1-secondary/myqueue/messages\nnumofmessages:32\npeekonly:true",
		"ElGWTbO6I4hfkL3j1jjGkGM6V7Mdxos6iZH0N/OVREQ=",
	},
	{
		"3b", geo.Queue, "SharedKey", "GET /devstoreaccount1-secondary/myqueue/messages?numofmessages=32&peekonly=true", hostPathStyle,
		[]string{clientID, msDate, "x-ms-version: 2024-08-04"},
		"GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:c0ffee00-0000-4000-8000-000000000001\nx-ms-date:Wed, 23 Oct 2013 22:05:54 GMT\nx-ms-version:2024-08-04\n/devstoreaccount1/devstoreaccount1/myqueue/messages\nnumofmessages:32\npeekonly:true",
		"snfRbng6m+YwTLRW3dUBKSrAEEMuDYJTmx7rw0pEeKM=",
	},
	{
		"4a", geo.Blob, "SharedKey", "PUT /mycontainer/dir/a%20b.txt", hostBlob,
		[]string{clientID, msDate, "x-ms-version: 2025-05-05", "x-ms-blob-type: BlockBlob", "x-ms-meta-a1: v", "x-ms-meta-a_1: u", "If-None-Match: *", "Content-Type: application/octet-stream", "Content-Length: 5"},
		"PUT\n\n\n5\n\napplication/octet-stream\n\n\n\n*\n\n\nx-ms-blob-type:BlockBlob\nx-ms-client-request-id:c0ffee00-0000-4000-8000-000000000001\nx-ms-date:Wed, 23 Oct 2013 22:05:54 GMT\nx-ms-meta-a_1:u\nx-ms-meta-a1:v\nx-ms-version:2025-05-05\n/devstoreaccount1/mycontainer/dir/a%20b.txt",
		"ga6Wdsri3JYhTVoo3wCxkaHSzi9KqmLvzyDE1m/r6qM=",
	},
	{
		"4b", geo.Blob, "SharedKey", "PUT /mycontainer/dir/a%20b.txt", hostBlob,
		[]string{clientID, msDate, "x-ms-version: 2025-05-05", "x-ms-blob-type: BlockBlob", "x-ms-meta-a1: v", "x-ms-meta-a_1: u", "If-None-Match: *", "Content-Type: application/octet-stream", "Content-Length: 5"},
		"PUT\n\n\n5\n\napplication/octet-stream\n\n\n\n*\n\n\nx-ms-blob-type:BlockBlob\nx-ms-client-request-id:c0ffee00-0000-4000-8000-000000000001\nx-ms-date:Wed, 23 Oct 2013 22:05:54 GMT\nx-ms-meta-a1:v\nx-ms-meta-a_1:u\nx-ms-version:2025-05-05\n/devstoreaccount1/mycontainer/dir/a%20b.txt",
		"KTT+lwgoZ9K04i3uIx8CwVfyk3TqpSlBmJcMXrCmeLY=",
	},
	{
		"5", geo.Blob, "SharedKey", "GET /mycontainer?comp=list&include=metadata%2Csnapshots&prefix=dir%2Fa%20b&restype=container", hostBlob,
		[]string{clientID, msDate, "x-ms-version: 2025-05-05"},
		"GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:c0ffee00-0000-4000-8000-000000000001\nx-ms-date:Wed, 23 Oct 2013 22:05:54 GMT\nx-ms-version:2025-05-05\n/devstoreaccount1/mycontainer\ncomp:list\ninclude:metadata,snapshots\nprefix:dir/a b\nrestype:container",
		"WC6wfyqfw7ELej0URFdmxH+CZpod9EFfXeuj8zHifrI=",
	},
	{
		"6a", geo.Queue, "SharedKey", "PUT /devstoreaccount1/myqueue", hostPathStyle,
		[]string{msDate, "x-ms-version: 2014-02-14", "Content-Length: 0"},
		"PUT\n\n\n0\n\n\n\n\n\n\n\n\nx-ms-date:Wed, 23 Oct 2013 22:05:54 GMT\nx-ms-version:2014-02-14\n/devstoreaccount1/devstoreaccount1/myqueue",
		"dpuAq3k8IgMX9jIMI/7YrWJhQhYYAGZnS1rZxdR6C6s=",
	},
	{
		"6b", geo.Queue, "SharedKey", "PUT /devstoreaccount1/myqueue", hostPathStyle,
		[]string{msDate, "x-ms-version: 2015-02-21", "Content-Length: 0"},
		"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Wed, 23 Oct 2013 22:05:54 GMT\nx-ms-version:2015-02-21\n/devstoreaccount1/devstoreaccount1/myqueue",
		"rw1sCsl33LXC4kguMjGm51f2nYvoDcxY5JQ7evoMfrA=",
	},
	{
		"7", geo.Blob, "SharedKey", "GET /mycontainer/blob1.txt?timeout=30", hostBlob,
		[]string{"Date: " + testDate, "Range: bytes=0-1023", "x-ms-version: 2009-09-19"},
		"GET\n\n\n\n\n\nWed, 23 Oct 2013 22:05:54 GMT\n\n\n\n\nbytes=0-1023\nx-ms-version:2009-09-19\n/devstoreaccount1/mycontainer/blob1.txt\ntimeout:30",
		"+dwcgGG1M3FLReE0yHAhE0r+V7ikzQoJq5v2x7Evm30=",
	},
	{
		"8a", geo.Queue, "SharedKeyLite", "GET /devstoreaccount1/myqueue?comp=metadata", hostPathStyle,
		[]string{msDate, "x-ms-version: 2013-08-15"},
		"GET\n\n\n\nx-ms-date:Wed, 23 Oct 2013 22:05:54 GMT\nx-ms-version:2013-08-15\n/devstoreaccount1/devstoreaccount1/myqueue?comp=metadata",
		"RUbdmi1Ym0B9qUVBDoSSkkGHlBc6P+KhTg6RTTLyQ/s=",
	},
	{
		"8b", geo.Blob, "SharedKey", "PUT /mycontainer/blob1.txt", hostBlob,
		[]string{msDate, "x-ms-version: 2009-07-17", "x-ms-meta-m1: v1", "Content-Type: text/plain"},
		"PUT\n\ntext/plain\n\nx-ms-date:Wed, 23 Oct 2013 22:05:54 GMT\nx-ms-meta-m1:v1\nx-ms-version:2009-07-17\n/devstoreaccount1/mycontainer/blob1.txt",
		"5rNdssKHDpncYOrP/5Tv+rML3+QDbVRHUjkRhKdU1Ac=",
	},
	{
		"9a", geo.Table, "SharedKeyLite", "GET /devstoreaccount1/mytable(PartitionKey='p1',RowKey='r%201')", hostPathStyle,
		[]string{msDate},
		"Wed, 23 Oct 2013 22:05:54 GMT\n/devstoreaccount1/devstoreaccount1/mytable(PartitionKey='p1',RowKey='r%201')",
		"WPaIOxXYv2/IprTwiuklQ3faorUnaTvBfnJs/e73uhc=",
	},
	{
		"9b", geo.Table, "SharedKeyLite", "GET /?comp=stats&restype=service", hostTableSec,
		[]string{msDate},
		"Wed, 23 Oct 2013 22:05:54 GMT\n/devstoreaccount1/?comp=stats",
		"ncD7khcmo+zKfRlPPGKLIfriKdKTvE/S+TJAfOXBLAw=",
	},
	{
		"9c", geo.Table, "SharedKey", "GET /devstoreaccount1/mytable(PartitionKey='p1',RowKey='r%201')", hostPathStyle,
		[]string{msDate},
		"GET\n\n\nWed, 23 Oct 2013 22:05:54 GMT\n/devstoreaccount1/devstoreaccount1/mytable(PartitionKey='p1',RowKey='r%201')",
		"RZq6IRt/gvvzcpUxZaDJIfFx9J2tI+aDI03t/4ux1so=",
	},
	{
		"9d", geo.Table, "SharedKey", "POST /$batch", hostTable,
		[]string{msDate, "Content-Type: multipart/mixed; boundary=batch_a1e9d677-b28b-435e-a89e-87e6a768a431"},
		"POST\n\nmultipart/mixed; boundary=batch_a1e9d677-b28b-435e-a89e-87e6a768a431\nWed, 23 Oct 2013 22:05:54 GMT\n/devstoreaccount1/$batch",
		"mmPCjYT2dfxqL8YJTLTAbb2yMsRYET/YHE0exQqfQD4=",
	},
}

// read parses raw request text as the server does.
func read(t testing.TB, line, host string, headers ...string) *http.Request {
	t.Helper()
	text := line + " HTTP/1.1\r\nHost: " + host + "\r\n" + strings.Join(headers, "\r\n")
	if len(headers) > 0 {
		text += "\r\n"
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text + "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// request builds the request of a vector with its Authorization header.
func (v vector) request(t testing.TB) *http.Request {
	t.Helper()
	r := read(t, v.line, v.host, v.headers...)
	r.Header.Set("Authorization", v.scheme+" "+testAccount+":"+v.sig)
	return r
}

// The published signatures verify, each over exactly the published string, which
// is the first candidate or the variant the row is about.
func TestVectors(t *testing.T) {
	ways := map[string]variant{"3b": noSuffix, "4b": byteSorted}
	key := testKey(t)
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			r := v.request(t)
			a, err := parseAuthorization(r.Header.Get("Authorization"))
			if err != nil {
				t.Fatal(err)
			}
			target, err := protocol.ParseTarget(v.service, "http", r.Host, r.RequestURI, hostZones...)
			if err != nil {
				t.Fatal(err)
			}
			q, err := protocol.ParseQuery(target.RawQuery)
			if err != nil {
				t.Fatal(err)
			}
			m := messageOf(r, target, q, protocol.Version(r.Header.Get("x-ms-version")), a.scheme)
			var c canonicalizer
			sts := c.append(nil, &m, ways[v.name])
			if string(sts) != v.sts {
				t.Errorf("string to sign\n got %q\nwant %q", sts, v.sts)
			}
			var sum [sha256.Size]byte
			new(macState).sum(&sum, key, sts)
			if got := base64.StdEncoding.EncodeToString(sum[:]); got != v.sig {
				t.Errorf("signature %s, want %s", got, v.sig)
			}
			verifier := testVerifier()
			for _, keys := range []Keys{{Key1: key}, {Key2: key}, {Key1: []byte("other"), Key2: key}} {
				if err := verify(verifier, v.request(t), v.service, keys); err != nil {
					t.Errorf("Verify with the key: %v", err)
				}
			}
			for _, keys := range []Keys{{}, {Key1: []byte{}}, {Key1: []byte("other"), Key2: key[1:]}} {
				wantFailed(t, verify(verifier, v.request(t), v.service, keys), "is not the same as any computed signature")
			}
		})
	}
}
