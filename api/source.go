package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"antipode/api/auth"
	"antipode/api/blobs"
	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/storageerr"
)

// sourceMax is the longest URL of a source, in bytes (protocol/blob.md 13.1).
const sourceMax = 2 << 10

// Errors of sources.
var (
	// errUnlisted does not say whether there is such a host.
	errUnlisted = storageerr.CopySourceRefused(http.StatusForbidden, "",
		"The host of the copy source is not one that copies may read from. Operators list such hosts in copy_sources of node.yaml.")
	errCloneAlone = storageerr.CopySourceRefused(http.StatusForbidden, "", "A clone of an account copies from itself alone.")
	// errNoSource is what parseSource refuses, for whatever reason.
	errNoSource = errors.New("no URL of a blob")
)

// sourceURL is where a copy reads.
type sourceURL struct {
	protocol.Target
	url *url.URL
	// old is the form without a host, of versions before 2012-02-12.
	old bool
}

// Source implements protocol.Sources.
func (x *exchange) Source(ctx context.Context, of *protocol.Request, uri string) (*protocol.Source, error) {
	at, err := x.parseSource(of, uri)
	if err != nil {
		shown, _, _ := strings.Cut(uri, "?") // The rest may have a signature.
		return nil, wire.BadHeader("x-ms-copy-source", shown[:min(len(shown), sourceMax)])
	}
	switch {
	case !x.ours(of, at):
		return x.outside(of, at)
	case of.Clone != at.Clone || of.Clone && of.Target.Account != at.Account:
		if of.Clone {
			return nil, errCloneAlone
		}
		return nil, refusedSource(storageerr.AccountNotFound) // As for who asks for it without knowing that it is there.
	}
	return x.inside(ctx, of, at)
}

// parseSource reads a URL as it would stand in a request line. Characters that may not stand there are escaped, as every
// client does, so that what is authorized, signed and sent is one text.
func (x *exchange) parseSource(of *protocol.Request, uri string) (sourceURL, error) {
	at := sourceURL{old: strings.HasPrefix(uri, "/")}
	if len(uri) > sourceMax || strings.Contains(uri, "#") || at.old && of.Version >= protocol.Version20120212 {
		return at, errNoSource
	}
	uri = escaped(uri)
	var err error
	if at.Target, err = protocol.ParseTarget(geo.Blob, of.Scheme, oldHost, uri, x.o.Zones...); err != nil {
		return at, err
	}
	if at.old {
		uri = of.Scheme + "://" + oldHost + uri
	}
	at.url, err = urlOf(at.Target, uri)
	return at, err
}

// urlOf parses the URL that t was parsed from, and requires that both parsers read the same host, path and query: t is
// authorized, and the result is sent. No URL is known that they read differently, but a later version of either may.
func urlOf(t protocol.Target, uri string) (*url.URL, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	if u.Hostname() == "" || strings.HasSuffix(u.Host, ":") || cmp.Or(u.EscapedPath(), "/") != t.RawPath || u.RawQuery != t.RawQuery ||
		!strings.HasPrefix(t.Base, strings.ToLower(u.Scheme)+"://"+u.Host+"/") {
		return nil, errNoSource
	}
	return u, nil
}

// oldHost is a host that names no account, and that every front end takes (hosts.New).
const oldHost = "localhost"

// escaped returns a URL with what may not stand in a path escaped. Spaces and control characters are no part of a URL.
func escaped(uri string) string {
	const never = "\"<>\\^`{|}"
	var b strings.Builder
	for i := range len(uri) {
		if c := uri[i]; c < 0x80 && strings.IndexByte(never, c) < 0 {
			b.WriteByte(c)
			continue
		}
		const digits = "0123456789ABCDEF"
		b.Write([]byte{'%', digits[uri[i]>>4], digits[uri[i]&15]})
	}
	return b.String()
}

// ours reports whether a URL is one of this deployment: by its zones, or by the host that the request was sent to. A name
// by which front ends may be addressed is ours, unless the operator lists it with a port: another server of that host.
func (x *exchange) ours(of *protocol.Request, at sourceURL) bool {
	return at.old || !at.PathStyle || sameHost(at.url.Host, of.HTTP.Host) || x.hosts.Named(at.url.Host) && !x.permitted(at)
}

func (x *exchange) permitted(at sourceURL) bool {
	return x.o.Outside != nil && x.o.Outside.Permits(at.url)
}

// sameHost compares two hosts with their ports, of which those of the schemes are as good as none: a proxy that ends TLS may
// be between.
func sameHost(a, b string) bool {
	plain := func(host string) string {
		name, port := host, ""
		if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
			name, port = host[:colon], host[colon:]
		}
		if port == ":80" || port == ":443" {
			port = ""
		}
		return strings.TrimSuffix(strings.ToLower(name), ".") + port
	}
	return plain(a) == plain(b)
}

