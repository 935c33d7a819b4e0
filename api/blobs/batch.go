package blobs

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// partsMax is how many parts a batch may have (protocol/blob.md S8).
const partsMax = 256

// part is a request of a batch, with its answer.
type part struct {
	r *protocol.Request
	// asked is the operation that it asks for.
	asked operation.Match
	// contentID is what its answer repeats; empty for none.
	contentID string
	answer    partAnswer
	// err is what it was refused with.
	err error
}

// blobBatch is Blob Batch (protocol/blob.md S8): deletions and changes of tiers, each answered as if it were sent alone. All
// of the body is read and looked at before a part has an effect. What is held of it counts for twice its length: its bytes
// and the headers read from them, then these and what errors repeat of them.
func (c *call) blobBatch() error {
	boundary, err := wire.BatchBoundary(c.r.Header("Content-Type"))
	if err != nil {
		return err
	}
	c.bodyHold = c.inFlight.Hold(c.r)
	defer c.bodyHold.Release()
	parts, err := c.readBatch(boundary)
	if errors.Is(err, storageerr.BatchPartsExceeded) {
		p := &part{r: &protocol.Request{HTTP: c.r.HTTP, Version: c.r.Version, ID: c.r.ID, At: c.r.At}}
		p.fail(err)
		parts = []*part{p}
	} else if err != nil {
		return err
	} else if err := c.runBatch(parts); err != nil {
		return err
	}
	c.answerBatch(parts)
	return nil
}

// readBatch reads the body to its end. An error is one of the batch as a whole: the first in the order of the parts, but
// for one that makes the body none.
func (c *call) readBatch(boundary string) ([]*part, error) {
	body, err := protocol.ReadWhole(c.ctx, c.r, c.bodyHold, c.asked.BodyMax(c.r.Version))
	if err != nil {
		return nil, err
	}
	in := wire.NewBatchReader(bytes.NewReader(body), boundary)
	var parts []*part
	var failed error
	for n := 0; ; n++ {
		r, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return parts, failed
		case err != nil:
			return nil, err
		case n == partsMax:
			failed = storageerr.BatchPartsExceeded
		case n > partsMax || failed != nil:
		default:
			var p *part
			if p, failed = c.newPart(r, n); failed == nil && n > 0 && p.asked.Name != parts[0].asked.Name {
				failed = storageerr.MixedBatch
			}
			parts = append(parts, p)
		}
	}
}

// newPart takes a part as the request that it would be alone, but for its version. An error is one of the batch.
func (c *call) newPart(in *wire.BatchRequest, n int) (*part, error) {
	if in.ChangeSet > 0 {
		return nil, storageerr.InvalidInput
	}
	target, err := c.r.Part(in.URI, strings.Join(in.Header["Host"], ","))
	if err != nil {
		return nil, err
	}
	hr := &http.Request{Method: in.Method, Header: in.Header, Body: http.NoBody, RequestURI: in.URI}
	p := &part{contentID: in.ContentID, r: &protocol.Request{
		HTTP: hr.WithContext(c.ctx), Target: target, ClientAddr: c.r.ClientAddr, Scheme: c.r.Scheme, InBatch: true,
		Version: c.r.Version, ID: partID(c.r.ID, n), At: c.r.At, Account: c.r.Account,
	}}
	if p.r.Query, err = protocol.ParseQuery(target.RawQuery); err != nil {
		return nil, err
	}
	p.asked = Lookup(p.r)
	switch {
	case p.asked.Name != "DeleteBlob" && p.asked.Name != "SetBlobTier":
		return nil, storageerr.InvalidInput
	case c.res.container != "" && p.asked.Container != c.res.container:
		return nil, storageerr.InvalidInput // The batch is one of a container.
	}
	return p, nil
}

// partID is the request id of a part: that of the batch, whose last digits count on.
func partID(id string, n int) string {
	const digits = 4
	if len(id) < digits {
		return id
	}
	at := len(id) - digits
	last, _ := strconv.ParseUint(id[at:], 16, 16) // It has no others.
	last += uint64(n) + 1
	return id[:at] + hex.EncodeToString([]byte{byte(last >> 8), byte(last)})
}

// findContainers resolves the containers of the parts in one read of the catalog. That of a container's batch came with the
// request.
func (c *call) findContainers(parts []*part) error {
	if c.res.container != "" && c.r.Container != nil {
		for _, p := range parts {
			p.r.Container = c.r.Container
		}
		return nil
	}
	var found map[string]*catalog.Found
	err := c.ask(c.o.Stamp.Route().Catalog(), func(s ranges.State) error {
		found = map[string]*catalog.Found{}
		for _, p := range parts {
			if name := p.asked.Container; found[name] == nil {
				of, err := c.o.Names.Get(s, geo.Blob, c.r.Account.Name, name)
				found[name] = &catalog.Found{Container: of, Err: err}
			}
		}
		return nil
	})
	for _, p := range parts {
		p.r.Container = found[p.asked.Container]
	}
	return err
}

// authorize refuses a part whose signature is wrong, or does not permit it.
func (c *call) authorize(p *part) error {
	if version := p.r.Header(protocol.HeaderVersion); version != "" && version != string(p.r.Version) {
		return badHeader(protocol.HeaderVersion, version)
	}
	sas, err := c.verifier.Check(p.r, p.asked, p.r.Account)
	if err != nil || sas == nil {
		return err
	}
	p.r.Access, err = sas.PermitFound(p.r, p.asked.Operation)
	return err
}
