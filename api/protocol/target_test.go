package protocol

import (
	"crypto/tls"
	"errors"
	"net/http"
	"testing"

	"antipode/geo"
	"antipode/services/storageerr"
)

// A target is what Host and request line say, with no byte of the path changed.
func TestParseTarget(t *testing.T) {
	tests := []struct {
		host, uri string
		want      Target
	}{
		// Host style.
		{"acct.table.localhost:10002", "/T(PartitionKey='a%2Fb',RowKey='+')?$filter=x", Target{
			Service: geo.Table, Account: "acct",
			RawPath: "/T(PartitionKey='a%2Fb',RowKey='+')", Resource: "/T(PartitionKey='a%2Fb',RowKey='+')",
			RawQuery: "$filter=x", Base: "http://acct.table.localhost:10002/",
		}},
		{"acct-secondary.blob.zone", "//c/../b/", Target{
			Service: geo.Blob, Account: "acct", Secondary: true,
			RawPath: "//c/../b/", Resource: "//c/../b/", Base: "http://acct-secondary.blob.zone/",
		}},
		{"Acct.Queue.Zone.", "/", Target{
			Service: geo.Queue, Account: "acct", RawPath: "/", Resource: "/", Base: "http://Acct.Queue.Zone./",
		}},
		{"acct.blob:1", "/c?", Target{Service: geo.Blob, Account: "acct", RawPath: "/c", Resource: "/c", Base: "http://acct.blob:1/"}},
		// Absolute form; an empty path is the root.
		{"ignored", "http://acct.queue.x?comp=list", Target{
			Service: geo.Queue, Account: "acct", RawPath: "/", Resource: "/", RawQuery: "comp=list", Base: "http://acct.queue.x/",
		}},
		{"ignored", "HTTPS://127.0.0.1:10001/acct/q?a=b?c", Target{
			Service: geo.Table, Account: "acct", PathStyle: true,
			RawPath: "/acct/q", Resource: "/q", RawQuery: "a=b?c", Base: "https://127.0.0.1:10001/acct/",
		}},
		// Path style.
		{"127.0.0.1:10002", "/devstoreaccount1", Target{
			Service: geo.Table, Account: "devstoreaccount1", PathStyle: true,
			RawPath: "/devstoreaccount1", Base: "http://127.0.0.1:10002/devstoreaccount1/",
		}},
		{"localhost", "/acct-secondary/T()?x", Target{
			Service: geo.Table, Account: "acct", PathStyle: true, Secondary: true,
			RawPath: "/acct-secondary/T()", Resource: "/T()", RawQuery: "x", Base: "http://localhost/acct-secondary/",
		}},
		{"[::1]:10002", "/acct//", Target{
			Service: geo.Table, Account: "acct", PathStyle: true, RawPath: "/acct//", Resource: "//", Base: "http://[::1]:10002/acct/",
		}},
		{"antipode", "/acct/", Target{
			Service: geo.Table, Account: "acct", PathStyle: true, RawPath: "/acct/", Resource: "/", Base: "http://antipode/acct/",
		}},
		// A foreign name with dots has the account in the path too.
		{"storage.example.com", "/acct/T", Target{
			Service: geo.Table, Account: "acct", PathStyle: true, RawPath: "/acct/T", Resource: "/T", Base: "http://storage.example.com/acct/",
		}},
		{".blob.x", "/acct", Target{Service: geo.Table, Account: "acct", PathStyle: true, RawPath: "/acct", Base: "http://.blob.x/acct/"}},
		// Names that are none are reported as addressed.
		{"acct-secondary-secondary.table.x", "/", Target{
			Service: geo.Table, Account: "acct-secondary", Secondary: true, RawPath: "/", Resource: "/", Base: "http://acct-secondary-secondary.table.x/",
		}},
		{"localhost", "/%61cct/T", Target{
			Service: geo.Table, Account: "%61cct", PathStyle: true, RawPath: "/%61cct/T", Resource: "/T", Base: "http://localhost/%61cct/",
		}},
	}
	for _, tt := range tests {
		got, err := ParseTarget(geo.Table, "http", tt.host, tt.uri)
		if err != nil || got != tt.want {
			t.Errorf("%s %s: %v\n got %+v\nwant %+v", tt.host, tt.uri, err, got, tt.want)
		}
	}
}

// What names no account answers 400 and nothing else.
func TestParseTargetBad(t *testing.T) {
	tests := []struct {
		host, uri string
		want      storageerr.Row
	}{
		{"", "/acct", storageerr.NoHostInformation},
		{"localhost", "/", storageerr.InvalidURI},
		{"localhost", "//acct", storageerr.InvalidURI},
		{"localhost", "*", storageerr.InvalidURI},
		{"localhost", "", storageerr.InvalidURI},
		{"localhost", "?comp=list", storageerr.InvalidURI},
		{"localhost", "acct/T", storageerr.InvalidURI},
		{"localhost", "ftp://a.table.x/", storageerr.InvalidURI},
		{"localhost", "http:///acct", storageerr.InvalidURI},
		{"localhost", "http://user@a.table.x/", storageerr.InvalidURI},
		{"localhost", "http://127.0.0.1", storageerr.InvalidURI},
		{"a.table.x\"", "/", storageerr.InvalidURI},
		{"a.table.x", "/a b", storageerr.InvalidURI},
		{"a.table.x", "/a\x7f", storageerr.InvalidURI},
		{"a.table.x", "/a?\n", storageerr.InvalidURI},
	}
	for _, tt := range tests {
		if _, err := ParseTarget(geo.Table, "http", tt.host, tt.uri); !errors.Is(err, tt.want) {
			t.Errorf("%q %q: %v, want %v", tt.host, tt.uri, err, tt.want)
		}
	}
}

// Behind TLS the base says https.
func TestTargetOf(t *testing.T) {
	r := &http.Request{Host: "acct.table.x", RequestURI: "/T", TLS: &tls.ConnectionState{}}
	if got, err := TargetOf(r, geo.Table); err != nil || got.Base != "https://acct.table.x/" {
		t.Errorf("base %q, %v", got.Base, err)
	}
}
