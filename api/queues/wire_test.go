package queues

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"antipode/api/wire"
)

// What a version changed in answers (protocol/queue.md 3, 6.1, 8): the name of a queue in lists, DequeueCount, the answer
// to a put; and parameters that a version does not know.
func TestVersions(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 204, r.do("PUT", "/first?comp=metadata", "", "x-ms-meta-Color", "<red>").status)
	base := r.url + "/acct"
	const start, end = `<?xml version="1.0" encoding="utf-8"?><EnumerationResults `, `</Queues><NextMarker></NextMarker></EnumerationResults>`
	for version, want := range map[string]string{
		"2009-04-14": start + `AccountName="` + base + `"><Queues><Queue><QueueName>first</QueueName><Url>` + base + `/first</Url></Queue>` + end,
		"2012-02-12": start + `AccountName="` + base + `"><Queues><Queue><Name>first</Name><Url>` + base + `/first</Url></Queue>` + end,
		"2013-08-15": start + `ServiceEndpoint="` + base + `"><Queues><Queue><Name>first</Name></Queue>` + end,
		testVersion:  start + `ServiceEndpoint="` + base + `"><Queues><Queue><Name>first</Name></Queue>` + end,
	} {
		a := r.do("GET", "/?comp=list", "", "x-ms-version", version)
		require.Equal(t, want, a.body, version)
		require.Equal(t, []string{"Cache-Control", "Content-Length", "Content-Type"}, headersOf(a))
	}
	require.Contains(t, r.do("GET", "/?comp=list&include=metadata", "").body, "<Name>first</Name><Metadata><color>&lt;red&gt;</color></Metadata></Queue>")
	require.Equal(t, 201, r.do("PUT", "/old", "", "x-ms-version", "2009-04-14", "x-ms-meta-a-b", "1").status)
	require.Contains(t, r.do("GET", "/?comp=list&include=metadata&prefix=o", "").body, "<Metadata><x-ms-invalid-name>a-b</x-ms-invalid-name></Metadata>")

	for version, body := range map[string]bool{"2009-04-14": false, "2015-12-11": false, "2016-05-31": true, testVersion: true} {
		a := r.put("/first/messages", "x", "x-ms-version", version)
		require.Equal(t, 201, a.status)
		require.Equal(t, body, strings.Contains(a.body, "<PopReceipt>"), version)
	}
	for version, has := range map[string]bool{"2009-04-14": false, "2009-09-19": true, testVersion: true} {
		for _, path := range []string{"/first/messages?peekonly=true", "/first/messages"} {
			a := r.do("GET", path, "", "x-ms-version", version)
			require.Len(t, a.list(t), 1)
			require.Equal(t, has, strings.Contains(a.body, "<DequeueCount>"), "%s %s", version, path)
		}
	}
	// Before 2011-08-18 a put has no visibilitytimeout: it says nothing.
	require.Equal(t, 204, r.do("DELETE", "/first/messages", "").status)
	require.Equal(t, 201, r.put("/first/messages?visibilitytimeout=600", "x", "x-ms-version", "2009-09-19").status)
	require.Len(t, r.do("GET", "/first/messages", "").list(t), 1)
}

