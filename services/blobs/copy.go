package blobs

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Copied is a copy that has ended: what the properties of its destination show of it (protocol/blob.md 13.4).
type Copied struct {
	ID [16]byte
	// Source is the URL that the content was copied from, without the secret part of a signature.
	Source string
	// Bytes is how many were copied: all of the source.
	Bytes uint64
	// Ended is the commit time of the copy.
	Ended geo.Timestamp
}

// copySuccess is the status of a copy that has ended well. Durable; those of others are free.
const copySuccess = 1

func appendCopied(dst []byte, c *Copied) []byte {
	dst = append(append(dst, copySuccess), c.ID[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Ended))
	return append(binary.AppendUvarint(dst, c.Bytes), c.Source...)
}

func (r *reader) copied() *Copied {
	status, c := r.byte(), &Copied{}
	copy(c.ID[:], r.take(len(c.ID)))
	c.Ended, c.Bytes = geo.Timestamp(r.uint64()), r.uvarint()
	c.Source = string(r.take(len(r.b)))
	r.failed = r.failed || status != copySuccess
	return c
}

// CopyBlock is one block of a blob that is copied.
type CopyBlock struct {
	// ID is what its key has behind the session: of a block list the id, of an append blob where in the blob the block ends.
	ID string
	Block
}

// copyBlocksMax is how many blocks BlocksAt returns at most; they end with the one with which their rows are stageBytes long.
const copyBlocksMax = segmentEntries

// BlocksAt returns blocks of a blob whose payload is in rows, in order, from the one at off, and where the next one
// begins: at b.Length there is none. off is 0 or what an earlier call returned. For a block whose id is known, or
// that is named again, only the length is returned. ErrReplaced once they are gone.
func BlocksAt(r kv.Reader, n Name, b *Blob, off uint64, known func(id string) bool) (blocks []CopyBlock, next uint64, err error) {
	if b.Appended != nil {
		return appendedAt(r, n, b, off)
	}
	seen, rows := map[string]struct{}{}, 0
	for i, length := range b.List.Segments {
		if next+length <= off {
			next += length
			continue
		}
		entries, err := getSegment(r, n, b.List.ID, i)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range entries {
			switch {
			case next < off:
				next += uint64(e.length)
				continue
			case rows >= stageBytes:
				return blocks, next, nil
			}
			block := CopyBlock{ID: e.id, Block: Block{Length: e.length}}
			if _, again := seen[e.id]; !again && !known(e.id) {
				var ok bool
				if block.Block, ok, err = getBlock(r, n, e.session, e.id); err == nil && !ok {
					err = ErrReplaced
				}
				if err != nil {
					return nil, 0, err
				}
				block.Block = block.clone()
				seen[e.id] = struct{}{}
			}
			blocks, rows, next = append(blocks, block), rows+block.rowBytes(), next+uint64(e.length)
		}
		break
	}
	return blocks, next, nil
}

// appendedAt is BlocksAt of an append blob.
func appendedAt(r kv.Reader, n Name, b *Blob, off uint64) (blocks []CopyBlock, next uint64, err error) {
	session := n.keyOf(blockRow(b.Appended.Session, ""))
	it, err := r.Scan(n.keyOf(appendedRow(b.Appended.Session, off+1)), keys.PrefixEnd(session))
	if err != nil {
		return nil, 0, err
	}
	next = off
	for rows := 0; err == nil && next < b.Length && len(blocks) < copyBlocksMax && rows < stageBytes; {
		if !it.Next() {
			err = ErrReplaced
			break
		}
		id := it.Key()[len(session):]
		var block Block
		var start uint64
		if block, start, err = parseAppended(id, it.Value()); err != nil {
			break
		}
		if start != next || start+uint64(block.Length) > b.Length {
			err = ErrReplaced
			break
		}
		blocks = append(blocks, CopyBlock{string(id), block.clone()})
		rows += blocks[len(blocks)-1].rowBytes()
		next += uint64(block.Length)
	}
	return blocks, next, errors.Join(err, it.Close())
}

// clone is the block in memory of its own row no more.
func (b Block) clone() Block {
	b.Inline = append([]byte(nil), b.Inline...)
	return b
}

// rowBytes is about how much of a change the block takes: its row, and its chunks once more.
func (b *CopyBlock) rowBytes() int {
	return 2*len(b.Chunks)*refLen + len(b.Inline) + len(b.ID) + blockHeaderLen
}

