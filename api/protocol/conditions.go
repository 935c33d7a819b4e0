package protocol

import (
	"net/http"
	"slices"
	"strings"

	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/storageerr"
)

// The condition headers in their canonical form.
const (
	headerIfMatch           = "If-Match"
	headerIfNoneMatch       = "If-None-Match"
	headerIfModifiedSince   = "If-Modified-Since"
	headerIfUnmodifiedSince = "If-Unmodified-Since"
)

// Conditions are the If-* headers of one blob request. The zero value holds
// always. A value is read only once parsed and may be shared.
//
// Both evaluations are the same formula, IM and IUS and (INM or IMS), where the
// bracket uses only what was sent. Where the protocol lets one header of a pair
// decide alone, parsing leaves the other one out.
type Conditions struct {
	match, noneMatch            tagList
	modifiedSince, unmodifiedAt instant
}

// tagList is an If-Match or If-None-Match header.
type tagList struct {
	sent bool
	// any is the value *, also as one of a list.
	any bool
	// tags are without quotes, in the order sent. Text that is no tag is one of
	// them, as it is: it equals none.
	tags []string
}

// instant is a date header, in seconds since 1970: Last-Modified has no finer
// resolution, so time conditions compare whole seconds.
type instant struct {
	sent bool
	unix int64
}

// ParseReadConditions reads the conditions of a GET or HEAD (protocol/blob.md 16.3).
// Several dates in one header are 400 InvalidHeaderValue, and so is text in If-None-Match that
// is no tag; in If-Match it equals none. If-None-Match: * is 400 UnsatisfiableCondition since
// 2016-05-31, and mixes that versions before 2013-08-15 do not know are 400
// MultipleConditionHeadersNotSupported.
func ParseReadConditions(h http.Header, v Version) (Conditions, error) {
	c, err := parseConditions(h)
	if err != nil {
		return Conditions{}, err
	}
	if c.noneMatch.any && v >= Version20160531 {
		return Conditions{}, storageerr.UnsatisfiableCondition
	}
	if v >= Version20130815 {
		return c, nil
	}
	return c.single()
}

// ParseWriteConditions reads the conditions of a write: one header, or one of the
// pairs If-None-Match with If-Modified-Since and If-Match with
// If-Unmodified-Since, where the tag decides alone. Any other mix, or several
// tags, is 400 MultipleConditionHeadersNotSupported.
func ParseWriteConditions(h http.Header) (Conditions, error) {
	c, err := parseConditions(h)
	if err != nil {
		return Conditions{}, err
	}
	return c.single()
}

// IsZero reports whether no condition was sent.
func (c Conditions) IsZero() bool {
	return !c.match.sent && !c.noneMatch.sent && !c.modifiedSince.sent && !c.unmodifiedAt.sent
}

// Read evaluates the conditions against the blob, snapshot or version that is
// read; modified is the commit that gave it its ETag and Last-Modified. A missing
// blob is 404 before any condition. Nil means go on; the errors are 412
// ConditionNotMet, or else 304 where only the not-modified half fails.
func (c Conditions) Read(modified geo.Timestamp) error {
	if !c.required(true, modified) {
		return storageerr.ConditionNotMet
	}
	if !c.changed(true, modified) {
		return storageerr.NotModified
	}
	return nil
}

// Write evaluates the conditions of a write. Creates reports that the operation
// makes the blob when it is missing (Put Blob, Put Blob From URL, Put Block List,
// Copy): for those If-None-Match: * on an existing blob is 409 BlobAlreadyExists.
// Every other unmet condition is 412 ConditionNotMet. Modified is not looked at
// when the blob does not exist. The caller holds the blob still until the write.
func (c Conditions) Write(creates, exists bool, modified geo.Timestamp) error {
	switch {
	case c.noneMatch.any && exists && creates:
		return storageerr.BlobAlreadyExists
	case !c.required(exists, modified), !c.changed(exists, modified):
		return storageerr.ConditionNotMet
	}
	return nil
}

// required is If-Match and If-Unmodified-Since.
func (c Conditions) required(exists bool, modified geo.Timestamp) bool {
	if c.match.sent && (!exists || !c.match.holds(modified)) {
		return false
	}
	return !c.unmodifiedAt.sent || !exists || seconds(modified) <= c.unmodifiedAt.unix
}

// changed is If-None-Match or If-Modified-Since; true when neither was sent.
func (c Conditions) changed(exists bool, modified geo.Timestamp) bool {
	if !exists || (!c.noneMatch.sent && !c.modifiedSince.sent) {
		return true
	}
	return c.noneMatch.sent && !c.noneMatch.holds(modified) ||
		c.modifiedSince.sent && seconds(modified) > c.modifiedSince.unix
}

