package blobs

import (
	"net/http"
	"strings"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/storageerr"
)

// Versions at which this service's wire changed, beyond those of package protocol.
const (
	version20170417 protocol.Version = "2017-04-17"
	version20171109 protocol.Version = "2017-11-09"
	version20200612 protocol.Version = "2020-06-12"
	version20201002 protocol.Version = "2020-10-02"
	version20210212 protocol.Version = "2021-02-12"
	version20240804 protocol.Version = "2024-08-04"
	version20260206 protocol.Version = "2026-02-06"
	version20261006 protocol.Version = "2026-10-06"
)

const defaultContentType = "application/octet-stream"

// Headers that are known and not built. One that is sent with a value refuses the
// request: left out, it would make the write or the read another one.
//
//nolint:gochecknoglobals // Tables, never written.
var (
	unbuiltOnRead = []string{
		"X-Ms-Encryption-Key", "X-Ms-Encryption-Key-Sha256", "X-Ms-Encryption-Algorithm", "X-Ms-If-Tags",
	}
	unbuiltOnWrite = append([]string{
		"X-Ms-Structured-Body", "X-Ms-Structured-Content-Length", "X-Ms-Encryption-Scope", "X-Ms-Tags",
		"X-Ms-Immutability-Policy-Until-Date", "X-Ms-Immutability-Policy-Mode", "X-Ms-Legal-Hold",
		"X-Ms-Access-Tier-If-Modified-Since", "X-Ms-Access-Tier-If-Unmodified-Since",
	}, unbuiltOnRead...)
)

// refuse answers UnsupportedHeader for the first header that was sent. Its value
// stays out of the answer: it may be a key.
func refuse(h http.Header, names []string) error {
	for _, name := range names {
		if h.Get(name) != "" {
			return storageerr.UnsupportedHeader.With("HeaderName", lower(name))
		}
	}
	return nil
}

// badHeader is wire.BadHeader of a header in canonical form: errors have it in lower case.
func badHeader(name, value string) error { return wire.BadHeader(lower(name), value) }

// requireLength refuses a PUT that does not say how long its body is.
func requireLength(r *http.Request) error {
	if r.ContentLength < 0 || r.ContentLength == 0 && r.Header.Get("Content-Length") == "" {
		return storageerr.MissingContentLength
	}
	return nil
}

// refuseConditions refuses the conditional headers that the operation does not take.
func (c *call) refuseConditions() error {
	for _, header := range [...]struct {
		name  string
		group operation.Takes
	}{
		{"If-Match", operation.IfMatch},
		{"If-None-Match", operation.IfNoneMatch},
		{"If-Modified-Since", operation.IfModifiedSince},
		{"If-Unmodified-Since", operation.IfUnmodifiedSince},
	} {
		if c.asked.Takes&header.group == 0 && c.r.HTTP.Header.Get(header.name) != "" {
			return storageerr.ConditionsNotSupported
		}
	}
	return nil
}

// setTag writes ETag and Last-Modified.
func setTag(h http.Header, modified geo.Timestamp) {
	h["ETag"] = []string{wire.BlobETag(modified)}
	h["Last-Modified"] = []string{wire.FormatHTTPTime(modified.Time())}
}

// parseProperties reads the content properties of Put Blob: the x-ms-blob- form, else
// the plain header (protocol/blob.md 19.1).
func parseProperties(h http.Header) blobs.Properties {
	either := func(name string) string {
		if v := h.Values("X-Ms-Blob-" + name); len(v) > 0 {
			return strings.Join(v, ",")
		}
		return strings.Join(h.Values(name), ",")
	}
	p := blobs.Properties{
		ContentType: either("Content-Type"), ContentEncoding: either("Content-Encoding"),
		ContentLanguage: either("Content-Language"), CacheControl: either("Cache-Control"),
		ContentDisposition: h.Get("X-Ms-Blob-Content-Disposition"),
	}
	if p.ContentType == "" {
		p.ContentType = defaultContentType
	}
	return p
}

// setProperties writes the content properties. A disposition is known from 2013-08-15 on.
func setProperties(h http.Header, p *blobs.Properties, v protocol.Version) {
	for name, value := range map[string]string{
		"Content-Type": p.ContentType, "Content-Encoding": p.ContentEncoding, "Content-Language": p.ContentLanguage,
		"Content-Disposition": p.ContentDisposition, "Cache-Control": p.CacheControl,
	} {
		if value != "" {
			h[name] = []string{value}
		}
	}
	if v < protocol.Version20130815 {
		delete(h, "Content-Disposition")
	}
	if p.ContentType == "" {
		h["Content-Type"] = nil // Else net/http guesses one from the payload.
	}
}

// parseTier reads x-ms-access-tier of Put Blob. The tiers that would change how a
// blob is read or billed are not built.
func parseTier(text string) (blobs.Tier, error) {
	switch text {
	case "":
		return blobs.TierDefault, nil
	case "Hot":
		return blobs.TierHot, nil
	case "Cool":
		return blobs.TierCool, nil
	case "Cold":
		return blobs.TierCold, nil
	case "Archive", "Smart", "Premium":
		return 0, storageerr.NotImplemented
	}
	return 0, badHeader("X-Ms-Access-Tier", text)
}

// tierName is the tier as it is answered; inferred where nobody chose one.
func tierName(t blobs.Tier) (name string, inferred bool) {
	switch t {
	case blobs.TierCool:
		return "Cool", false
	case blobs.TierCold:
		return "Cold", false
	}
	return "Hot", t == blobs.TierDefault
}

// parseNewBlob reads what Put Blob and Put Block List have in the same headers: the guard,
// and into b the tier and the metadata.
func parseNewBlob(h http.Header, v protocol.Version, b *blobs.Blob) (g blobs.Guard, err error) {
	if g, err = parseGuard(h); err != nil {
		return g, err
	}
	if b.Tier, err = parseTier(h.Get("X-Ms-Access-Tier")); err != nil {
		return g, err
	}
	b.Metadata, err = wire.ParseMetadata(h, v >= protocol.Version20090919)
	return g, err
}
