package protocol

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/storageerr"
)

// The blob of these tests was last written half a second after noon.
var (
	blobModified = geo.TimestampOf(time.Date(2026, 1, 2, 12, 0, 0, 500_000_000, time.UTC))
	blobTag      = wire.BlobETag(blobModified)
)

const (
	timeBefore = "Fri, 02 Jan 2026 11:59:59 GMT"
	timeSame   = "Fri, 02 Jan 2026 12:00:00 GMT"
	timeAfter  = "Fri, 02 Jan 2026 12:00:01 GMT"
	otherTag   = `"0x8DE0000000000000"`
)

// header makes a header of name, value pairs; "tag" stands for the blob's tag.
// Names: IM, INM, IMS, IUS.
func conditionHeader(pairs ...string) http.Header {
	names := map[string]string{"IM": headerIfMatch, "INM": headerIfNoneMatch, "IMS": headerIfModifiedSince, "IUS": headerIfUnmodifiedSince}
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(names[pairs[i]], strings.ReplaceAll(pairs[i+1], "tag", blobTag))
	}
	return h
}

// Reads: IM and IUS and (INM or IMS), with the errors of protocol/blob.md 16.4.
func TestReadConditions(t *testing.T) {
	bare := strings.Trim(blobTag, `"`)
	tests := []struct {
		version Version
		pairs   []string
		parse   error
		read    error
	}{
		{Newest, nil, nil, nil},
		{Newest, []string{"IM", "tag"}, nil, nil},
		{Newest, []string{"IM", bare}, nil, nil},
		{Newest, []string{"IM", "*"}, nil, nil},
		{Newest, []string{"IM", otherTag}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", otherTag + ", tag"}, nil, nil},
		{Newest, []string{"IM", otherTag, "IM", "tag"}, nil, nil},
		{Newest, []string{"IM", "W/tag"}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", strings.ToLower(blobTag)}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"INM", "tag"}, nil, storageerr.NotModified},
		{Newest, []string{"INM", "W/tag"}, nil, storageerr.NotModified},
		{Newest, []string{"INM", otherTag + " ,  tag"}, nil, storageerr.NotModified},
		{Newest, []string{"INM", otherTag}, nil, nil},
		{Newest, []string{"INM", "*"}, storageerr.UnsatisfiableCondition, nil},
		{Version20151211, []string{"INM", "*"}, nil, storageerr.NotModified},
		{Newest, []string{"IMS", timeBefore}, nil, nil},
		{Newest, []string{"IMS", timeSame}, nil, storageerr.NotModified},
		{Newest, []string{"IMS", timeAfter}, nil, storageerr.NotModified},
		{Newest, []string{"IMS", "Friday, 02-Jan-26 12:00:00 GMT"}, nil, storageerr.NotModified},
		{Newest, []string{"IUS", timeBefore}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IUS", timeSame}, nil, nil},
		{Newest, []string{"IUS", timeAfter}, nil, nil},
		// Mixes.
		{Newest, []string{"INM", "tag", "IMS", timeBefore}, nil, nil},
		{Newest, []string{"INM", otherTag, "IMS", timeAfter}, nil, nil},
		{Newest, []string{"INM", "tag", "IMS", timeAfter}, nil, storageerr.NotModified},
		{Newest, []string{"IM", "tag", "IUS", timeBefore}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", otherTag, "INM", "tag"}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", "tag", "INM", "tag"}, nil, storageerr.NotModified},
		{Newest, []string{"IM", "tag", "INM", otherTag, "IMS", timeAfter, "IUS", timeAfter}, nil, nil},
		// Before 2013-08-15 a read takes what a write takes.
		{Version20120212, []string{"INM", "tag", "IMS", timeBefore}, nil, storageerr.NotModified},
		{Version20120212, []string{"INM", otherTag, "IMS", timeAfter}, nil, nil},
		{Version20120212, []string{"IM", "tag", "IUS", timeBefore}, nil, nil},
		{Version20120212, []string{"IM", "tag", "INM", otherTag}, storageerr.MultipleConditions, nil},
		{Version20120212, []string{"IMS", timeBefore, "IUS", timeAfter}, storageerr.MultipleConditions, nil},
		{Version20120212, []string{"IM", "tag," + otherTag}, storageerr.MultipleConditions, nil},
		// Ill-formed.
		{Newest, []string{"INM", "nul"}, nil, nil},
		{Newest, []string{"INM", "null,"}, nil, nil},
		{Newest, []string{"INM", `"a`}, storageerr.InvalidHeaderValue, nil},
		{Newest, []string{"INM", `a"`}, storageerr.InvalidHeaderValue, nil},
		{Newest, []string{"INM", `"a"b`}, storageerr.InvalidHeaderValue, nil},
		{Newest, []string{"INM", `"a",`}, nil, nil},
		{Newest, []string{"INM", `tag,`}, nil, storageerr.NotModified},
		{Newest, []string{"INM", `W/a`}, storageerr.InvalidHeaderValue, nil},
		{Newest, []string{"INM", `not a date`}, storageerr.InvalidHeaderValue, nil},
		{Newest, []string{"INM", timeSame}, storageerr.InvalidHeaderValue, nil},
		{Newest, []string{"INM", "tag, a b"}, storageerr.InvalidHeaderValue, nil},
		{Newest, []string{"INM", `a b`, "IMS", timeAfter}, storageerr.InvalidHeaderValue, nil},
		{Newest, []string{"INM", `, tag,,`}, nil, storageerr.NotModified},
		{Newest, []string{"INM", ``, "INM", `tag`}, nil, storageerr.NotModified},
		// Text of an If-Match that is no tag of ours equals none; * may stand in a list.
		{Newest, []string{"IM", timeSame}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", "tag, " + timeSame}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", "null, null"}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", "NULL"}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", "tag" + "invalid"}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", bare + "invalid"}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", `"` + bare}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", bare + `"`}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", `"a"b, tag`}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", `tag,`}, nil, nil},
		{Newest, []string{"IM", `W/` + bare}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", bare + ` b`}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", "*,abc"}, nil, nil},
		{Newest, []string{"IM", otherTag + " , * , abc"}, nil, nil},
		{Newest, []string{"IM", otherTag, "IM", "*"}, nil, nil},
		{Newest, []string{"IM", `"*"`}, nil, storageerr.ConditionNotMet},
		{Newest, []string{"IM", "*", "INM", "tag"}, nil, storageerr.NotModified},
		{Version20120212, []string{"IM", "*,abc"}, storageerr.MultipleConditions, nil},
		{Newest, []string{"INM", `*, "a"`}, storageerr.UnsatisfiableCondition, nil},
		{Newest, []string{"INM", "*", "INM", "*"}, storageerr.UnsatisfiableCondition, nil},
		{Newest, []string{"IUS", timeSame, "IUS", timeSame}, storageerr.InvalidHeaderValue, nil},
		{Newest, []string{"IMS", "null", "IMS", timeAfter}, nil, storageerr.NotModified},
		{Newest, []string{"IMS", timeAfter, "IMS", "x"}, nil, storageerr.NotModified},
		{Newest, []string{"IMS", timeSame + ", " + timeSame}, storageerr.InvalidHeaderValue, nil},
		// What is no condition changes nothing beside one that is.
		{Newest, []string{"IM", "null", "INM", "tag"}, nil, storageerr.NotModified},
		{Newest, []string{"INM", "null", "IMS", timeAfter}, nil, storageerr.NotModified},
		{Newest, []string{"INM", "tag", "IMS", "null"}, nil, storageerr.NotModified},
		{Newest, []string{"IM", otherTag, "IUS", "null"}, nil, storageerr.ConditionNotMet},
		{Version20120212, []string{"IM", "null", "INM", "tag", "IUS", ""}, nil, storageerr.NotModified},
	}
	for _, tt := range tests {
		c, err := ParseReadConditions(conditionHeader(tt.pairs...), tt.version)
		if !errors.Is(err, tt.parse) || (err != nil) != (tt.parse != nil) {
			t.Errorf("%s %q: parse %v, want %v", tt.version, tt.pairs, err, tt.parse)
			continue
		}
		if got := c.Read(blobModified); !errors.Is(got, tt.read) {
			t.Errorf("%s %q: read %v, want %v", tt.version, tt.pairs, got, tt.read)
		}
		if c.IsZero() != (len(tt.pairs) == 0 || tt.parse != nil) {
			t.Errorf("%s %q: IsZero %v", tt.version, tt.pairs, c.IsZero())
		}
	}
}

// What is no condition is ignored by reads and writes: what is empty or null, and a date that cannot be parsed
// (RFC 9110 13.1.3, 13.1.4), once or more often, whatever stands beside it.
func TestNoConditions(t *testing.T) {
	all := []string{headerIfMatch, headerIfNoneMatch, headerIfModifiedSince, headerIfUnmodifiedSince}
	for value, names := range map[string][]string{
		"": all, " \t": all, "null": all, " null ": all, "undefined": all[2:], "0": all[2:], "yesterday": all[2:], "*": all[2:],
		"2026-01-02T12:00:00Z": all[2:], "Fri, 02 Jan 2026 12:00:00": all[2:], "Fri, 02 Jan 2026 12:00:00 CET": all[2:],
		"Fri, 32 Jan 2026 12:00:00 GMT": all[2:],
	} {
		h := http.Header{}
		for _, name := range names {
			for range 2 {
				h.Add(name, value)
				for _, v := range []Version{Version20120212, Newest} {
					if c, err := ParseReadConditions(h, v); err != nil || !c.IsZero() {
						t.Errorf("%s, %v: %+v %v", v, h, c, err)
					}
				}
				if c, err := ParseWriteConditions(h); err != nil || !c.IsZero() {
					t.Errorf("%v: %+v %v", h, c, err)
				}
				if m, err := ParseTableMatch("PUT", h); err != nil || m.Sent || ParseTableNoneMatch(h).Names(blobModified) {
					t.Errorf("%v: %+v %v", h, m, err)
				}
			}
		}
		for _, name := range all {
			if HasCondition(h, name) {
				t.Errorf("%s of %v", name, h)
			}
			if !HasCondition(http.Header{name: {value, timeSame}}, name) {
				t.Errorf("%s of %q and a date is no condition", name, value)
			}
		}
	}
}

// Writes: one condition or one pair whose tag decides alone; on an existing blob
// and on a missing one, for operations that create and for others.
func TestWriteConditions(t *testing.T) {
	met, not, exists := error(nil), error(storageerr.ConditionNotMet), error(storageerr.BlobAlreadyExists)
	tests := []struct {
		pairs []string
		// create and other are the results on an existing blob, missing on none.
		create, other, missing error
	}{
		{nil, met, met, met},
		{[]string{"IM", "tag"}, met, met, not},
		{[]string{"IM", otherTag}, not, not, not},
		{[]string{"IM", "*"}, met, met, not},
		{[]string{"IM", "W/tag"}, not, not, not},
		{[]string{"INM", "*"}, exists, not, met},
		{[]string{"INM", "tag"}, not, not, met},
		{[]string{"INM", otherTag}, met, met, met},
		{[]string{"IMS", timeBefore}, met, met, met},
		{[]string{"IMS", timeSame}, not, not, met},
		{[]string{"IUS", timeBefore}, not, not, met},
		{[]string{"IUS", timeSame}, met, met, met},
		{[]string{"IM", "tag", "IUS", timeBefore}, met, met, not},
		{[]string{"IM", otherTag, "IUS", timeAfter}, not, not, not},
		{[]string{"INM", "*", "IMS", timeBefore}, exists, not, met},
		{[]string{"INM", otherTag, "IMS", timeAfter}, met, met, met},
		// What is unset is no condition.
		{[]string{"IUS", "null"}, met, met, met},
		{[]string{"IMS", "null"}, met, met, met},
		{[]string{"INM", "null"}, met, met, met},
		{[]string{"INM", ""}, met, met, met},
		{[]string{"IM", "null"}, met, met, met},
		{[]string{"IM", ""}, met, met, met},
		{[]string{"IUS", "yesterday"}, met, met, met},
		{[]string{"IM", "null", "IUS", timeBefore}, not, not, met},
		{[]string{"IM", "null", "INM", "*"}, exists, not, met},
		{[]string{"INM", "*", "IMS", "x", "IUS", "x"}, exists, not, met},
		// Text that is no list of tags equals none.
		{[]string{"IM", timeSame}, not, not, not},
		{[]string{"IM", "tag, a b"}, not, not, not},
		{[]string{"IM", `"a`}, not, not, not},
		{[]string{"IM", ", tag,,"}, met, met, not},
		{[]string{"IM", "a b", "IM", ""}, not, not, not},
		{[]string{"INM", ", *"}, exists, not, met},
		{[]string{"IUS", "Fri, 2 Jan 2026 11:59:59 GMT"}, not, not, met},
		{[]string{"IM", "tag", "INM", "null", "IMS", "null", "IUS", ""}, met, met, not},
		{[]string{"INM", "*", "IUS", "null"}, exists, not, met},
	}
	for _, tt := range tests {
		c, err := ParseWriteConditions(conditionHeader(tt.pairs...))
		if err != nil {
			t.Errorf("%q: %v", tt.pairs, err)
			continue
		}
		if got := c.Write(true, true, blobModified); !errors.Is(got, tt.create) {
			t.Errorf("%q: creating over a blob %v, want %v", tt.pairs, got, tt.create)
		}
		if got := c.Write(false, true, blobModified); !errors.Is(got, tt.other) {
			t.Errorf("%q: changing a blob %v, want %v", tt.pairs, got, tt.other)
		}
		for _, creates := range []bool{true, false} {
			if got := c.Write(creates, false, 0); !errors.Is(got, tt.missing) {
				t.Errorf("%q: no blob, creates %v: %v, want %v", tt.pairs, creates, got, tt.missing)
			}
		}
	}
	for _, pairs := range [][]string{
		{"IM", "tag", "INM", "*"},
		{"IM", "tag", "IMS", timeSame},
		{"INM", "tag", "IUS", timeSame},
		{"IMS", timeSame, "IUS", timeSame},
		{"IM", "tag", "INM", "tag", "IMS", timeSame, "IUS", timeSame},
		{"IM", "tag," + otherTag},
		{"INM", "tag", "INM", otherTag},
		{"IM", "*, a b"},
	} {
		if _, err := ParseWriteConditions(conditionHeader(pairs...)); !errors.Is(err, storageerr.MultipleConditions) {
			t.Errorf("%q: %v, want MultipleConditions", pairs, err)
		}
	}
	for _, pairs := range [][]string{
		{"INM", "not a date"},
		{"INM", timeSame},
		{"INM", "*, a b"},
		{"INM", "a b", "INM", "*"},
		{"INM", `tag, "a" b`},
		{"IUS", timeSame, "IUS", timeSame},
		{"IUS", timeSame + "," + timeSame},
		{"IUS", timeSame + " , " + timeSame},
		{"IUS", "null, " + timeSame},
		{"IUS", timeSame + ", null"},
		{"IMS", ", " + timeSame},
		{"IUS", "Fri Jan  2 12:00:00 2026, x"},
		{"IUS", "x,Fri Jan  2 12:00:00 2026"},
	} {
		h := conditionHeader(pairs...)
		sent := h.Clone()
		if _, err := ParseWriteConditions(h); !errors.Is(err, storageerr.InvalidHeaderValue) {
			t.Errorf("%q: %v, want InvalidHeaderValue", pairs, err)
		}
		require.Equal(t, sent, h)
	}
}

