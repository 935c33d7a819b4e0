package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"antipode/geo"
	"antipode/services"
	"antipode/services/blobs"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

const (
	// blobsOf is how many blobs clients of one container write to, blockIDs how many
	// block ids they use.
	blobsOf  = 4
	blockIDs = 5
	// Payloads and their chunks are short: their number matters, not their length.
	inlineBytesMax = 60
	chunkBytesMax  = 300
	chunksMax      = 3
	listMax        = 6
)

func (s *Sim) drawBlob(a *account) blobs.Name {
	return nameOf(s.drawContainer(a, geo.Blob).partition("b" + strconv.Itoa(s.rng.IntN(blobsOf))))
}

func nameOf(p keys.Partition) blobs.Name {
	return blobs.Name{Account: p.Account, Container: p.Container, Generation: p.Generation, Blob: p.Object}
}

// writeBlob does one operation of a blob.
func (s *Sim) writeBlob(a *account, done func()) {
	n := s.drawBlob(a)
	kind := s.rng.IntN(16)
	if kind < 8 && n.Blob == logName && s.chance(0.9) {
		s.appendBlob(a, n, done)
		return
	}
	switch kind {
	case 0, 1, 2:
		s.putBlob(a, n, done)
	case 3, 4, 5:
		s.putBlock(a, n, done)
	case 6, 7:
		s.putBlockList(a, n, done)
	case 8:
		s.submitBlob(s.newOp(a, &blobs.SetMetadata{Command: s.guarded(n, a), Metadata: []blobs.Pair{{Name: "op", Value: strconv.Itoa(len(s.ops))}}}), done)
	case 9:
		s.leaseBlob(a, n, done)
	case 10, 11:
		s.submitBlob(s.newOp(a, &blobs.SnapshotBlob{Command: blobs.Command{Name: n}}), done)
	case 12:
		s.deleteSnapshot(a, n, done)
	case 13, 14:
		s.copyBlob(a, n, done)
	default:
		with := [...]blobs.WithSnapshots{blobs.SnapshotsRefuse, blobs.SnapshotsInclude, blobs.SnapshotsOnly}[s.rng.IntN(3)]
		s.submitBlob(s.newOp(a, &blobs.DeleteBlob{Command: s.guarded(n, a), Uncommitted: s.chance(0.5), Snapshots: with}), done)
	}
}

func (s *Sim) blobRange() geo.RangeID { return geo.FirstRange(geo.Blob) }

// deleteSnapshot deletes one that is there, as far as the client knows.
func (s *Sim) deleteSnapshot(a *account, n blobs.Name, done func()) {
	w := &blobs.DeleteSnapshot{Command: blobs.Command{Name: n}, Snapshot: 1}
	if known := slices.Sorted(maps.Keys(a.home.history[s.blobRange()].twin(n.Partition()).snapshots)); len(known) > 0 {
		w.Snapshot = known[s.rng.IntN(len(known))]
	}
	s.submitBlob(s.newOp(a, w), done)
}

func (s *Sim) putBlob(a *account, n blobs.Name, done func()) {
	w := &blobs.PutBlob{Command: s.guarded(n, a)}
	p := s.drawPayload()
	w.Blob.Length, w.Blob.Inline, w.Blob.Chunks = uint64(len(p.bytes)), p.inline(), p.refs
	s.upload(s.newOp(a, w), p, done)
}

func (s *Sim) putBlock(a *account, n blobs.Name, done func()) {
	w := &blobs.PutBlock{Command: s.guarded(n, a), ID: strconv.Itoa(s.rng.IntN(blockIDs))}
	p := s.drawPayload()
	w.Block = blobs.Block{Length: uint32(len(p.bytes)), Inline: p.inline(), Chunks: p.refs}
	s.upload(s.newOp(a, w), p, done)
}

// payload returns the payload of the next operation: bytes that name the operation, in chunks or
// inline.
type payload struct {
	bytes []byte
	refs  []extent.Ref
}

func (p *payload) inline() []byte {
	if len(p.refs) > 0 {
		return nil
	}
	return p.bytes
}

func (s *Sim) drawPayload() payload {
	word := fmt.Sprintf("op %d;", len(s.ops))
	text := func(n int) []byte { return []byte(strings.Repeat(word, n/len(word)+1)[:n]) }
	if s.chance(0.4) {
		return payload{bytes: text(1 + s.rng.IntN(inlineBytesMax))}
	}
	var p payload
	for range 1 + s.rng.IntN(chunksMax) {
		var id extent.ChunkID
		for i := range id {
			id[i] = byte(s.rng.Uint32())
		}
		data := text(1 + s.rng.IntN(chunkBytesMax))
		p.refs = append(p.refs, extent.NewRef(id, data))
		p.bytes = append(p.bytes, data...)
	}
	return p
}

