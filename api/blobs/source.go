package blobs

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
)

const (
	headerCopySource   = "X-Ms-Copy-Source"
	headerSourceRange  = "X-Ms-Source-Range"
	headerSourceIfTags = "X-Ms-Source-If-Tags"
	headerSourceLease  = "X-Ms-Source-Lease-Id"
)

// copySource is what a request says of the blob that it copies from (protocol/blob.md 13).
type copySource struct {
	uri string
	// conditions are those on the source, and header has them as its own server takes them.
	conditions protocol.Conditions
	header     http.Header
	tags       *blobs.TagCondition
	lease      *lease.ID
	// bytes are those that are copied, and digests what they are to be.
	bytes   byteRange
	digests digests
	// blocks: its blocks are copied as they are.
	blocks bool
	// seal, tagged and plain are of single operations: seal the copy, copy the tags, leave the properties.
	seal, tagged, plain bool
}

// readSource reads what all operations that copy have. Before 2012-02-12 the source is a path in the same account.
func (c *call) readSource() error {
	in := c.in.from
	in.uri = c.r.Header(headerCopySource)
	if in.uri == "" {
		return missing(headerCopySource)
	}
	if n := c.r.HTTP.ContentLength; n > 0 { // The content is the source's: what the client sends would be lost.
		return badHeader("Content-Length", strconv.FormatInt(n, 10))
	}
	if path, isPath := strings.CutPrefix(in.uri, "/"); isPath && c.r.Version < protocol.Version20120212 {
		if account, _, _ := strings.Cut(path, "/"); account != string(c.r.Account.Name) {
			return storageerr.CopyAcrossAccountsNotSupported
		}
	}
	names := []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}
	return c.under("X-Ms-Source-", names, func(h http.Header) (err error) {
		in.conditions, err = protocol.ParseWriteConditions(h)
		in.header = http.Header{}
		for i, name := range names {
			// A tag decides alone, and is in front of the date that it stands for.
			if protocol.HasCondition(h, name) && (i < 2 || !protocol.HasCondition(h, names[3-i])) {
				in.header[name] = h[name]
			}
		}
		return err
	})
}

// readSourceTags reads x-ms-source-if-tags.
func (c *call) readSourceTags() (err error) {
	text := c.r.Header(headerSourceIfTags)
	if text == "" {
		return nil
	}
	if c.r.Version < protocol.Version20191212 {
		return c.refuse([]string{headerSourceIfTags})
	}
	if c.in.from.tags, err = blobs.ParseTagCondition(text); err != nil {
		return badHeader(headerSourceIfTags, text)
	}
	return nil
}

// origin is a blob that is copied from, as it was found: one state of it.
type origin struct {
	*protocol.Source
	// here reads a blob that this location serves, and elsewhere is the answer for any other.
	here      *call
	elsewhere *answered
	// blob describes it, and has its payload if it is here; span is what is copied of it.
	blob *source
	span span
}

// withSource finds the source and calls f; again with a later state of a source that was replaced, or of a destination that
// overtook the copy.
func (c *call) withSource(f func(*origin) error) error {
	defer func() { c.bodyHold.Release() }()
	src, err := c.r.Sources.Source(c.ctx, c.r, c.in.from.uri)
	if err != nil {
		return c.showRefusal(err)
	}
	if src.Read == nil {
		o, err := c.openElsewhere(src)
		if err != nil {
			return c.showRefusal(err)
		}
		defer o.elsewhere.close()
		return c.showRefusal(f(o))
	}
	for range commitTries {
		c.bodyHold.Release() // Of the try before.
		o, err := c.openHere(src)
		if err == nil {
			err = f(o)
		}
		if !errors.Is(err, blobs.ErrOvertaken) && !errors.Is(err, blobs.ErrReplaced) && !errors.Is(err, storageerr.BlobOverwritten) {
			return c.showRefusal(err)
		}
	}
	return storageerr.ServerBusy
}

// showRefusal adds what a source was refused with to the answer (protocol/blob.md 2.4).
func (c *call) showRefusal(err error) error {
	var e *storageerr.Error
	if errors.As(err, &e) && e.Code == storageerr.CannotVerifyCopySource.Code && c.r.Version >= version20250705 {
		for _, d := range e.Details {
			switch d.Name {
			case "CopySourceStatusCode":
				c.w.Header()["X-Ms-Copy-Source-Status-Code"] = []string{d.Value}
			case "CopySourceErrorCode":
				c.w.Header()["X-Ms-Copy-Source-Error-Code"] = []string{d.Value}
			}
		}
	}
	return err
}

// openHere reads a source that this location serves, under the conditions on it.
func (c *call) openHere(src *protocol.Source) (*origin, error) {
	in := c.in.from
	o := &origin{Source: src, here: &call{
		Handler: c.Handler, r: src.Read, ctx: c.ctx, asked: operation.Match{Operation: operation.Named(geo.Blob, "GetBlob")},
	}}
	var err error
	if o.here.res, err = parseResource(src.Read.Resource, ""); err != nil || o.here.res.validate() != nil || o.here.res.blob == "" {
		return nil, badHeader(headerCopySource, in.uri)
	}
	if err := o.here.readVersion(); err != nil {
		return nil, refusedBy(err)
	}
	if in.tags != nil && !src.Read.Access.Tags() {
		return nil, refusedBy(storageerr.PermissionMismatch)
	}
	b := &source{}
	if b.name, err = o.here.name(); err != nil {
		return nil, refusedBy(err)
	}
	err = o.here.read(b, func(r kv.Reader, b *source) (err error) {
		if in.blocks {
			return nil // They are read once there is memory for them.
		}
		if o.span, err = in.of(b.Length); err != nil || o.span.off == o.span.end {
			return nil // Answered below, after the conditions.
		}
		b.first, err = blobs.WindowAt(r, b.name, b.Blob, o.span.off, o.span.end)
		return err
	})
	if err != nil {
		return nil, refusedBy(err)
	}
	o.blob = b
	if err := c.checkSource(o, b.Blob); err != nil {
		return nil, err
	}
	o.span, err = in.of(b.Length)
	return o, err
}

// checkSource tests a source that this location serves.
func (c *call) checkSource(o *origin, b *blobs.Blob) error {
	in, now := c.in.from, c.now()
	b.SettleTier(now)
	if err := c.in.guard.Knows(b); err != nil {
		return err
	}
	if in.conditions.Write(false, true, b.Modified) != nil || !in.tags.Holds(b.Tags) {
		return storageerr.SourceConditionNotMet
	}
	if err := b.Lease.Check(in.lease, false, now, lease.OfBlob()); err != nil {
		return err
	}
	if err := b.Online(); err != nil && !c.rehydrates(o, err) {
		return err
	}
	return nil
}

// refusedBy is the error of a copy whose source is refused with err. What is not built, or a bug, stays, and so does a
// source to be read again.
func refusedBy(err error) error {
	e, known := storageerr.Of(err)
	final := known && (e.Status < http.StatusInternalServerError || e.Status == http.StatusServiceUnavailable)
	if final {
		return storageerr.CopySourceRefused(e.Status, e.Code, e.Message)
	}
	return err
}

// of is what is copied of a source of length bytes. InvalidRange where it is not all there.
func (in *copySource) of(length uint64) (span, error) {
	s, err := in.bytes.of(length)
	if err == nil && in.bytes.closed() && in.bytes.last >= length {
		err = storageerr.InvalidRange
	}
	return s, err
}
