package auth

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"antipode/api/protocol"
	"antipode/geo"
)

// layout is which fields a string to sign has.
type layout uint8

const (
	// layoutFull is SharedKey of blobs and queues since 2009-09-19.
	layoutFull layout = iota
	// layoutLite is SharedKeyLite of blobs and queues, and their SharedKey before
	// 2009-09-19.
	layoutLite
	// layoutTable is SharedKey of tables, layoutTableLite their SharedKeyLite.
	layoutTable
	layoutTableLite
)

// variant is a set of the ways in which clients are known to differ from the
// first candidate (protocol/auth.md 12). Zero is the first candidate.
type variant uint16

const (
	// byteSorted sorts the headers by byte.
	byteSorted variant = 1 << iota
	// noEmptyParams leaves out parameters without a value. Who passes this way
	// has them removed from the request.
	noEmptyParams
	// noSuffix leaves -secondary out of a path-style path.
	noSuffix
	// noZeroLength signs a Content-Length of 0 as empty, before 2015-02-21.
	noZeroLength
	// spacesCollapsed signs one space for every run of white space in a value. Who passes
	// this way has the values changed to that in the request.
	spacesCollapsed
	// fullLayout signs the string of 2009-09-19 though no version was sent.
	fullLayout
	// swappedEncoding has Content-Language before Content-Encoding.
	swappedEncoding
	// quotesEncoded and quotesRaw write every quote of a table path as %27 or as
	// itself, which undoes what a proxy may have done. Both at once is no way.
	quotesEncoded
	quotesRaw
)

// message is the signed part of a request.
type message struct {
	method  string
	header  http.Header
	length  int64 // The body's length where Content-Length is no header, else 0.
	account geo.Account
	path    string
	query   protocol.Query
	version protocol.Version
	layout  layout
	table   bool
	// suffixed reports that the path begins with {account}-secondary because it names
	// the account. In host style the same text would be a container's name.
	suffixed bool
	// unversioned reports that SharedKey was used without x-ms-version, on blobs or
	// queues. By the rules that is the old string, yet parts of a blob batch, which
	// inherit their version, are signed with the new one.
	unversioned bool
}

// signedHeader is an x-ms- header with its name as found in the request.
type signedHeader struct {
	name   string
	values []string
}

// canonicalizer builds strings to sign in memory it uses again.
type canonicalizer struct {
	headers []signedHeader
	params  []protocol.Param
}

// release lets go of the request's memory.
func (c *canonicalizer) release() {
	clear(c.headers)
	clear(c.params)
	c.headers, c.params = c.headers[:0], c.params[:0]
}

// append appends the string to sign of m, written in way v.
func (c *canonicalizer) append(b []byte, m *message, v variant) []byte {
	l := m.layout
	if v&fullLayout != 0 {
		l = layoutFull
	}
	h := m.header
	switch l {
	case layoutFull:
		b = appendFullFields(b, m, v)
		b = c.appendHeaders(b, h, v)
		return c.appendResource(b, m, v)
	case layoutLite:
		b = appendField(b, strings.ToUpper(m.method))
		b = appendField(b, joined(h, "Content-Md5"))
		b = appendField(b, joined(h, "Content-Type"))
		b = appendField(b, plainDate(h))
		b = c.appendHeaders(b, h, v)
	case layoutTable:
		b = appendField(b, strings.ToUpper(m.method))
		b = appendField(b, joined(h, "Content-Md5"))
		b = appendField(b, joined(h, "Content-Type"))
		b = appendField(b, requestDate(h))
	case layoutTableLite:
		b = appendField(b, requestDate(h))
	}
	b = appendPath(b, m, v)
	if comp, sent := m.query.Lookup("comp"); sent && (comp != "" || v&noEmptyParams == 0) {
		b = append(b, "?comp="...)
		b = append(b, comp...)
	}
	return b
}

