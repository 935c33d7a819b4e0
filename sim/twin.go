package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
)

// errAway: the nodes that hold a chunk intact are away.
var errAway = errors.New("sim: no node that holds the chunk intact is up")

// blobTwin is a blob in maps, built from the writes that took effect: what services/blobs
// keeps in rows. Blocks are the numbers of the writes that put them.
type blobTwin struct {
	content           *blobContent
	staged, committed map[string]int
	snapshots         map[geo.Timestamp]*blobContent
	lease             lease.Lease
}

// blobContent is what a reader of a blob gets, nil for no blob.
type blobContent struct {
	bytes []byte
	// appended: it is an append blob.
	appended, sealed bool
	// list are the writes that put the blocks of its list, by id.
	list map[string]int
}

// twin is the blob of a partition as its primary has it at the end of the log.
func (h *history) twin(p keys.Partition) *blobTwin {
	key := string(p.Append(nil))
	t := h.twins[key]
	if t == nil {
		t = &blobTwin{staged: map[string]int{}, committed: map[string]int{}, snapshots: map[geo.Timestamp]*blobContent{}}
		h.twins[key] = t
	}
	return t
}

// known are the ids of all blocks, in order.
func (t *blobTwin) known() []string {
	ids := maps.Clone(t.committed)
	maps.Copy(ids, t.staged)
	return slices.Sorted(maps.Keys(ids))
}

// tookBlob plays a write that took effect, and keeps what a reader gets from then on.
func (h *history) tookBlob(p keys.Partition, o *op) {
	t := h.twin(p)
	h.tookUnderLease(t, o)
	switch w := o.write.(type) {
	case *blobs.SnapshotBlob:
		t.snapshots[o.at] = t.content
	case *blobs.DeleteSnapshot:
		delete(t.snapshots, w.Snapshot)
	case *blobs.PutBlob:
		t.replace(&blobContent{bytes: o.payload.bytes, appended: w.Append}, nil)
	case *blobs.AppendBlock:
		h.tookAppend(t, o, w)
	case *blobs.Seal:
		h.tookSeal(t, o)
	case *blobs.PutBlock:
		t.staged[w.ID] = o.id
	case *blobs.PutBlockList:
		h.tookList(t, w)
	case *blobs.CopyBlob:
		t.tookCopy(o.copied)
	case *blobs.DeleteBlob:
		if w.Snapshots == blobs.SnapshotsRefuse && len(t.snapshots) > 0 {
			h.fail(ErrContent, "%s was deleted with %d snapshots", w.Name.Blob, len(t.snapshots))
		}
		clear(t.snapshots)
		if w.Snapshots != blobs.SnapshotsOnly {
			t.replace(nil, nil)
		}
	}
	o.after, o.twin = t.content, t.clone()
}

func (t *blobTwin) clone() *blobTwin {
	c := *t
	c.staged, c.committed, c.snapshots = maps.Clone(t.staged), maps.Clone(t.committed), maps.Clone(t.snapshots)
	return &c
}

// replace ends the session and the committed list.
func (t *blobTwin) replace(c *blobContent, committed map[string]int) {
	t.content, t.committed, t.staged = c, committed, map[string]int{}
	if committed == nil {
		t.committed = map[string]int{}
	}
}

func (h *history) tookList(t *blobTwin, w *blobs.PutBlockList) {
	c, list := &blobContent{}, map[string]int{}
	for _, b := range w.Blocks {
		put, ok := t.staged[b.ID]
		if b.Which == blobs.Committed {
			ok = false
		}
		if !ok && b.Which != blobs.Uncommitted {
			if put, ok = t.committed[b.ID]; ok {
				h.s.counts.BlockReused++
			}
		}
		if !ok {
			h.fail(ErrContent, "block %s of %s was committed, but was not there", b.ID, w.Name.Blob)
			return
		}
		list[b.ID] = put
		c.bytes = append(c.bytes, h.s.ops[put].payload.bytes...)
	}
	c.list = list
	t.replace(c, maps.Clone(list))
}

