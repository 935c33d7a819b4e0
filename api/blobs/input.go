package blobs

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/storageerr"
)

// input is what a request says in the headers that several operations take. It is read
// once, before the operation runs. A group that the operation's row does not take is not
// read, and stays zero.
type input struct {
	// snapshot is the time of the one that is addressed; zero for the blob.
	snapshot geo.Timestamp
	guard    blobs.Guard
	tier     blobs.Tier
	tags     []blobs.Pair
	metadata []blobs.Pair
	// properties are as sent: the content type may be empty. md5 is stored with them
	// unchecked; the MD5 of a body is in digests.
	properties blobs.Properties
	md5        []byte
	digests    digests
	// appends: Put Blob makes an append blob.
	appends bool
	// appendAt is the length that an append blob must have, and sizeMax what it may have afterwards; nil for whatever it is.
	appendAt, sizeMax *uint64
	// length is the body's, in bytes.
	length int64
	// from is what is copied from; nil where nothing is.
	from *copySource
}

// groups are the headers of an input in the order in which all operations read them
// (protocol/blob.md 2.6).
//
//nolint:gochecknoglobals // A table, never written.
var groups = [...]struct {
	takes operation.Takes
	read  func(*call) error
}{
	{operation.Lease | operation.LeaseNeeded, (*call).readLease},
	{operation.Conditions, (*call).readConditions},
	{operation.BlobConditions, (*call).readBlobConditions},
	{operation.IfTags, (*call).readTagCondition},
	{operation.Source, (*call).readSource},
	{operation.AppendPosition, (*call).readAppendPosition},
	{operation.AccessTier, (*call).readTier},
	{operation.Metadata, (*call).readMetadata},
	{operation.Tags, (*call).readTags},
	{operation.Properties, (*call).readProperties},
	{operation.Integrity, (*call).readDigests},
}

// readInput reads what the operation's row takes, then checks the length of the body.
func (c *call) readInput() error {
	c.in.guard.Early = c.r.Version < protocol.Version20150221
	for i := range groups {
		if c.asked.Takes&groups[i].takes == 0 {
			continue
		}
		if err := groups[i].read(c); err != nil {
			return err
		}
	}
	return c.readLength()
}

func (c *call) readLease() (err error) {
	c.in.guard.LeaseNeeded = c.asked.Takes&operation.LeaseNeeded != 0
	c.in.guard.Lease, err = parseLeaseID(c.r.HTTP.Header, headerLeaseID)
	return err
}

func (c *call) readConditions() error { return c.parseConditions(c.r.HTTP.Header) }

// parseConditions reads the four conditions of a blob, by their names in HTTP.
func (c *call) parseConditions(h http.Header) (err error) {
	var sent protocol.Conditions
	if c.asked.Effect == operation.Reads {
		sent, err = protocol.ParseReadConditions(h, c.r.Version)
	} else {
		sent, err = protocol.ParseWriteConditions(h)
	}
	if err == nil && !sent.IsZero() {
		c.in.guard.Conditions = sent
	}
	return err
}

// under calls parse with conditions as HTTP names them that the request has under names with a prefix.
func (c *call) under(prefix string, names []string, parse func(http.Header) error) error {
	h := http.Header{}
	for _, name := range names {
		h[name] = c.r.HTTP.Header[prefix+name]
	}
	err := parse(h)
	var e *storageerr.Error
	if errors.As(err, &e) && len(e.Details) > 0 && e.Details[0].Name == "HeaderName" {
		e.Details[0].Value = lower(prefix + e.Details[0].Value)
	}
	return err
}

func (c *call) readMetadata() (err error) {
	c.in.metadata, err = wire.ParseMetadata(c.r.HTTP.Header, c.r.Version >= protocol.Version20090919)
	return err
}

// takesPayload reports whether the body is the content of the blob, which its plain headers
// describe; so they do the append blob that is made without content.
func (c *call) takesPayload() bool {
	return c.asked.Body.Kind == operation.Stream && c.asked.Takes&operation.Properties != 0
}

// readProperties reads the x-ms-blob- form, and of payload the plain header where there is no
// such form (protocol/blob.md 19.1). An MD5 beside payload is one of its digests; every other
// one is stored unchecked, whatever its length (18.3). Text that is not Base64 is refused:
// clients decode the value with every read of the blob, and would fail.
func (c *call) readProperties() error {
	h, plain := c.r.HTTP.Header, c.takesPayload()
	property := func(name string) string {
		if v := h["X-Ms-Blob-"+name]; len(v) > 0 || !plain {
			return strings.Join(v, ",")
		}
		return strings.Join(h[name], ",")
	}
	c.in.properties = blobs.Properties{
		ContentType: property("Content-Type"), ContentEncoding: property("Content-Encoding"),
		ContentLanguage: property("Content-Language"), CacheControl: property("Cache-Control"),
		ContentDisposition: h.Get("X-Ms-Blob-Content-Disposition"),
	}
	if plain && !c.in.appends {
		return nil
	}
	md5, ok := wire.DecodeBase64(h.Get(headerBlobContentMD5))
	if !ok {
		return storageerr.InvalidMD5
	}
	c.in.md5 = md5
	return nil
}

// readLength refuses a PUT that does not say how long its body is, and a body that is longer
// than the operation takes.
func (c *call) readLength() error {
	r := c.r.HTTP
	c.in.length = r.ContentLength
	if r.Method == http.MethodPut && !c.r.InBatch && (r.ContentLength < 0 || r.ContentLength == 0 && c.r.Header("Content-Length") == "") {
		return storageerr.MissingContentLength
	}
	if c.asked.Body.Kind == operation.None {
		return nil // The body was dropped.
	}
	limit := c.asked.BodyMax(c.r.Version)
	if c.o.BodyBytesMax > 0 && c.asked.Body.Kind == operation.Stream {
		limit = min(limit, c.o.BodyBytesMax)
	}
	if r.ContentLength > limit {
		return storageerr.RequestBodyTooLarge.With("MaxLimit", strconv.FormatInt(limit, 10))
	}
	return nil
}

// newBlob is the blob that Put Blob and Put Block List make, without its payload.
func (in *input) newBlob() blobs.Blob {
	b := blobs.Blob{Tier: in.tier, Tags: in.tags, Metadata: in.metadata, Properties: in.properties, MD5: in.md5}
	if b.Properties.ContentType == "" {
		b.Properties.ContentType = "application/octet-stream"
	}
	return b
}

// badHeader is wire.BadHeader of a header in canonical form: errors have it in lower case.
func badHeader(name, value string) error { return wire.BadHeader(lower(name), value) }
