package protocol

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"antipode/geo"
	"antipode/services/storageerr"
)

// A target holds the bytes it was cut from: path and query put together are the
// request target again.
func FuzzParseTarget(f *testing.F) {
	for _, s := range [][2]string{
		{"acct.table.localhost:10002", "/T(PartitionKey='a')?x=y"},
		{"127.0.0.1:10000", "/acct-secondary/c//b"},
		{"[::1]", "/a?"},
		{"x", "http://a.blob.y?comp=list"},
		{"", "*"},
		{"localhost", "//"},
		{".blob.", "/a"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, host, uri string) {
		got, err := ParseTarget(geo.Queue, "http", host, uri, testZones...)
		if err != nil {
			if got != (Target{}) {
				t.Fatalf("an error and a target: %+v", got)
			}
			return
		}
		if !strings.HasPrefix(got.RawPath, "/") || !strings.HasSuffix(got.RawPath, got.Resource) ||
			got.Resource != "" && got.Resource[0] != '/' || !strings.HasSuffix(got.Base, "/") {
			t.Fatalf("%q %q: %+v", host, uri, got)
		}
		if strings.HasPrefix(uri, "/") {
			whole := got.RawPath
			if strings.Contains(uri, "?") {
				whole += "?" + got.RawQuery
			}
			if whole != uri {
				t.Fatalf("%q became %q", uri, whole)
			}
		}
		if got.PathStyle {
			segment := string(got.Account)
			if got.Secondary {
				segment += geo.SecondarySuffix
			}
			if got.RawPath != "/"+segment+got.Resource || !strings.HasSuffix(got.Base, "/"+segment+"/") {
				t.Fatalf("%q %q: %+v", host, uri, got)
			}
		} else if got.Resource != got.RawPath {
			t.Fatalf("%q %q: %+v", host, uri, got)
		}
	})
}

// The query parser agrees with net/url part by part, but for the semicolon.
func FuzzParseQuery(f *testing.F) {
	for _, s := range []string{"a=b&c", "$filter=x+eq+%27%2B%27", "%zz", "&&=", "A=1&a=2", "include=a&include=b", "include=a&include", "a=%", "odata=a;b", "%4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := ParseQuery(raw)
		var want []Param
		bad := false
		for part := range strings.SplitSeq(raw, "&") {
			if part == "" {
				continue
			}
			rawName, rawValue, _ := strings.Cut(part, "=")
			name, err1 := url.QueryUnescape(rawName)
			value, err2 := url.QueryUnescape(rawValue)
			bad = bad || err1 != nil || err2 != nil
			for _, p := range want {
				same := lowerASCII(p.Name) == lowerASCII(name)
				bad = bad || same && (lowerASCII(name) != "include" || p.Value == "" || value == "")
			}
			want = append(want, Param{name, value})
		}
		bad = bad || len(want) > queryParametersMax
		if (err != nil) != bad {
			t.Fatalf("%q: %v, twin says bad is %v", raw, err, bad)
		}
		if bad {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("%q: %q, want %q", raw, got, want)
		}
		for i := range got {
			if got[i].Name != lowerASCII(want[i].Name) || got[i].Value != want[i].Value {
				t.Fatalf("%q: %q, want %q", raw, got, want)
			}
		}
	})
}

// A version that is accepted is a listed one, and the newest only for newer dates.
func FuzzEffective(f *testing.F) {
	for _, s := range []string{"2019-02-02", "2028-02-29", "2027-02-29", "", "9999-99-99"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Effective(s)
		if err != nil {
			return
		}
		if _, perr := time.Parse(time.DateOnly, s); perr != nil {
			t.Fatalf("%q was accepted and is no date", s)
		}
		if string(v) != s && (v != Newest || s < string(Newest)) {
			t.Fatalf("%q is served as %s", s, v)
		}
	})
}

// Conditions never panic and keep their promises: * needs a blob, a blob's own
// tag matches, and what is refused leaves nothing behind.
func FuzzConditions(f *testing.F) {
	f.Add(`"0x8D"`, "*", timeSame, "", "2019-02-02")
	f.Add("*", `W/"a", b`, "", timeAfter, "2012-02-12")
	f.Add(`"a,b"`, "", "x", "", "")
	f.Fuzz(func(t *testing.T, im, inm, ims, ius, version string) {
		h := http.Header{}
		for name, value := range map[string]string{
			headerIfMatch: im, headerIfNoneMatch: inm, headerIfModifiedSince: ims, headerIfUnmodifiedSince: ius,
		} {
			if value != "" {
				h.Set(name, value)
			}
		}
		read, err := ParseReadConditions(h, Version(version))
		if err != nil && !read.IsZero() {
			t.Fatal("an error and conditions")
		}
		_ = read.Read(blobModified)
		write, err := ParseWriteConditions(h)
		if err != nil {
			if !write.IsZero() {
				t.Fatal("an error and conditions")
			}
			return
		}
		if HasCondition(h, headerIfMatch) && write.Write(true, false, 0) == nil {
			t.Fatalf("If-Match %q holds without a blob", im)
		}
		if HasCondition(h, headerIfNoneMatch) && write.Write(true, false, 0) != nil {
			t.Fatalf("If-None-Match %q fails without a blob", inm)
		}
		if im == blobTag && write.Write(false, true, blobModified) != nil {
			t.Fatal("the blob's own tag does not match")
		}
		m, err := ParseTableMatch("MERGE", h)
		if err == nil && m.Sent && m.Holds(0) && !m.Any {
			t.Fatalf("If-Match %q holds for no entity", im)
		}
	})
}

// The match of a table request is an error of the protocol or a condition that holds
// for what it names alone: a weak tag of ours is found again whatever its escaping.
func FuzzParseTableMatch(f *testing.F) {
	for _, s := range []string{"*", `W/"datetime'2008-10-01T15%3A27%3A34.4838174Z'"`, `W/"a"`, `"a"`, `W/"a",W/"b"`, ""} {
		f.Add("PUT", s, "")
		f.Add("MERGE", s, "*")
	}
	f.Fuzz(func(t *testing.T, method, match, none string) {
		h := http.Header{headerIfMatch: {match}}
		if none != "" {
			h[headerIfNoneMatch] = []string{none}
		}
		m, err := ParseTableMatch(method, h)
		if err != nil {
			if e, known := storageerr.Of(err); !known || e.Status != http.StatusBadRequest {
				t.Fatalf("%q: %v", match, err)
			}
			return
		}
		if sent := HasCondition(h, headerIfMatch); m.Sent != sent || sent && HasCondition(h, headerIfNoneMatch) {
			t.Fatalf("%q beside %q is taken for %+v", match, none, m)
		}
		if m.Timestamp != 0 && (!m.Holds(m.Timestamp) || m.Holds(m.Timestamp+1)) {
			t.Fatalf("%q is %+v", match, m)
		}
	})
}

// An id that is echoed is the one that was sent, short and printable.
func FuzzClientRequestID(f *testing.F) {
	f.Add("c0ffee00-0000-4000-8000-000000000001")
	f.Add("a\tb")
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := ClientRequestID(http.Header{headerClientRequestID: {s}})
		if ok && (id != s || len(id) > clientRequestIDMax || strings.ContainsAny(id, "\r\n\t\x00")) {
			t.Fatalf("%q is echoed as %q", s, id)
		}
	})
}