// checkBlob: a replica's rows of a blob hold what its last write left, and the chunks that they
// name are on the same replica.
func (s *Sim) checkBlob(m *member, p keys.Partition, rows map[string]string) {
	if p.Service != geo.Blob || len(rows) == 0 {
		return
	}
	s.counts.BlobChecked++
	get := partitionRows{p, rows}
	last, err := lastWrite(get, p)
	var got *blobContent
	if err == nil {
		got, err = readBlob(m, get, nameOf(p), 0)
	}
	if err == nil && last >= 0 && s.ops[last].twin != nil {
		err = s.checkSnapshots(m, get, s.ops[last].twin)
	}
	switch {
	case errors.Is(err, errAway):
		return
	case errors.Is(err, extent.ErrNotFound):
		s.fail(fmt.Errorf("%w: %s-%d: read %s: %w", ErrPayload, m.l.name, m.id, p.Object, err))
	case err != nil:
		s.fail(fmt.Errorf("%w: %s-%d: read %s: %w", ErrContent, m.l.name, m.id, p.Object, err))
	case last < 0:
		s.fail(fmt.Errorf("%w: %s-%d: %s has rows, but of no write", ErrContent, m.l.name, m.id, p.Object))
	default:
		if !got.same(s.ops[last].after) {
			s.fail(fmt.Errorf("%w: %s-%d: %s after write %d", ErrContent, m.l.name, m.id, p.Object, last))
		}
	}
}

// snapshotRow begins the keys of snapshots in a blob's partition: docs/format/blob.md.
const snapshotRow = 5

// checkSnapshots: the snapshots of a blob on a replica are those that its last write left, with their content.
func (s *Sim) checkSnapshots(m *member, get partitionRows, t *blobTwin) error {
	n := nameOf(get.p)
	b, err := blobs.GetBlob(get, n)
	if err == nil && int(b.Snapshots.Count) != len(t.snapshots) {
		return fmt.Errorf("%d snapshots, want %d", b.Snapshots.Count, len(t.snapshots))
	}
	if err != nil && !errors.Is(err, storageerr.BlobNotFound) {
		return err
	}
	rows := 0
	for key := range get.rows {
		if b.Snapshots.Count > 0 && strings.HasPrefix(key, string(binary.BigEndian.AppendUint64([]byte{snapshotRow}, uint64(b.Snapshots.First)))) {
			rows++
		}
	}
	if rows != len(t.snapshots) {
		return fmt.Errorf("%d rows of snapshots, want %d", rows, len(t.snapshots))
	}
	for _, at := range slices.Sorted(maps.Keys(t.snapshots)) {
		got, err := readBlob(m, get, n, at)
		switch {
		case err != nil:
			return fmt.Errorf("snapshot %s: %w", at, err)
		case !got.same(t.snapshots[at]):
			return fmt.Errorf("snapshot %s has changed", at)
		}
		s.counts.SnapshotRead++
	}
	return nil
}

// readBlob reads a blob as Get Blob does, from one replica, or a snapshot of it where a time is given.
func readBlob(m *member, get partitionRows, n blobs.Name, at geo.Timestamp) (*blobContent, error) {
	b, err := blobs.GetBlob(get, n)
	if at != 0 {
		b, err = blobs.GetSnapshot(get, n, at)
	}
	if errors.Is(err, storageerr.BlobNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := &blobContent{appended: b.Appended != nil, sealed: b.Appended != nil && b.Appended.Sealed}
	for off := uint64(0); off < b.Length; off = uint64(len(out.bytes)) {
		w, err := blobs.WindowAt(get, n, &b, off, b.Length)
		if err != nil {
			return nil, err
		}
		for _, part := range w.Parts {
			data := part.Inline
			if data == nil {
				data = make([]byte, part.Chunk.Length)
				if err := m.readPart(part.Chunk, data); err != nil {
					return nil, err
				}
			}
			out.bytes = append(out.bytes, data...)
		}
		if uint64(len(out.bytes)) <= off {
			return nil, fmt.Errorf("%d of %d bytes", off, b.Length)
		}
	}
	return out, nil
}

// readPart reads a chunk from the replica; where its copy is damaged, from the others.
func (m *member) readPart(ref extent.Ref, data []byte) error {
	_, err := m.n.ReadChunk(ref, 0, data)
	if err == nil || !m.isCorrupted(ref) {
		return err
	}
	m.l.s.counts.ReadElsewhere++
	whole, err := m.l.readChunk(ref)
	copy(data, whole)
	if errors.Is(err, errLink) || err != nil && m.l.up() < len(m.l.members) {
		return errAway
	}
	return err
}
