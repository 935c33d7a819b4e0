package blobs

import (
	"context"
	"crypto/md5"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/internal/clock"
	"antipode/services/blobs"
	"antipode/services/storageerr"
)

const (
	// stallBytes is what a source elsewhere, in another location or on another server, must bring within Handler.sourceStall.
	stallBytes = 256 << 10
	// refusalBytesMax is how much is read of the body of a refusal.
	refusalBytesMax = 4 << 10
	// elsewhereMax is the longest blob elsewhere that is copied, in bytes: it is carried out within the request.
	elsewhereMax = 5000 << 20
)

// answered is the answer of a server elsewhere, of which the body is left to read.
type answered struct {
	body io.ReadCloser
	// watched reads body.
	watched *protocol.SourceBody
	cancel  context.CancelFunc
	stall   *time.Timer
	// left is what is to come within wait, and max is what wait begins with.
	left      int
	wait, max time.Duration
}

// newAnswered begins to wait for the head of an answer. cancel ends its request.
func newAnswered(cancel context.CancelFunc, wait time.Duration) *answered {
	return &answered{cancel: cancel, stall: time.AfterFunc(wait, cancel), left: stallBytes, wait: wait, max: wait}
}

// begin has the head of the answer, and its body to read.
func (a *answered) begin(body io.ReadCloser) {
	a.stall.Stop()
	a.body, a.watched = body, protocol.WatchSource(body, a.cancel)
}

// Read implements io.Reader. A source that brings too little in too much time is cut off. Only the time counts in which it is
// waited for.
func (a *answered) Read(p []byte) (int, error) {
	a.stall.Reset(a.wait)
	began := clock.System{}.Now() // Sockets live in the machine's time.
	n, err := a.watched.Read(p)
	a.stall.Stop()
	a.wait -= clock.System{}.Now().Sub(began)
	if a.left -= n; a.left <= 0 {
		a.left, a.wait = stallBytes, a.max
	}
	return n, err
}

func (a *answered) close() {
	a.stall.Stop()
	a.cancel()
	_ = a.body.Close()
}

// openElsewhere asks a source elsewhere for the bytes that are copied. It is one read, so they are of one state.
func (c *call) openElsewhere(src *protocol.Source) (*origin, error) {
	in := c.in.from
	if in.tagged {
		return nil, storageerr.NotImplemented
	}
	ctx, cancel := context.WithCancel(c.ctx)
	a := newAnswered(cancel, c.sourceStall)
	r := (&http.Request{Method: http.MethodGet, URL: &url.URL{}, Header: in.header.Clone()}).WithContext(ctx)
	r.Header["Accept-Encoding"] = []string{"identity"} // The bytes as they are stored.
	if in.tags != nil {
		r.Header[headerIfTags] = []string{c.r.Header(headerSourceIfTags)}
	}
	if in.bytes.ok {
		r.Header["Range"] = []string{in.bytes.text()}
	}
	resp, err := src.Do(r)
	a.stall.Stop()
	if err != nil {
		cancel()
		return nil, c.brokenSource(err)
	}
	a.begin(resp.Body)
	o := &origin{Source: src, elsewhere: a, blob: &source{Blob: &blobs.Blob{}}}
	if err := c.readAnswer(o, resp); err != nil {
		a.close()
		return nil, err
	}
	return o, nil
}

// brokenSource is the error of a source elsewhere that was not reached, or whose answer could not be read to its end.
func (c *call) brokenSource(err error) error {
	if errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
		return storageerr.OperationTimedOut
	}
	if _, known := storageerr.Of(err); known {
		return err
	}
	c.o.Logger.Info("the source of a copy cannot be read", "error", err, "request_id", c.r.ID)
	return storageerr.CannotVerifyCopySource
}

// readAnswer reads the head of the answer of a source elsewhere.
func (c *call) readAnswer(o *origin, resp *http.Response) error {
	in, conditional := c.in.from, len(c.in.from.header) > 0 || c.in.from.tags != nil
	switch resp.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
	case http.StatusNotModified:
		return storageerr.SourceConditionNotMet
	case http.StatusPreconditionFailed:
		if conditional {
			return storageerr.SourceConditionNotMet
		}
		return refusedElsewhere(resp)
	case http.StatusRequestedRangeNotSatisfiable:
		if in.bytes.ok {
			return storageerr.InvalidRange
		}
		return refusedElsewhere(resp)
	default:
		return refusedElsewhere(resp)
	}
	b := o.blob.Blob
	switch kind := resp.Header.Get("X-Ms-Blob-Type"); {
	case kind != "" && kind != "BlockBlob" && in.blocks: // What an append or a page blob has besides is not in the answer.
		return storageerr.InvalidSourceBlobType
	case resp.ContentLength < 0:
		return unsuitable("The copy source does not send its length.")
	case resp.Header.Get("Content-Encoding") == "" && resp.Uncompressed:
		return unsuitable("The copy source sends an encoding that was not asked for.")
	}
	b.Length = uint64(resp.ContentLength)
	o.span.end = b.Length
	if err := in.checkPart(resp); err != nil {
		return err
	}
	h := resp.Header
	b.Properties = blobs.Properties{
		ContentType: h.Get("Content-Type"), ContentEncoding: h.Get("Content-Encoding"), ContentLanguage: h.Get("Content-Language"),
		ContentDisposition: h.Get("Content-Disposition"), CacheControl: h.Get("Cache-Control"),
	}
	var err error
	if b.Metadata, err = wire.ParseMetadata(h, true); err != nil {
		return unsuitable("The copy source has metadata that is not valid.")
	}
	if sum, ok := wire.DecodeBase64(h.Get(headerContentMD5)); ok && len(sum) == md5.Size {
		b.MD5 = sum
	}
	return nil
}

// checkPart requires that the answer is the part that was asked for.
func (in *copySource) checkPart(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		if in.bytes.ok {
			return unsuitable("The copy source does not send parts.")
		}
		return nil
	}
	first, last := uint64(0), uint64(0)
	_, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-%d/", &first, &last)
	switch {
	case err != nil || !in.bytes.ok || first != in.bytes.first || last < first || last-first+1 != uint64(resp.ContentLength) || last > in.bytes.last:
		return unsuitable("The copy source does not send the part that was asked for.")
	case in.bytes.closed() && last < in.bytes.last:
		return storageerr.InvalidRange
	}
	return nil
}

// unsuitable is the error of a source that can be read, and not be copied from.
func unsuitable(why string) error { return storageerr.CopySourceRefused(http.StatusConflict, "", why) }

// refusedElsewhere is the error of a copy whose source answers with a refusal, or not with a blob.
func refusedElsewhere(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, refusalBytesMax))
	var doc struct{ Code, Message string }
	_ = xml.Unmarshal(body, &doc) // What is no such document has neither.
	code := resp.Header.Get("X-Ms-Error-Code")
	if code == "" {
		code = doc.Code
	}
	message, _, _ := strings.Cut(doc.Message, "\n")
	return storageerr.CopySourceRefused(resp.StatusCode, code, message)
}
