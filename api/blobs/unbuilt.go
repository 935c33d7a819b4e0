package blobs

import (
	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/services/storageerr"
)

// Headers that are known and not built. One that is sent with a value refuses the
// request: left out, it would make the write or the read another one.
//
//nolint:gochecknoglobals // Tables, never written.
var (
	unbuiltOnRead = []string{
		"X-Ms-Encryption-Key", "X-Ms-Encryption-Key-Sha256", "X-Ms-Encryption-Algorithm",
	}
	unbuiltOnWrite = append([]string{
		"X-Ms-Structured-Body", "X-Ms-Structured-Content-Length", "X-Ms-Encryption-Scope",
		"X-Ms-Immutability-Policy-Until-Date", "X-Ms-Immutability-Policy-Mode", "X-Ms-Legal-Hold",
	}, unbuiltOnRead...)
	unbuiltOnCopy = []string{
		"X-Ms-Copy-Source-Authorization", "X-Ms-Source-Encryption-Key", "X-Ms-Source-Encryption-Key-Sha256", "X-Ms-Source-Encryption-Algorithm",
	}
	// Before 2019-12-12 blobs have no tags.
	headersOfTags = []string{headerTags, headerIfTags}
	// Delete Blob has these from 2026-04-06 on.
	headersOfTierChange = []string{"X-Ms-Access-Tier-If-Modified-Since", "X-Ms-Access-Tier-If-Unmodified-Since"}
	unbuiltOnCreate     = []string{"X-Ms-Default-Encryption-Scope", "X-Ms-Deny-Encryption-Scope-Override"}
)

// refuseUnbuilt refuses what would make the request another one and is not built, and the
// conditions that a write of a container does not take. Headers that are no condition, and those that an operation on a blob does
// not take are ignored (protocol/blob.md 16.1).
func (c *call) refuseUnbuilt() error {
	write := c.asked.Effect == operation.Writes
	if _, sent := c.r.HTTP.Header[headerCopySource]; sent && c.asked.Body.Kind == operation.Stream {
		return missing(headerCopySource) // Its value is empty: the content of the blob would become that of the body.
	}
	switch {
	case c.asked.On == operation.Container && write:
		return c.refuseConditions()
	case c.asked.On != operation.Blob:
		return nil
	}
	if err := c.readVersion(); err != nil {
		return err
	}
	if c.r.Version < protocol.Version20191212 {
		if err := c.refuse(headersOfTags); err != nil {
			return err
		}
	}
	if write && (c.asked.Takes&operation.TierChange == 0 || c.r.Version < version20260406) {
		if err := c.refuse(headersOfTierChange); err != nil {
			return err
		}
	}
	if c.asked.Takes&operation.Source != 0 {
		if err := c.refuse(unbuiltOnCopy); err != nil {
			return err
		}
	}
	if write {
		return c.refuse(unbuiltOnWrite)
	}
	return c.refuse(unbuiltOnRead)
}

// refuse answers UnsupportedHeader for the first header that was sent. Its value
// stays out of the answer: it may be a key.
func (c *call) refuse(names []string) error {
	for _, name := range names {
		if c.r.Header(name) != "" {
			return storageerr.UnsupportedHeader.With("HeaderName", lower(name))
		}
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
		if c.asked.Takes&header.group == 0 && protocol.HasCondition(c.r.HTTP.Header, header.name) {
			return storageerr.ConditionsNotSupported
		}
	}
	return nil
}
