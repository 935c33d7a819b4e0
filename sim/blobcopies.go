package sim

import (
	"errors"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// copyBlob copies a blob or a snapshot of the same service, as it is at a leader, by one change or in steps. Its content is what
// the source's last write left: whatever becomes of the source, the copy has to have all of its payload at each replica.
func (s *Sim) copyBlob(a *account, n blobs.Name, done func()) {
	source, l := s.drawBlob(a), a.home
	leave := s.patiently(done)
	l.underLease(s.blobRange(), func(_ *member, r *ranges.Range) {
		w := &blobs.CopyBlob{Command: s.guarded(n, a), AnyType: s.chance(0.5)}
		snap := r.State().Snapshot()
		content, err := s.readSource(snap, source, w)
		if closeErr := snap.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			s.fail(err)
		}
		if content == nil {
			leave()
			return
		}
		w.Blob.Copied = &blobs.Copied{ID: [16]byte{byte(len(s.ops))}, Bytes: w.Blob.Length}
		s.after(s.between(0, thinkMax), func() { s.stageCopy(a, l, w, content, s.chance(0.4), leave) })
	})
}

// readSource adds the payload of a blob, or of a snapshot of it, to a copy. It returns its content, nil if there is none.
func (s *Sim) readSource(r kv.Reader, n blobs.Name, w *blobs.CopyBlob) (*blobContent, error) {
	last, err := lastWrite(r, n.Partition())
	if err != nil || last < 0 || s.ops[last].twin == nil {
		return nil, err
	}
	content, at := s.ops[last].after, geo.Timestamp(0)
	if of := s.ops[last].twin.snapshots; len(of) > 0 && s.chance(0.5) {
		at = slices.Sorted(maps.Keys(of))[s.rng.IntN(len(of))]
		content = of[at]
	}
	b, err := blobs.GetBlob(r, n)
	if at != 0 {
		b, err = blobs.GetSnapshot(r, n, at)
	}
	if errors.Is(err, storageerr.BlobNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w.Begin([16]byte{byte(len(s.ops))})
	if !b.InRows() {
		w.Blob.Inline, w.Blob.Chunks, w.Blob.Length = b.Inline, b.Chunks, b.Length
	}
	if b.Appended != nil {
		w.Blob.Appended = &blobs.Appended{Sealed: b.Appended.Sealed}
	}
	for off := w.Blob.Length; off < b.Length; {
		var blocks []blobs.CopyBlock
		if blocks, off, err = blobs.BlocksAt(r, n, &b, off, w.Has); err != nil {
			return nil, err
		}
		w.Add(blocks)
	}
	return content, nil
}

// stageCopy submits the blocks of a copy, each by a change where it is one in steps, and then the copy.
func (s *Sim) stageCopy(a *account, l *location, w *blobs.CopyBlob, content *blobContent, steps bool, done func()) {
	var step *blobs.StageCopy
	if w.StepBytes = 0; steps {
		w.StepBytes = 1
		step = w.Stage()
	}
	if step == nil {
		o := s.newOpAt(a, w, l)
		o.copied = content
		s.submitBlob(o, done)
		return
	}
	o := s.newOpAt(a, step, l)
	s.submitBlob(o, func() {
		if o.outcome != acked {
			done()
			return
		}
		w.Staged(step)
		s.after(s.between(0, thinkMax), func() { s.stageCopy(a, l, w, content, true, done) })
	})
}

// tookCopy plays a copy that took effect.
func (t *blobTwin) tookCopy(c *blobContent) {
	own := *c
	own.list = maps.Clone(c.list)
	t.replace(&own, maps.Clone(c.list))
}