// stageBytes is how long the rows of a copy become that come by one change; of a longer copy the others come before, by
// StageCopy. One block may be longer: see TestLongestBlock.
const stageBytes = 512 << 10

// CopyBlob makes or replaces a blob by the content of another one (protocol/blob.md 13). It writes rows of its own and shares
// the chunks: its change names those, so that each node, and the other location, has them, or fetches them, before it is
// applied (R3). A node that has dropped one refuses it with kv.ErrBusy: the source is gone (R9).
//
// The payload is in Blob, as in PutBlob.Blob, or added by Add.
type CopyBlob struct {
	Command
	// Blob is what is stored, as in PutBlob.Blob; of an append blob without payload, Appended has Sealed. Copied may be nil; its
	// time is set at evaluation.
	Blob Blob
	// AnyType: a blob of another type is replaced, unless it has snapshots.
	AnyType bool
	// StepBytes is how long the rows become that come by one change, in bytes; zero means half a MiB.
	StepBytes int

	// list is the block list, in order, of which nothing is kept but for a block blob. A block that is named again is added once.
	list []entry
	seen map[string]struct{}
	// blocks are those that come with this change, and rows their length. session is that of those before; zero if there are none.
	blocks  []CopyBlock
	rows    int
	session geo.Timestamp
	id      [16]byte
}

// Begin names the copy, among those that may be under way.
func (w *CopyBlob) Begin(id [16]byte) { w.id, w.seen = id, map[string]struct{}{} }

// Has reports whether a block with an id was added.
func (w *CopyBlob) Has(id string) bool {
	_, has := w.seen[id]
	return has
}

// Add adds blocks behind those that were added before. full reports that they are to be submitted now: see Stage.
func (w *CopyBlob) Add(blocks []CopyBlock) (full bool) {
	for _, b := range blocks {
		w.Blob.Length += uint64(b.Length)
		if w.Blob.Appended != nil {
			w.Blob.Appended.Blocks++
		} else {
			w.list = append(w.list, entry{length: b.Length, id: b.ID})
		}
		if w.Has(b.ID) {
			continue
		}
		if w.Blob.Appended == nil {
			w.seen[b.ID] = struct{}{}
		}
		w.blocks = append(w.blocks, b)
		w.rows += b.rowBytes()
	}
	return w.rows > w.stepBytes()
}

func (w *CopyBlob) stepBytes() int { return cmp.Or(w.StepBytes, stageBytes) }

// Stage returns what submits some of the blocks that were added, about StepBytes of rows; nil once few are left. Staged takes
// its result.
func (w *CopyBlob) Stage() *StageCopy {
	if w.rows <= w.stepBytes() {
		return nil
	}
	s, n := &StageCopy{Command: Command{Name: w.Name}, ID: w.id, Session: w.session}, 0
	for n < w.stepBytes() && len(w.blocks) > 0 {
		b := w.blocks[0]
		s.Blocks, w.blocks = append(s.Blocks, b), w.blocks[1:]
		n += b.rowBytes()
	}
	w.rows -= n
	return s
}

// Staged takes the result of a StageCopy that was committed.
func (w *CopyBlob) Staged(s *StageCopy) { w.session = s.began }

// End returns what ends a copy that is not committed, so that its blocks can be dropped; nil if none was staged. It has no effect
// on one that was committed.
func (w *CopyBlob) End() *StageCopy {
	if w.session == 0 {
		return nil
	}
	return &StageCopy{Command: Command{Name: w.Name}, ID: w.id, Session: w.session, Ends: true}
}

// Admit tests the guard on the state that get shows, without a write, so that nothing is read or staged in vain. Evaluate
// tests again.
func (w *CopyBlob) Admit(get kv.Getter, now geo.Timestamp) error {
	w.InTime(now)
	_, err := w.admit(get)
	return err
}

func (w *CopyBlob) admit(get kv.Getter) (old Blob, err error) {
	old, err = w.replaced(get, false)
	switch {
	case err != nil || old.Created == 0 || (w.Blob.Appended != nil) == (old.Appended != nil):
	case !w.AnyType:
		err = storageerr.InvalidBlobType
	case old.Snapshots.Count > 0:
		err = storageerr.SnapshotsPresent
	}
	return old, err
}