// What is ignored stays in the request, whose headers others read too.
func TestConditionsLeaveHeaders(t *testing.T) {
	h := http.Header{"If-Match": {"null", "a", ""}, "If-Modified-Since": {"x", timeSame}}
	sent := h.Clone()
	_, err := ParseReadConditions(h, Newest)
	require.NoError(t, err)
	require.True(t, HasCondition(h, "If-Match"))
	require.Equal(t, sent, h)
}

// Table If-Match takes one weak tag or *, compared after percent-decoding
// (protocol/table.md 10.2).
func TestTableMatch(t *testing.T) {
	ts := blobModified
	tag := wire.TableETag(ts)
	tests := []struct {
		method, ifMatch, ifNoneMatch string // "-" for none
		bad                          bool
		sent, any, same, later       bool
	}{
		{"PUT", "-", "-", false, false, false, true, true},
		{"PUT", "*", "-", false, true, true, true, true},
		{"PUT", tag, "-", false, true, false, true, false},
		{"MERGE", strings.ReplaceAll(tag, "%3A", ":"), "-", false, true, false, true, false},
		{"DELETE", `W/"abc"`, "-", false, true, false, false, false},
		{"DELETE", `W/""`, "-", false, true, false, false, false},
		{"DELETE", `W/"%zz"`, "-", false, true, false, false, false},
		{"PUT", `"abc"`, "-", true, false, false, false, false},
		{"PUT", `abc`, "-", true, false, false, false, false},
		{"PUT", ``, "-", false, false, false, true, true},
		{"PUT", `null`, "-", false, false, false, true, true},
		{"PUT", `null`, tag, true, false, false, false, false},
		{"MERGE", `null`, tag, false, false, false, true, true},
		{"DELETE", tag, "null", false, true, false, true, false},
		{"PUT", "-", "", false, false, false, true, true},
		{"PUT", "null", "null", false, false, false, true, true},
		{"PUT", `W/"a`, "-", true, false, false, false, false},
		{"PUT", `W/`, "-", true, false, false, false, false},
		{"PUT", tag + ", " + tag, "-", true, false, false, false, false},
		{"PUT", "-", tag, true, false, false, false, false},
		{"DELETE", "-", "*", true, false, false, false, false},
		{"MERGE", tag, tag, true, false, false, false, false},
		{"GET", "-", tag, false, false, false, true, true},
	}
	for _, tt := range tests {
		h := http.Header{}
		if tt.ifMatch != "-" {
			h.Set("If-Match", tt.ifMatch)
		}
		if tt.ifNoneMatch != "-" {
			h.Set("If-None-Match", tt.ifNoneMatch)
		}
		m, err := ParseTableMatch(tt.method, h)
		if (err != nil) != tt.bad {
			t.Errorf("%s %q %q: %v", tt.method, tt.ifMatch, tt.ifNoneMatch, err)
		}
		if e, ok := storageerr.Of(err); tt.bad && (!ok || e.Code != "InvalidInput" || e.Status != 400) {
			t.Errorf("%s %q: %v, want InvalidInput", tt.method, tt.ifMatch, err)
		}
		if !tt.bad && (m.Sent != tt.sent || m.Any != tt.any || m.Holds(ts) != tt.same || m.Holds(ts+1) != tt.later) {
			t.Errorf("%s %q: %+v", tt.method, tt.ifMatch, m)
		}
	}
	h := http.Header{"If-Match": {tag, tag}}
	if _, err := ParseTableMatch("PUT", h); err == nil {
		t.Error("two If-Match lines were accepted")
	}
	_, err := ParseTableMatch("PUT", http.Header{"If-Match": {`"x"`}})
	if want := `The etag value '"x"' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.`; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("message %v", err)
	}
}