// appendFullFields appends the verb and the eleven fields after it.
func appendFullFields(b []byte, m *message, v variant) []byte {
	h := m.header
	first, second := "Content-Encoding", "Content-Language"
	if v&swappedEncoding != 0 {
		first, second = second, first
	}
	b = appendField(b, strings.ToUpper(m.method))
	b = appendField(b, joined(h, first))
	b = appendField(b, joined(h, second))
	length := joined(h, "Content-Length")
	switch {
	case length == "" && m.length > 0:
		b = strconv.AppendInt(b, m.length, 10)
	case length == "0" && (m.version >= protocol.Version20150221 || v&noZeroLength != 0):
	default:
		b = append(b, length...)
	}
	b = append(b, '\n')
	b = appendField(b, joined(h, "Content-Md5"))
	b = appendField(b, joined(h, "Content-Type"))
	b = appendField(b, plainDate(h))
	for _, name := range [...]string{
		"If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range",
	} {
		b = appendField(b, joined(h, name))
	}
	return b
}

func appendField(b []byte, value string) []byte { return append(append(b, value...), '\n') }

// plainDate is the Date field where x-ms-date has a separate line.
func plainDate(h http.Header) string {
	if _, sent := h[headerDate]; sent {
		return ""
	}
	return joined(h, "Date")
}

// requestDate is x-ms-date if it was sent, else Date.
func requestDate(h http.Header) string {
	if _, sent := h[headerDate]; sent {
		return joined(h, headerDate)
	}
	return joined(h, "Date")
}

// collect fills c.headers with the x-ms- headers, in culture order or by byte.
func (c *canonicalizer) collect(h http.Header, v variant) {
	c.headers = c.headers[:0]
	for name, values := range h {
		if signs(name) {
			c.headers = append(c.headers, signedHeader{name, values})
		}
	}
	order := cultureOrder
	if v&byteSorted != 0 {
		order = byteOrder
	}
	slices.SortFunc(c.headers, func(a, b signedHeader) int { return order(a.name, b.name) })
}

// appendHeaders appends the canonicalized headers (protocol/auth.md 7).
func (c *canonicalizer) appendHeaders(b []byte, h http.Header, v variant) []byte {
	c.collect(h, v)
	for _, s := range c.headers {
		for i := range len(s.name) {
			b = append(b, lower(s.name[i]))
		}
		b = append(b, ':')
		for i, value := range s.values {
			if i > 0 {
				b = append(b, ',')
			}
			value = trim(value)
			if v&spacesCollapsed != 0 {
				value = collapse(value)
			}
			b = append(b, value...)
		}
		b = append(b, '\n')
	}
	return b
}

// appendPath appends the account and the path as sent.
func appendPath(b []byte, m *message, v variant) []byte {
	b = append(b, '/')
	b = append(b, m.account...)
	path := m.path
	if v&noSuffix != 0 {
		segment := len("/") + len(m.account)
		b = append(b, path[:segment]...)
		path = path[segment+len(geo.SecondarySuffix):]
	}
	switch {
	case v&quotesEncoded != 0:
		path = strings.ReplaceAll(path, "'", "%27")
	case v&quotesRaw != 0:
		path = strings.ReplaceAll(path, "%27", "'")
	}
	return append(b, path...)
}

// appendResource appends the canonicalized resource of the full layout: account,
// path, and every parameter in the order of names, the values of a repeated name
// in their own order (protocol/auth.md 8).
func (c *canonicalizer) appendResource(b []byte, m *message, v variant) []byte {
	b = appendPath(b, m, v)
	c.params = append(c.params[:0], m.query...)
	slices.SortFunc(c.params, func(x, y protocol.Param) int {
		if d := strings.Compare(x.Name, y.Name); d != 0 {
			return d
		}
		return strings.Compare(x.Value, y.Value)
	})
	previous, started := "", false
	for _, p := range c.params {
		if p.Value == "" && v&noEmptyParams != 0 {
			continue
		}
		if started && p.Name == previous {
			b = append(b, ',')
		} else {
			b = append(b, '\n')
			b = append(b, p.Name...)
			b = append(b, ':')
		}
		b = append(b, p.Value...)
		previous, started = p.Name, true
	}
	return b
}

// ambiguous reports whether the query could be cut into other parameters that
// sign to the same string: a line feed or a colon in a name, or a line feed in a
// value. Without this, ?prefix=a:b could be sent on as ?prefix:a=b under the same
// signature, without its prefix, and ?comp=x&versionid=y as ?comp=x%0Aversionid:y.
// No parameter of the protocol is named like this.
func ambiguous(q protocol.Query) bool {
	for _, p := range q {
		if strings.ContainsAny(p.Name, ":\n") || strings.IndexByte(p.Value, '\n') >= 0 {
			return true
		}
	}
	return false
}