// Evaluate implements services.Write.
func (w *CopyBlob) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	old, err := w.admit(get)
	if err != nil {
		return services.Effect{}, err
	}
	s, _, there, err := GetStaging(get, w.Name, 0)
	if err != nil {
		return services.Effect{}, err
	}
	session := at
	if w.session != 0 {
		if s.Copying != (Copying{w.id, w.session}) && !plantedbugs.Planted(plantedbugs.CopyOvertaken) {
			return services.Effect{}, ErrOvertaken
		}
		session = w.session
	}
	b := w.Blob
	b.replaces(&old, at)
	if c := b.Copied; c != nil {
		ended := *c
		ended.Ended = at
		b.Copied = &ended
	}
	var rows [][]byte
	switch {
	case b.Appended != nil:
		appended := *b.Appended
		appended.Session = session
		b.Appended = &appended
	case len(w.list) > 0:
		for i := range w.list {
			w.list[i].session = session
		}
		var lengths []uint64
		rows, lengths = cutSegments(w.list)
		b.List = &BlockList{ID: at, Segments: lengths}
	}
	effect, err := b.effect()
	if err != nil {
		return services.Effect{}, err
	}
	effect.Ops = discard(effect.Ops, &old, there)
	for i, v := range rows {
		effect.Ops = append(effect.Ops, change.Op{Row: listRow(at, i), Value: v})
	}
	effect.Chunks = b.Chunks
	effect.Ops, effect.Chunks, err = putBlocks(effect.Ops, effect.Chunks, session, w.blocks)
	w.Modified, w.Left = at, s.Session != 0 || s.Copying.Session != 0 && w.session == 0 || old.InRows()
	return effect, err
}

// putBlocks appends rows of blocks, and the chunks that they name.
func putBlocks(ops []change.Op, chunks []extent.Ref, session geo.Timestamp, blocks []CopyBlock) ([]change.Op, []extent.Ref, error) {
	for i := range blocks {
		b := &blocks[i]
		v, err := b.value()
		if err != nil {
			return nil, nil, fmt.Errorf("block %x: %w", b.ID, err)
		}
		if ops = append(ops, change.Op{Row: blockRow(session, b.ID), Value: v}); !plantedbugs.Planted(plantedbugs.CopyUnnamed) {
			chunks = append(chunks, b.Chunks...)
		}
	}
	return ops, chunks, nil
}

// StageCopy writes blocks of a copy that has too many for one change. Nothing reads them before CopyBlob is committed. Every
// other write that replaces or deletes the blob ends the copy, and its blocks are dead then; it and CopyBlob are refused with
// ErrOvertaken.
type StageCopy struct {
	// Command has the name alone: CopyBlob.Admit was asked before, and its commit asks again.
	Command
	ID [16]byte
	// Session is that of the steps before; zero begins, and ends another copy that is under way.
	Session geo.Timestamp
	Blocks  []CopyBlock
	// Ends: it has no blocks, and ends the copy.
	Ends bool
	// began is a result: the session.
	began geo.Timestamp
}

// Evaluate implements services.Write.
func (w *StageCopy) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	s, live, there, err := GetStaging(get, w.Name, at)
	if err != nil {
		return services.Effect{}, err
	}
	if w.Ends {
		return w.end(s, there)
	}
	session := w.Session
	w.Left = there && !live
	if session == 0 {
		w.Left = w.Left || s.Copying.Session != 0
		s.Copying, session = Copying{w.ID, at}, at
	}
	if s.Copying != (Copying{w.ID, session}) {
		return services.Effect{}, ErrOvertaken
	}
	effect := services.Effect{Ops: []change.Op{{Row: []byte{rowStaging}, Value: appendStaging(nil, &s)}}, Level: s.level()}
	if effect.Ops, effect.Chunks, err = putBlocks(effect.Ops, nil, session, w.Blocks); err == nil {
		w.began = session
	}
	return effect, err
}

// end ends the copy, unless another write has.
func (w *StageCopy) end(s Staging, there bool) (services.Effect, error) {
	if !there || s.Copying != (Copying{w.ID, w.Session}) {
		return services.Effect{}, nil
	}
	s.Copying, w.Left = Copying{}, true
	if s.Session == 0 {
		return services.Effect{Ops: []change.Op{{Delete: true, Row: []byte{rowStaging}}}}, nil
	}
	return services.Effect{Ops: []change.Op{{Row: []byte{rowStaging}, Value: appendStaging(nil, &s)}}}, nil
}