// upload brings the chunks to the nodes, one after the other, and then submits the
// change that names them.
func (s *Sim) upload(o *op, p payload, done func()) {
	o.payload = p
	rest := p.bytes
	var next func(refs []extent.Ref)
	next = func(refs []extent.Ref) {
		if len(refs) == 0 {
			s.submitBlob(o, done)
			return
		}
		s.after(s.between(0, 4*latencyMax), func() {
			data := rest[:refs[0].Length]
			rest = rest[len(data):]
			if err := o.l.PutChunk(context.Background(), refs[0], data); err != nil {
				s.notSubmitted(o)
				done()
				return
			}
			next(refs[1:])
		})
	}
	next(p.refs)
}

// putBlockList commits blocks that are there, as far as the client knows. The blocks are looked
// up on a snapshot before, or by the evaluation: then other writes may come between.
func (s *Sim) putBlockList(a *account, n blobs.Name, done func()) {
	w := &blobs.PutBlockList{Command: s.guarded(n, a), Blocks: s.drawList(a, n)}
	o := s.newOp(a, w)
	if s.chance(0.5) {
		s.submitBlob(o, done)
		return
	}
	leave := s.patiently(done)
	a.home.underLease(o.rangeID, func(_ *member, r *ranges.Range) {
		snap := r.State().Snapshot()
		err := w.Prepare(context.Background(), snap, geo.TimestampOf(s.clock.Now()))
		if closeErr := snap.Close(); closeErr != nil {
			s.fail(closeErr)
		}
		if err != nil {
			s.notSubmitted(o)
			leave()
			return
		}
		s.after(s.between(0, thinkMax), func() { s.submitBlob(o, leave) })
	})
}

// drawList names blocks, mostly some that are there.
func (s *Sim) drawList(a *account, n blobs.Name) []blobs.Named {
	twin := a.home.history[s.blobRange()].twin(n.Partition())
	known := twin.known()
	var list []blobs.Named
	kinds := map[string]blobs.Which{} // Repeats are of one kind.
	for range s.rng.IntN(listMax) {
		id, which := strconv.Itoa(s.rng.IntN(blockIDs)), blobs.Latest
		if len(known) > 0 && s.chance(0.95) {
			id = known[s.rng.IntN(len(known))]
			_, staged := twin.staged[id]
			switch {
			case s.chance(0.5):
			case staged:
				which = blobs.Uncommitted
			default:
				which = blobs.Committed
			}
		}
		if was, again := kinds[id]; again {
			which = was
		}
		kinds[id] = which
		list = append(list, blobs.Named{Which: which, ID: id})
	}
	return list
}

// submitBlob submits a write of a blob, and the deletion of what it left dead, as the
// front end does unless it dies meanwhile.
func (s *Sim) submitBlob(o *op, done func()) {
	s.submit(o, func() {
		if o.outcome != acked || !leftDead(o.write) || s.chance(0.25) {
			done()
			return
		}
		n := nameOf(o.write.Partition())
		leave := s.patiently(done)
		o.l.underLease(o.rangeID, func(_ *member, r *ranges.Range) {
			snap := r.State().Snapshot()
			rows, _, err := blobs.Dead(context.Background(), snap, n, nil, services.NewBudget(context.Background(), s.clock))
			if closeErr := snap.Close(); err == nil {
				err = closeErr
			}
			if err != nil {
				s.fail(err)
			}
			if len(rows) == 0 {
				leave()
				return
			}
			// At the location that found them: what is dead there need not be at another primary (R20).
			s.submit(s.newOpAt(o.account, &blobs.DropDead{Command: blobs.Command{Name: n}, Rows: rows}, o.l), leave)
		})
	})
}

// leftDead reports whether a write that took effect left rows that nothing will read.
func leftDead(w services.Write) bool {
	switch w := w.(type) {
	case *blobs.PutBlob:
		return w.Left
	case *blobs.PutBlock:
		return w.Left
	case *blobs.PutBlockList:
		return w.Left
	case *blobs.DeleteBlob:
		return w.Left
	case *blobs.DeleteSnapshot:
		return w.Left
	case *blobs.StageCopy:
		return w.Left
	case *blobs.CopyBlob:
		return w.Left
	}
	return false
}
