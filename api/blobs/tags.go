package blobs

import (
	"net/http"
	"net/url"
	"strings"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/services/blobs"
	"antipode/services/storageerr"
)

// readTagCondition reads x-ms-if-tags.
func (c *call) readTagCondition() (err error) {
	text := c.r.Header(headerIfTags)
	if text == "" {
		return nil
	}
	if c.in.guard.Tags, err = blobs.ParseTagCondition(text); err != nil {
		return badHeader(headerIfTags, text)
	}
	return nil
}

// readTags reads x-ms-tags.
func (c *call) readTags() (err error) {
	c.in.tags, err = parseTags(c.r.Header(headerTags))
	return err
}

// parseTags reads tags as a form has them: k1=v1&k2=v2 (protocol/blob.md 9.4).
func parseTags(text string) ([]blobs.Pair, error) {
	if text == "" {
		return nil, nil
	}
	var out []blobs.Pair
	for pair := range strings.SplitSeq(text, "&") {
		name, value, cut := strings.Cut(pair, "=")
		name, errName := url.QueryUnescape(name)
		value, errValue := url.QueryUnescape(value)
		if !cut || errName != nil || errValue != nil {
			return nil, storageerr.InvalidTag
		}
		if out = append(out, blobs.Pair{Name: name, Value: value}); len(out) > blobs.TagsMax {
			break // There are too many, however many follow.
		}
	}
	return blobs.CheckTags(out)
}

// readBlobConditions reads the conditions of Get and Set Blob Tags, whose names differ from those of HTTP. Before 2025-11-05
// they are no conditions.
func (c *call) readBlobConditions() error {
	if c.r.Version < version20251105 {
		return nil
	}
	return c.under("X-Ms-Blob-", []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}, c.parseConditions)
}

// getBlobTags is Get Blob Tags (protocol/blob.md B6).
func (c *call) getBlobTags() error {
	b, err := c.lookup(nil)
	if err != nil {
		return err
	}
	doc := appendTags(append([]byte(nil), wire.XMLStart...), b.Tags)
	c.writeHead(&head{status: http.StatusOK, contentType: "application/xml", length: uint64(len(doc))})
	_, _ = c.w.Write(doc) // The client is gone when this fails.
	return nil
}

// setBlobTags is Set Blob Tags (protocol/blob.md B7).
func (c *call) setBlobTags() error {
	c.bodyHold = c.inFlight.Hold(c.r)
	defer c.bodyHold.Release()
	body, err := protocol.ReadWhole(c.ctx, c.r, c.bodyHold, c.asked.BodyMax(c.r.Version))
	if err != nil {
		return err
	}
	sums := c.in.digests.ofDocument()
	sums.write(body)
	if err := sums.check(); err != nil {
		return err
	}
	tags, err := parseTagSet(body)
	if err != nil {
		return err
	}
	of, err := c.command()
	if err != nil {
		return err
	}
	set := &blobs.SetTags{Command: of, Tags: tags}
	if err := c.commit(set, &set.Command); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusNoContent, empty: true})
	return nil
}

// parseTagSet reads the body of Set Blob Tags.
func parseTagSet(body []byte) ([]blobs.Pair, error) {
	root, err := wire.ParseElement(body)
	if err != nil {
		return nil, err
	}
	if root.Name != "Tags" {
		return nil, storageerr.InvalidXMLDocument.With("Reason", "The document is no Tags.")
	}
	if err := root.Container("TagSet"); err != nil {
		return nil, err
	}
	set := root.Child("TagSet")
	if set == nil || strings.Trim(set.Text, " \t\r\n") != "" {
		return nil, storageerr.InvalidXMLDocument.With("Reason", "There is no TagSet, or it has text.")
	}
	var out []blobs.Pair
	for _, e := range set.Children {
		t, err := parseTag(e)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return blobs.CheckTags(out)
}

func parseTag(e *wire.Element) (t blobs.Pair, err error) {
	if e.Name != "Tag" {
		return t, storageerr.InvalidXMLDocument.With("Reason", "The element TagSet has no "+e.Name+".")
	}
	if err := e.Container("Key", "Value"); err != nil {
		return t, err
	}
	key, value := e.Child("Key"), e.Child("Value")
	if key == nil || value == nil {
		return t, storageerr.InvalidXMLDocument.With("Reason", "A Tag has a Key and a Value.")
	}
	if t.Name, err = key.Leaf(); err != nil {
		return t, err
	}
	t.Value, err = value.Leaf()
	return t, err
}

// appendTags appends tags as Get Blob Tags and listings have them.
func appendTags(b []byte, tags []blobs.Pair) []byte {
	b = append(b, "<Tags><TagSet>"...)
	for i := range tags {
		b = append(b, "<Tag>"...)
		b = wire.AppendElement(wire.AppendElement(b, "Key", tags[i].Name), "Value", tags[i].Value)
		b = append(b, "</Tag>"...)
	}
	return append(b, "</TagSet></Tags>"...)
}
