package protocol

import (
	"errors"
	"strings"
	"testing"

	"antipode/geo"
	"antipode/services/storageerr"
)

// testZones are those of the tests' host-style names.
var testZones = []geo.Zone{geo.LocalZone, "zone", "x", "storage.example"}

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
		{"acct.blob.storage.example:1", "/c?", Target{
			Service: geo.Blob, Account: "acct", RawPath: "/c", Resource: "/c", Base: "http://acct.blob.storage.example:1/",
		}},
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
		{"localhost", "/acct-drill/T()", Target{
			Service: geo.Table, Account: "acct", PathStyle: true, Clone: true,
			RawPath: "/acct-drill/T()", Resource: "/T()", Base: "http://localhost/acct-drill/",
		}},
		{"acct-drill.blob.zone", "/c", Target{
			Service: geo.Blob, Account: "acct", Clone: true, RawPath: "/c", Resource: "/c", Base: "http://acct-drill.blob.zone/",
		}},
		{"localhost", "/acct-drill-secondary/T", Target{ // No account has such a name.
			Service: geo.Table, Account: "acct-drill", PathStyle: true, Secondary: true,
			RawPath: "/acct-drill-secondary/T", Resource: "/T", Base: "http://localhost/acct-drill-secondary/",
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
		got, err := ParseTarget(geo.Table, "http", tt.host, tt.uri, testZones...)
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
		if _, err := ParseTarget(geo.Table, "http", tt.host, tt.uri, testZones...); !errors.Is(err, tt.want) {
			t.Errorf("%q %q: %v, want %v", tt.host, tt.uri, err, tt.want)
		}
	}
}

// Host style is taken under the configured zones and nowhere else: a request that was
// signed for the account in its path is never taken for one of an account in a foreign
// name, and a machine may be called store.queue.svc.
func TestHostStyleZones(t *testing.T) {
	const zone, nested = geo.Zone("storage.example"), geo.Zone("blob.storage.example")
	tests := []struct {
		host    string
		zones   []geo.Zone
		account geo.Account // Of host style; empty for path style.
		service geo.Service
	}{
		{"acct.blob.storage.example", []geo.Zone{zone}, "acct", geo.Blob},
		{"ACCT.Blob.Storage.EXAMPLE.:443", []geo.Zone{zone}, "acct", geo.Blob},
		{"acct-secondary.queue.storage.example", []geo.Zone{"other", zone}, "acct", geo.Queue},
		{"acct.table.localhost:10002", []geo.Zone{geo.LocalZone}, "acct", geo.Table},
		{"acct.blob.storage.example:", []geo.Zone{zone}, "acct", geo.Blob},
		// Names have as many labels as they must, so nested zones do not make two of one.
		{"acct.queue.blob.storage.example", []geo.Zone{zone, nested}, "acct", geo.Queue},
		{"acct.blob.storage.example", []geo.Zone{zone, nested}, "acct", geo.Blob},

		{"acct.blob.storage.example", nil, "", 0},
		{"devstoreaccount1.blob.evil", []geo.Zone{zone, geo.LocalZone}, "", 0},
		{"store.queue.svc", []geo.Zone{geo.LocalZone}, "", 0},
		{"store.queue.svc.cluster.local:10001", []geo.Zone{zone, geo.LocalZone}, "", 0},
		{"acct.blob.storage.example.evil", []geo.Zone{zone}, "", 0},
		{"acct.blob.evil.storage.example", []geo.Zone{zone}, "", 0},
		{"a.acct.blob.storage.example", []geo.Zone{zone}, "", 0},
		{"acct.file.storage.example", []geo.Zone{zone}, "", 0},
		{"acct.blob.storage-example", []geo.Zone{zone}, "", 0},
		{"acct.blob.xstorage.example", []geo.Zone{zone}, "", 0},
		{"blob.storage.example", []geo.Zone{zone}, "", 0},
		{".blob.storage.example", []geo.Zone{zone}, "", 0},
		{"storage.example", []geo.Zone{zone}, "", 0},
		{"acct.blob", []geo.Zone{zone}, "", 0},
		{"acct.blob.", []geo.Zone{zone}, "", 0},
		{"acct.blob.storage.example..", []geo.Zone{zone}, "", 0},
		{"acct.blob..storage.example", []geo.Zone{zone}, "", 0},
		{"acct.blob.127.0.0.1:10000", []geo.Zone{zone}, "", 0},
		{"[::1]:10000", []geo.Zone{zone}, "", 0},
		{"[::1]", []geo.Zone{zone}, "", 0},
		{"[a.blob.storage.example]", []geo.Zone{zone}, "", 0},
	}
	for _, tt := range tests {
		got, err := ParseTarget(geo.Table, "http", tt.host, "/devstoreaccount1/c/b", tt.zones...)
		switch {
		case err != nil:
			t.Errorf("%s: %v", tt.host, err)
		case got.PathStyle != (tt.account == ""):
			t.Errorf("%s under %v: %+v", tt.host, tt.zones, got)
		case got.PathStyle && (got.Account != "devstoreaccount1" || got.Service != geo.Table || got.Resource != "/c/b"):
			t.Errorf("%s under %v: %+v", tt.host, tt.zones, got)
		case !got.PathStyle && (got.Account != tt.account || got.Service != tt.service || got.Resource != "/devstoreaccount1/c/b"):
			t.Errorf("%s under %v: %+v", tt.host, tt.zones, got)
		}
	}
}

