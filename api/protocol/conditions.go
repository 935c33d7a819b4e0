package protocol

import (
	"net/http"
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
	// any is the value *, of If-Match also as one of a list.
	any bool
	// tags are without quotes, in the order sent. Text of an If-Match that is no tag
	// stands as it is: it equals none.
	tags []string
}

// instant is a date header, in seconds since 1970: Last-Modified has no finer
// resolution, so time conditions compare whole seconds.
type instant struct {
	sent bool
	unix int64
}

// ParseReadConditions reads the conditions of a GET or HEAD (protocol/blob.md 16.3).
// A date that cannot be parsed is ignored, as HTTP has it, and so is what is unset. Ill-formed
// tags of If-None-Match and several dates are 400 InvalidHeaderValue; an If-Match
// that is no tag of this service is one that does not hold. If-None-Match: * is 400
// UnsatisfiableCondition since 2016-05-31, and mixes that versions before
// 2013-08-15 do not know are 400 MultipleConditionHeadersNotSupported.
func ParseReadConditions(h http.Header, v Version) (Conditions, error) {
	c, err := parseConditions(h, true)
	if err != nil {
		return Conditions{}, err
	}
	if unset(h[headerIfMatch]) {
		c.match = tagList{}
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
// tags, is 400 MultipleConditionHeadersNotSupported. A write may not become one without
// conditions where its client has sent some: a date that cannot be parsed is 400
// InvalidHeaderValue, and an unset If-Match does not hold. Other headers are ignored if unset.
func ParseWriteConditions(h http.Header) (Conditions, error) {
	c, err := parseConditions(h, false)
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

// parseConditions reads all four headers. lenient ignores dates that cannot be parsed.
func parseConditions(h http.Header, lenient bool) (c Conditions, err error) {
	// A weak tag comes from a proxy that changed the encoding. It may answer "you
	// have this one already", but never admits a write.
	c.match = parseMatch(h)
	if c.noneMatch, err = parseNoneMatch(h); err != nil {
		return Conditions{}, err
	}
	if c.modifiedSince, err = parseInstant(h, headerIfModifiedSince, lenient); err != nil {
		return Conditions{}, err
	}
	c.unmodifiedAt, err = parseInstant(h, headerIfUnmodifiedSince, lenient)
	return c, err
}

// HasCondition reports whether a write has the condition of a header, in its canonical form: an unset one is none, but for
// the If-Match of null, as in ParseWriteConditions, and one that is sent twice.
func HasCondition(h http.Header, name string) bool {
	return len(h[name]) > 1 || h.Get(name) != "" && (name == headerIfMatch || !unset(h[name]))
}

// unset reports whether the client had no value for a header, and sent it all the same: empty, or the null of its language.
func unset(values []string) bool {
	return len(values) == 1 && (values[0] == "" || values[0] == "null")
}

// parseInstant reads the date of a header. lenient ignores one that cannot be parsed (RFC 9110 13.1.3, 13.1.4). Several
// are an error, also in one line.
func parseInstant(h http.Header, name string, lenient bool) (instant, error) {
	values := h[name]
	if len(values) == 0 || unset(values) {
		return instant{}, nil
	}
	t, ok := wire.ParseHTTPTime(values[0])
	switch {
	case ok && len(values) == 1:
		return instant{sent: true, unix: t.Unix()}, nil
	case lenient && len(values) == 1 && !strings.Contains(values[0], "GMT,"):
		return instant{}, nil
	}
	return instant{}, wire.BadHeader(name, values...)
}

// parseMatch reads If-Match: a comma list of quoted or bare tags and *. A W/"tag" keeps
// its W/ and so equals none.
func parseMatch(h http.Header) tagList {
	values := h[headerIfMatch]
	l := tagList{sent: len(values) > 0}
	for _, rest := range values {
		for more := true; more; {
			item, tail, _ := strings.Cut(rest, ",")
			if strings.Trim(item, " \t") == "*" {
				l.any = true
				rest, more = tail, len(item) < len(rest)
				continue
			}
			tag, after, comma, ok := cutTag(rest, false)
			if !ok {
				tag, comma = rest, false
			}
			l.tags = append(l.tags, tag)
			rest, more = after, comma
		}
	}
	return l
}

// parseNoneMatch reads If-None-Match: *, or a comma list of quoted or bare tags. A
// W/"tag" stands for the tag, and an unset header for none.
func parseNoneMatch(h http.Header) (tagList, error) {
	values := h[headerIfNoneMatch]
	if len(values) == 0 || unset(values) {
		return tagList{}, nil
	}
	l := tagList{sent: true}
	if len(values) == 1 && values[0] == "*" {
		l.any = true
		return l, nil
	}
	for _, rest := range values {
		for more := true; more; {
			var tag string
			var ok bool
			tag, rest, more, ok = cutTag(rest, true)
			if !ok {
				return tagList{}, wire.BadHeader(headerIfNoneMatch, values...)
			}
			l.tags = append(l.tags, tag)
		}
	}
	return l, nil
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
// If-Match takes one weak tag or *; a strong or bare tag, a list or an empty value
// is 400 InvalidInput: none may turn into no If-Match, which is an upsert. So is an
// If-None-Match on PUT or DELETE, or beside If-Match, unless it is unset. Time conditions
// are ignored.
func ParseTableMatch(method string, h http.Header) (TableMatch, error) {
	values, sent := h[headerIfMatch]
	if none := h[headerIfNoneMatch]; len(none) > 0 && !unset(none) &&
		(sent || method == http.MethodPut || method == http.MethodDelete) {
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

// ParseTableNoneMatch reads the header (protocol/table.md 9.6). One that has a value that is
// no tag names nothing.
func ParseTableNoneMatch(h http.Header) TableNoneMatch {
	list, err := parseNoneMatch(h)
	if err != nil {
		return TableNoneMatch{}
	}
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