// outside is a source on another server.
func (x *exchange) outside(of *protocol.Request, at sourceURL) (*protocol.Source, error) {
	switch {
	case of.Clone: // A drill reaches nothing.
		return nil, errCloneAlone
	case !x.permitted(at):
		return nil, errUnlisted
	}
	version := string(of.Version)
	return &protocol.Source{Shown: at.shown(), Do: func(r *http.Request) (*http.Response, error) {
		resp, err := x.o.Outside.Do(r.Context(), r.Method, at.url, sourceHeader(r, version))
		return resp, outsideError(err)
	}}, nil
}

// inside is a source of this deployment, for who may read it.
func (x *exchange) inside(ctx context.Context, of *protocol.Request, at sourceURL) (*protocol.Source, error) {
	y, err := x.reading(ctx, of, at)
	if err != nil {
		return nil, err
	}
	byKey := !auth.HasSAS(y.r.Header, y.req.Query)
	if byKey {
		if x.sas != nil || of.Access != nil || at.SignedAs() != of.SignedAs() {
			return nil, refusedSource(auth.NoCredentials(geo.Blob, y.req.Version))
		}
		if err := y.sign(y.r, of.Account.Key1); err != nil {
			return nil, err
		}
	}
	if err := y.resolve(ctx); err != nil {
		return nil, refusedSource(err)
	}
	if err := y.signed(y.req.Account); err != nil {
		return nil, refusedSource(err)
	}
	elsewhere := &protocol.Source{Shown: at.shown(), Do: func(r *http.Request) (*http.Response, error) { return y.ask(r, byKey) }}
	want := y.location(y.req.Account)
	if want != y.o.Location {
		return elsewhere, nil // It authorizes: only there the container was looked up (exchange.container).
	}
	if err := y.authorize(y.req.Account); err != nil {
		return nil, refusedSource(err)
	}
	if y.doubted(want) {
		return nil, refusedSource(routing.ErrAway)
	}
	if y.withheld() {
		return elsewhere, nil
	}
	// Another node may lead the source's range: a copy shares chunks all the same, and each node reads what another one leads
	// (ranges.Reader).
	if err := y.unreadable(); err != nil {
		return nil, refusedSource(err)
	}
	if err := y.incomplete(ctx); err != nil {
		return nil, refusedSource(err)
	}
	if !y.req.Secondary {
		x.marking.Lock()
		x.w.Before(y.markStale)
		x.marking.Unlock()
	}
	y.r.Header = http.Header{protocol.HeaderVersion: y.r.Header[protocol.HeaderVersion]}
	y.req.HTTP = y.r
	return &protocol.Source{Shown: at.shown(), Read: y.req}, nil
}

// reading is the exchange of a read of a source, which is not answered.
func (x *exchange) reading(ctx context.Context, of *protocol.Request, at sourceURL) (*exchange, error) {
	r := at.request(ctx, http.MethodGet, http.Header{protocol.HeaderVersion: {string(of.Version)}})
	req := &protocol.Request{HTTP: r, Target: at.Target, ClientAddr: of.ClientAddr, Scheme: of.Scheme, ID: of.ID, At: of.At}
	y := &exchange{Server: x.Server, w: x.w, r: r, service: at.Service, req: req, passed: true}
	var err error
	if req.Query, err = protocol.ParseQuery(at.RawQuery); err != nil {
		return nil, badSource(at)
	}
	if req.Version, err = auth.Version(geo.Blob, r.Header, req.Query); err != nil {
		return nil, refusedSource(err)
	}
	if y.asked = blobs.Lookup(req); y.asked.Name != "GetBlob" {
		return nil, badSource(at)
	}
	return y, nil
}

func badSource(at sourceURL) error { return wire.BadHeader("x-ms-copy-source", at.shown()) }

// request is a request for the source as a listener takes it.
func (at *sourceURL) request(ctx context.Context, method string, h http.Header) *http.Request {
	return (&http.Request{
		Method: method, URL: at.url, RequestURI: at.url.RequestURI(), Host: at.url.Host, Header: h, Body: http.NoBody,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
}

// sign signs a read of the source with a key of its account.
func (x *exchange) sign(r *http.Request, key []byte) error {
	return auth.Sign(r, geo.Blob, x.req.SignedAs(), key, x.o.Clock.Now())
}

// shown is the URL for the properties of a copy. Of its parameters only those stay that name what is read: the others may be
// a signature's.
func (at *sourceURL) shown() string {
	text := at.url.Scheme + "://" + at.url.Host
	if at.old {
		text = ""
	}
	text += at.RawPath
	mark := "?"
	for pair := range strings.SplitSeq(at.RawQuery, "&") {
		switch name, _, _ := strings.Cut(strings.ToLower(pair), "="); name {
		case "snapshot", "versionid":
			text += mark + pair
			mark = "&"
		}
	}
	return text
}

// refusedSource is the error of a copy whose source was refused. What is no error of the protocol stays.
func refusedSource(err error) error {
	if e, ours := storageerr.Of(err); ours {
		return storageerr.CopySourceRefused(e.Status, e.Code, e.Message)
	}
	return err
}