// single applies the rule for requests that take one condition.
func (c Conditions) single() (Conditions, error) {
	if c.match.several() || c.noneMatch.several() {
		return Conditions{}, storageerr.MultipleConditions
	}
	if c.match.sent {
		c.unmodifiedAt = instant{}
	}
	if c.noneMatch.sent {
		c.modifiedSince = instant{}
	}
	n := 0
	for _, sent := range [...]bool{
		c.match.sent, c.noneMatch.sent, c.modifiedSince.sent, c.unmodifiedAt.sent,
	} {
		if sent {
			n++
		}
	}
	if n > 1 {
		return Conditions{}, storageerr.MultipleConditions
	}
	return c, nil
}

// several reports whether there is more than one value.
func (l tagList) several() bool { return len(l.tags) > 1 || l.any && len(l.tags) > 0 }

func (l tagList) holds(modified geo.Timestamp) bool {
	if l.any {
		return true
	}
	for _, tag := range l.tags {
		if sameBlobTag(tag, modified) {
			return true
		}
	}
	return false
}

func seconds(ts geo.Timestamp) int64 { return int64(ts / geo.TicksPerSecond) }

// parseConditions reads all four headers.
func parseConditions(h http.Header) (c Conditions, err error) {
	// A weak tag comes from a proxy that changed the encoding. It may answer "you
	// have this one already", but never admits a write.
	c.match, _ = parseTags(h, headerIfMatch, false)
	var ok bool
	if c.noneMatch, ok = parseTags(h, headerIfNoneMatch, true); !ok {
		return Conditions{}, wire.BadHeader(headerIfNoneMatch, h[headerIfNoneMatch]...)
	}
	if c.modifiedSince, err = parseInstant(h, headerIfModifiedSince); err != nil {
		return Conditions{}, err
	}
	c.unmodifiedAt, err = parseInstant(h, headerIfUnmodifiedSince)
	return c, err
}

// HasCondition reports whether a request has the condition of a header, in its canonical form: see conditionsIn.
func HasCondition(h http.Header, name string) bool { return len(conditionsIn(h, name)) > 0 }

// conditionsIn returns the values of a conditional header, in its canonical form, without those that are no condition and
// are ignored, on reads and writes: empty ones, null, which a client sends that has no value, and dates that cannot be
// parsed (RFC 9110 13.1.3, 13.1.4). Everything that looks at a conditional header looks here: to one part of the service
// the header must not be a condition that another part ignores.
func conditionsIn(h http.Header, name string) []string {
	values := h[name]
	ignored := func(value string) bool {
		value = strings.Trim(value, " \t")
		if value == "" || value == "null" {
			return true
		}
		if name != headerIfModifiedSince && name != headerIfUnmodifiedSince {
			return false
		}
		_, ok := wire.ParseHTTPTime(value)
		return !ok && !severalDates(value)
	}
	if !slices.ContainsFunc(values, ignored) {
		return values
	}
	return slices.DeleteFunc(slices.Clone(values), ignored)
}

// severalDates reports whether a value is a list with a date in it, which is refused and not ignored: a proxy makes one of
// two headers.
func severalDates(value string) bool {
	before, after, list := strings.Cut(value, ",")
	if !list {
		return false
	}
	_, first := wire.ParseHTTPTime(strings.Trim(before, " \t"))
	_, second := wire.ParseHTTPTime(strings.Trim(after, " \t"))
	return first || second || strings.Contains(after, ",") // A date has one comma at most.
}

// parseInstant reads the date of a header. Several are an error, also in one line.
func parseInstant(h http.Header, name string) (instant, error) {
	values := conditionsIn(h, name)
	if len(values) == 0 {
		return instant{}, nil
	}
	t, ok := wire.ParseHTTPTime(values[0])
	if !ok || len(values) > 1 {
		return instant{}, wire.BadHeader(name, values...)
	}
	return instant{sent: true, unix: t.Unix()}, nil
}

// parseTags reads If-Match or If-None-Match: a comma list of quoted or bare tags and *, in which empty members count for
// nothing (RFC 9110 5.6.1). A W/"tag" stands for the tag if weakEqual, and else keeps its W/ and so equals none. With
// text that is no tag, as a date has it, a list is one tag that equals none; ok reports that there is no such text.
func parseTags(h http.Header, name string, weakEqual bool) (l tagList, ok bool) {
	values := conditionsIn(h, name)
	l, ok = tagList{sent: len(values) > 0}, true
	for _, rest := range values {
		for more := true; more; {
			item, tail, comma := strings.Cut(rest, ",")
			if item = strings.Trim(item, " \t"); item == "" || item == "*" {
				l.any = l.any || item == "*"
				rest, more = tail, comma
				continue
			}
			tag, after, comma, isTag := cutTag(rest, weakEqual)
			if !isTag { // A date has a comma, and what is before it looks like a tag.
				l.tags, ok = []string{rest}, false
				break
			}
			l.tags = append(l.tags, tag)
			rest, more = after, comma
		}
	}
	return l, ok
}