// The If-None-Match of a table's read: any form in which a client may hold the tag, and
// none of another entity's.
func TestTableNoneMatch(t *testing.T) {
	ts, ok := wire.ParseTableETag(`W/"datetime'2008-10-01T15%3A27%3A34.4838174Z'"`)
	if !ok {
		t.Fatal("not a tag")
	}
	for value, want := range map[string]bool{
		"*": true,
		`W/"datetime'2008-10-01T15%3A27%3A34.4838174Z'"`:        true,
		`W/"datetime'2008-10-01T15%3a27%3a34.4838174Z'"`:        true,
		`W/"datetime'2008-10-01T15:27:34.4838174Z'"`:            true,
		`W/"datetime%272008-10-01T15%3A27%3A34.4838174Z%27"`:    true,
		`"datetime'2008-10-01T15:27:34.4838174Z'"`:              true,
		`W/"x", W/"datetime'2008-10-01T15%3A27%3A34.4838174Z'"`: true,
		`W/"datetime'2008-10-01T15%3A27%3A34.4838175Z'"`:        false,
		`W/"0x5B168C7B6E589D2"`:                                 false,
		`W/"datetime'2008-10-01T15:27:34.4838174Z'`:             false,
		"": false, "null": false, "W/": false, `"`: false, "**": false, `W/"%zz"`: false,
	} {
		if got := ParseTableNoneMatch(http.Header{"If-None-Match": {value}}).Names(ts); got != want {
			t.Errorf("%s: %v", value, got)
		}
	}
	if ParseTableNoneMatch(http.Header{}).Names(ts) {
		t.Error("no header matches")
	}
}