// The edges of the parameters are taken, and what they say shows in the times of the message (Q24).
func TestQ24Times(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	read := func(s string) time.Time {
		t.Helper()
		at, ok := wire.ParseHTTPTime(s)
		require.True(t, ok, s)
		return at
	}
	for _, c := range []struct {
		version, query string
		life, delay    time.Duration
	}{
		{testVersion, "", 7 * 24 * time.Hour, 0},
		{testVersion, "?messagettl=1", time.Second, 0},
		{testVersion, "?messagettl=2147483647&visibilitytimeout=604800", 2147483647 * time.Second, 7 * 24 * time.Hour},
		{"2017-07-29", "?messagettl=2147483648", 2147483648 * time.Second, 0},
		{testVersion, "?messagettl=9223372036", 9223372036 * time.Second, 0},
		{testVersion, "?visibilitytimeout=604799", 7 * 24 * time.Hour, 604799 * time.Second},
		{"2017-04-17", "?messagettl=604800&visibilitytimeout=5", 7 * 24 * time.Hour, 5 * time.Second},
	} {
		m := r.put("/first/messages"+c.query, "x", "x-ms-version", c.version).list(t)[0]
		inserted := read(m.InsertionTime)
		require.WithinDuration(t, inserted.Add(c.life), read(m.ExpirationTime), time.Second, c.query)
		require.WithinDuration(t, inserted.Add(c.delay), read(m.TimeNextVisible), time.Second, c.query)
	}
	require.Equal(t, 204, r.do("DELETE", "/first/messages", "").status)
	var m message
	for _, ttl := range []string{"922337203685", "9223372037", "18446744074", "99999999999999999999", "-1"} { // TimeSpan.MaxValue, and what no expiry can say.
		m = r.put("/first/messages?messagettl="+ttl, "x").list(t)[0]
		require.Equal(t, "Fri, 31 Dec 9999 23:59:59 GMT", m.ExpirationTime)
	}
	require.Equal(t, 204, r.do("DELETE", "/first/messages", "").status)
	m = r.put("/first/messages?messagettl=99999999999", "x").list(t)[0]
	a := r.do("PUT", named("first", m, "&visibilitytimeout=604800"), "")
	require.Equal(t, 204, a.status, a.body)
	require.WithinDuration(t, read(m.InsertionTime).Add(7*24*time.Hour), read(a.header.Get("x-ms-time-next-visible")), 5*time.Second)
	require.Empty(t, r.do("GET", "/first/messages?numofmessages=32&visibilitytimeout=604800", "").list(t))
	for range 33 {
		require.Equal(t, 201, r.put("/first/messages", "x").status)
	}
	require.Len(t, r.do("GET", "/first/messages?numofmessages=32&visibilitytimeout=604800", "").list(t), 32)
	require.Len(t, r.do("GET", "/first/messages?numofmessages=32&visibilitytimeout=7200", "", "x-ms-version", "2009-09-19").list(t), 1)
}

// A text comes back as it was, whatever it is made of and however it was written; a document that is longer than a
// window is complete.
func TestTexts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	all := []string{
		"", " ", " \t\n leading and trailing \n\t ", "a\rb\r\nc", "<&>\"'", "]]>", "&amp;lt;", "é\u0085\u2028\ufffd\U0001F600\U0010FFFF", "QUJD+/==",
		strings.Repeat("\r", 64<<10), strings.Repeat("\U0001F600", 16<<10), strings.Repeat("a\"é", 16<<10), strings.Repeat("€", 21<<10),
	}
	for _, text := range all {
		require.Equal(t, 201, r.put("/first/messages", string(wire.AppendXML(nil, text))).status)
	}
	for _, path := range []string{"/first/messages?peekonly=true&numofmessages=32", "/first/messages?numofmessages=32"} {
		got := r.do("GET", path, "").list(t)
		require.Len(t, got, len(all))
		for i, m := range got {
			require.True(t, all[i] == m.MessageText, "%.100q came back as %.100q", all[i], m.MessageText)
		}
	}
	// UTF-16 and CDATA are ways to write a text.
	wide := binary.BigEndian.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(`<?xml version="1.0" encoding="utf-16"?><QueueMessage><MessageText><![CDATA[<é>]]>&amp;</MessageText></QueueMessage>`)) {
		wide = binary.BigEndian.AppendUint16(wide, u)
	}
	require.Equal(t, 201, r.do("POST", "/first/messages", string(wide)).status)
	require.Equal(t, "<é>&", r.do("GET", "/first/messages", "").list(t)[0].MessageText)
}

// Pages of a listing: prefix, maxresults and marker, which shows the request again.
func TestListing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, name := range []string{"list-a", "list-b", "list-c", "other"} {
		r.create(name)
	}
	require.Equal(t, 204, r.do("DELETE", "/other", "").status)
	var names []string
	marker := ""
	for range 5 {
		a := r.do("GET", "/?comp=list&prefix=list-&maxresults=2&marker="+marker, "")
		require.Equal(t, 200, a.status, a.body)
		require.Contains(t, a.body, "><Prefix>list-</Prefix><Marker>"+marker+"</Marker><MaxResults>2</MaxResults><Queues>")
		for part := range strings.SplitSeq(a.body, "<Name>") {
			if name, _, is := strings.Cut(part, "</Name>"); is {
				names = append(names, name)
			}
		}
		_, rest, _ := strings.Cut(a.body, "<NextMarker>")
		if marker, _, _ = strings.Cut(rest, "</NextMarker>"); marker == "" {
			break
		}
	}
	require.Equal(t, []string{"list-a", "list-b", "list-c"}, names)
	require.Contains(t, r.do("GET", "/?comp=list&maxresults=99999", "").body, "<Name>list-c</Name></Queue></Queues><NextMarker></NextMarker>", "a deleted queue is not listed")
}