// cutTag cuts the first tag of a list and the comma after it; more reports that
// there was one.
func cutTag(list string, weakEqual bool) (tag, rest string, more, ok bool) {
	list = strings.TrimLeft(list, " \t")
	opaque, weak := strings.CutPrefix(list, "W/")
	if weak || strings.HasPrefix(list, `"`) {
		inner, quoted := strings.CutPrefix(opaque, `"`)
		end := strings.IndexByte(inner, '"')
		if !quoted || end < 0 {
			return "", "", false, false
		}
		tag, rest = inner[:end], strings.TrimLeft(inner[end+1:], " \t")
		if weak && !weakEqual {
			tag = list[:len(list)-len(inner)+end]
		}
		rest, more = strings.CutPrefix(rest, ",")
		return tag, rest, more, more || rest == ""
	}
	tag, rest, more = strings.Cut(list, ",")
	tag = strings.TrimRight(tag, " \t")
	return tag, rest, more, tag != "" && !strings.ContainsAny(tag, "\"* \t")
}

// TableMatch is the If-Match header of a table request, as plain data.
type TableMatch struct {
	// Sent reports that there was a header; without one the write is an upsert or
	// unconditional, as its operation rules.
	Sent bool
	// Any is the value *: unconditional, but the entity must exist.
	Any bool
	// Timestamp is the version the tag names. Zero equals no entity: the tag was
	// well-formed but none of ours.
	Timestamp geo.Timestamp
}

// Holds reports whether an entity with this Timestamp satisfies the condition.
func (m TableMatch) Holds(ts geo.Timestamp) bool {
	return !m.Sent || m.Any || (m.Timestamp == ts && ts != 0)
}

// ParseTableMatch reads the conditions of a table request (protocol/table.md 10.2).
// If-Match takes one weak tag or *; a strong or bare tag or a list is 400 InvalidInput. So is an
// If-None-Match on PUT or DELETE, or beside If-Match. Time conditions are ignored.
func ParseTableMatch(method string, h http.Header) (TableMatch, error) {
	values := conditionsIn(h, headerIfMatch)
	sent := len(values) > 0
	if HasCondition(h, headerIfNoneMatch) && (sent || method == http.MethodPut || method == http.MethodDelete) {
		return TableMatch{}, storageerr.InvalidInput
	}
	if !sent {
		return TableMatch{}, nil
	}
	value := strings.Join(values, ",")
	if value == "*" {
		return TableMatch{Sent: true, Any: true}, nil
	}
	inner, weak := strings.CutPrefix(value, `W/"`)
	if !weak || strings.IndexByte(inner, '"') != len(inner)-1 {
		return TableMatch{}, storageerr.InvalidInput.Saying("The etag value '" + value +
			"' specified in one of the request headers is not valid. " +
			"Please make sure only one etag value is specified and is valid.")
	}
	ts, _ := wire.ParseTableETag(value)
	return TableMatch{Sent: true, Timestamp: ts}, nil
}

// TableNoneMatch is the If-None-Match of a table read, as plain data.
type TableNoneMatch struct{ list tagList }

// ParseTableNoneMatch reads the header (protocol/table.md 9.6). Text that is no tag names nothing.
func ParseTableNoneMatch(h http.Header) TableNoneMatch {
	list, _ := parseTags(h, headerIfNoneMatch, true)
	return TableNoneMatch{list}
}

// Names reports whether the header names an entity's version, or any: 304. Tags compare weakly
// and in any percent-encoding, as those of If-Match do (10.1).
func (m TableNoneMatch) Names(ts geo.Timestamp) bool {
	for _, tag := range m.list.tags {
		if got, ours := wire.ParseTableETag(`W/"` + tag + `"`); ours && got == ts {
			return true
		}
	}
	return m.list.any
}

// sameBlobTag reports whether tag, without quotes, is the tag of ts.
func sameBlobTag(tag string, ts geo.Timestamp) bool {
	var buf [24]byte
	b := wire.AppendBlobETag(buf[:0], ts)
	return string(b[1:len(b)-1]) == tag
}