// A client of a clone signs as the account that it knows, suffix included, so that nothing that is signed for the account, or
// for its secondary, is good for the clone. Suffixes in another order address no account that may exist.
func TestSignedAs(t *testing.T) {
	for label, want := range map[string]geo.Account{
		"acct": "acct", "acct-secondary": "acct", "acct-drill": "acct-drill",
		"acct-drill-secondary": "acct-drill", "acct-secondary-drill": "acct-secondary-drill", "acct-drill-drill": "acct-drill-drill",
	} {
		for _, at := range [][2]string{{"localhost", "/" + label + "/T"}, {label + ".table.zone", "/T"}} {
			got, err := ParseTarget(geo.Table, "http", at[0], at[1], testZones...)
			if err != nil || got.SignedAs() != want {
				t.Errorf("%v: signed as %q, %v", at, got.SignedAs(), err)
			}
			if strings.Count(label, "-") > 1 && got.Account.Valid() {
				t.Errorf("%v addresses account %s", at, got.Account)
			}
		}
	}
}

// What a URI in a body may name as its host: whatever a proxy may have changed, and no other account or service.
func TestTargetAdmits(t *testing.T) {
	for uri, hosts := range map[string]map[string]bool{
		"http://acct.table.zone/": {
			"": true, "h": true, "127.0.0.1:10002": true, "[::1]:10002": true, "data.example.com": true, "acct.table.core.windows.net": true,
			"ACCT.Table.x.:443": true, "acct.tables.core.windows.net": true, ".table.x": false, "..other.table.x": false, ".other.table.x": false, "other:80.table.x": false, "x.other:1.table.x": false, "[::1]": true, "[::1]:80": true, "tables.core.windows.net": true,
			"other.table.zone": false, "other.table.core.windows.net:443": false, "acct.blob.zone": false, "acct.queue.localhost:10001": false,
			"other-secondary.table.localhost": false, "acct-drill.table.zone": false, "other.table": false,
			// The secondary is another account to a write.
			"acct-secondary.table.zone": false, "ACCT-Secondary.Table.x.:443": false,
			// Labels may stand before the service.
			"acct.z12.table.zone": true, "acct.z12.privatelink.table.core.windows.net": true, "other.z12.table.core.windows.net": false,
			"other.privatelink.table.core.windows.net.:443": false, "other.a.b.c.Table.zone": false, "acct.z12.blob.zone": false,
			"acct-secondary.z12.table.zone": false, "acct.z12.queue.table.zone": false, "acct.acct.blob.table.zone": false,
			// What is before an @ is no host.
			"acct.table.zone@other.table.zone": false, "acct.table.zone#other": false, "acct.table.zone?": false, "a,b": false,
		},
		"http://proxy.table.corp:8080/acct/": {"proxy.table.corp:8080": true, "proxy.table.corp": false, "acct.table.x": true},
		"http://127.0.0.1/acct/":             {"acct.table.x": true, "acct-secondary.table.x": false},
		"http://127.0.0.1/acct-secondary/":   {"acct.table.x": true, "acct-secondary.table.x": true, "other.table.x": false},
		"http://acct-secondary.table.zone/":  {"acct.table.zone": true, "acct-secondary.table.x": true, "acct-secondary.z1.table.x": true},
		"http://acct-drill.table.zone/":      {"acct-drill.table.zone": true, "acct.table.zone": false},
	} {
		target, err := ParseTarget(geo.Table, "http", "", uri, "zone")
		if err != nil {
			t.Fatal(err)
		}
		for host, want := range hosts {
			if target.Admits(host) != want {
				t.Errorf("%s admits %q: want %v", uri, host, want)
			}
		}
	}
}

// In path style the account is cut from the path of a URI in a body, and the secondary's name is none for a request to the
// primary. In host style the path has no account.
func TestCutAccount(t *testing.T) {
	for uri, paths := range map[string]map[string]string{
		"http://127.0.0.1/acct/": {
			"acct/T": "T", "T": "T", "acct": "acct", "acct/": "", "": "", "acct/acct/T": "acct/T", "other/T": "other/T",
			"acct-drill/T": "acct-drill/T", "acct-secondary/T": "refused", "acct-secondary/": "refused",
		},
		"http://127.0.0.1/acct-secondary/": {"acct/T": "T", "acct-secondary/T": "T", "other-secondary/T": "other-secondary/T"},
		"http://127.0.0.1/acct-drill/":     {"acct-drill/T": "T", "acct/T": "acct/T"},
		"http://acct.table.zone/":          {"acct/T": "acct/T", "T": "T", "acct-secondary/T": "acct-secondary/T"},
	} {
		target, err := ParseTarget(geo.Table, "http", "", uri, "zone")
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range paths {
			rest, own := target.CutAccount("", path)
			if own != (want != "refused") || own && rest != want {
				t.Errorf("%s, %q: %q, %v", uri, path, rest, own)
			}
			if _, own := target.CutAccount("other.z1.table.zone", path); own {
				t.Errorf("%s owns %q of another account", uri, path)
			}
		}
	}
}
