package sim

import (
	"bytes"
	"fmt"
	"slices"

	"antipode/services/blobs"
)

// logName is the blob of a container that clients mostly append to. Everything else befalls it as it does the others.
const logName = "b3"

// appendBlob does one operation of an append blob.
func (s *Sim) appendBlob(a *account, n blobs.Name, done func()) {
	c := a.home.history[s.blobRange()].twin(n.Partition()).content
	switch {
	case c == nil || !c.appended || s.chance(0.03) || c.sealed && s.chance(0.5):
		s.submitBlob(s.newOp(a, &blobs.PutBlob{Command: s.guarded(n, a), Append: true}), done)
	case s.chance(0.05):
		s.submitBlob(s.newOp(a, &blobs.Seal{Command: s.guarded(n, a)}), done)
	default:
		w, p := &blobs.AppendBlock{Command: s.guarded(n, a)}, s.drawPayload()
		if s.chance(0.4) {
			position := uint64(len(c.bytes))
			if s.chance(0.2) {
				position++ // A client that is wrong.
			}
			w.Position = &position
		}
		w.Block = blobs.Block{Length: uint32(len(p.bytes)), Inline: p.inline(), Chunks: p.refs}
		s.upload(s.newOp(a, w), p, done)
	}
}

// tookAppend plays an append that took effect. It was to be refused where the blob is no append blob, or sealed, or of
// another length than the client asked for.
func (h *history) tookAppend(t *blobTwin, o *op, w *blobs.AppendBlock) {
	c := t.content
	switch {
	case c == nil || !c.appended:
		h.fail(ErrAppended, "write %d appended to %s, which is no append blob", o.id, w.Name.Blob)
		return
	case c.sealed:
		h.fail(ErrAppended, "write %d appended to %s, which is sealed", o.id, w.Name.Blob)
	case w.Position != nil && *w.Position != uint64(len(c.bytes)):
		h.fail(ErrAppended, "write %d appended to %s of %d bytes, where it was to have %d", o.id, w.Name.Blob, len(c.bytes), *w.Position)
	}
	o.offset = uint64(len(c.bytes))
	t.content = &blobContent{bytes: slices.Concat(c.bytes, o.payload.bytes), appended: true, sealed: c.sealed}
}

// tookSeal plays a seal that took effect.
func (h *history) tookSeal(t *blobTwin, o *op) {
	if t.content == nil || !t.content.appended {
		h.fail(ErrAppended, "write %d sealed what is no append blob", o.id)
		return
	}
	t.content = &blobContent{bytes: t.content.bytes, appended: true, sealed: true}
}

// checkAppended: a block that was acknowledged begins where its answer says.
func (s *Sim) checkAppended(o *op) {
	if w, is := o.write.(*blobs.AppendBlock); is && o.index != 0 {
		s.counts.AppendChecked++
		if w.Offset != o.offset {
			s.fail(fmt.Errorf("%w: write %d of %s is at %d, answered was %d", ErrAppended, o.id, w.Name.Blob, o.offset, w.Offset))
		}
	}
}

// same reports whether two readers got the same; nil got nothing.
func (c *blobContent) same(d *blobContent) bool {
	if c == nil || d == nil {
		return c == d
	}
	return bytes.Equal(c.bytes, d.bytes) && c.appended == d.appended && c.sealed == d.sealed
}
