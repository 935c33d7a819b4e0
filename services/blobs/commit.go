package blobs

import (
	"context"
	"errors"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/kv"
)

// Which is where a Put Block List looks for a block.
type Which byte

// The three elements of the request's body.
const (
	Committed   Which = 1
	Uncommitted Which = 2
	Latest      Which = 3
)

// Named is one block of a Put Block List.
type Named struct {
	Which Which
	// ID is decoded, 1 to BlockIDMax bytes.
	ID string
}

// PutBlockList is Put Block List (protocol/blob.md B12): the blob becomes the named blocks,
// in order. Its change names rows of blocks, never chunks: those came with the blocks,
// earlier in the same partition.
type PutBlockList struct {
	Command
	// Blocks are at most CommittedMax.
	Blocks []Named
	// Blob is what is stored besides the payload, as in PutBlob.Blob.
	Blob Blob

	// prepared is set before the command is submitted, and only read afterwards.
	prepared *plan
}

// ErrOvertaken: another write of the blob was committed between Prepare and Evaluate. The list, or
// the one before it, is too long to be looked up again while the range waits. Nothing happened:
// call Prepare again. Likewise of a copy that another write has ended: begin it again.
var ErrOvertaken = errors.New("blobs: the block list was overtaken by another write of the blob")

// replanMax bounds the lists for which Evaluate repeats the look-up: the new list and the old
// one.
const replanMax = 1000

// plan is a list whose blocks were found, and the state in which they were found.
type plan struct {
	staging Staging
	list    geo.Timestamp
	// rows and lengths describe the rows of the new list.
	rows    [][]byte
	lengths []uint64
	// left: some block of the session or of the old list is not named.
	left bool
}

// Prepare finds the blocks on a snapshot, so that Evaluate, which holds up the whole range, has
// little left to do for a list of 50,000. It refuses only what Evaluate would refuse, and tests the
// guard first, as that does.
func (w *PutBlockList) Prepare(ctx context.Context, get kv.Getter, now geo.Timestamp) error {
	w.InTime(now)
	old, err := w.replaced(get, true)
	if err != nil {
		return err
	}
	s, _, _, err := GetStaging(get, w.Name, now)
	if err != nil {
		return err
	}
	f := finder{get: get, name: w.Name, staging: s, old: old.List}
	w.prepared, err = w.plan(ctx, &f)
	return err
}

// Evaluate implements services.Write.
func (w *PutBlockList) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	old, err := w.replaced(get, true)
	if err != nil {
		return services.Effect{}, err
	}
	s, live, there, err := GetStaging(get, w.Name, at)
	if err != nil {
		return services.Effect{}, err
	}
	p := w.prepared
	if p == nil || p.staging != s || p.list != old.List.id() {
		// The blob was written since Prepare, or Prepare was not called.
		if len(w.Blocks) > replanMax {
			return services.Effect{}, ErrOvertaken
		}
		f := finder{get: get, name: w.Name, staging: s, old: old.List, rowsMax: replanMax / segmentEntries}
		if p, err = w.plan(context.Background(), &f); err != nil { // It is short.
			return services.Effect{}, err
		}
	}
	b := w.Blob
	b.replaces(&old, at)
	if len(p.rows) > 0 {
		b.List = &BlockList{ID: at, Segments: p.lengths}
	}
	for _, n := range p.lengths {
		b.Length += n
	}
	effect, err := b.effect()
	if err != nil {
		return services.Effect{}, err
	}
	effect.Ops = discard(effect.Ops, &old, there)
	for i, v := range p.rows {
		effect.Ops = append(effect.Ops, change.Op{Row: listRow(at, i), Value: v})
	}
	w.Modified, w.Left = at, p.left || there && !live || s.Copying.Session != 0 || old.shares()
	return effect, nil
}

// plan finds the named blocks. Once ctx has ended, the error is that of ctx.
func (w *PutBlockList) plan(ctx context.Context, f *finder) (*plan, error) {
	f.found = make(map[string]found, len(w.Blocks))
	entries := make([]entry, 0, len(w.Blocks))
	for i, b := range w.Blocks {
		if i%segmentEntries == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(b.ID) != len(w.Blocks[0].ID) {
			return nil, storageerr.InvalidBlobOrBlock
		}
		e, err := f.find(b)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	p := &plan{staging: f.staging, list: f.old.id(), left: f.staged < int(f.staging.Count) || f.reused < f.committedCount()}
	p.rows, p.lengths = cutSegments(entries)
	return p, nil
}

// finder looks up blocks, each once.
type finder struct {
	get     kv.Getter
	name    Name
	staging Staging
	old     *BlockList
	// rowsMax bounds the rows of the old list that are read; zero means no bound.
	rowsMax int
	// committed are the blocks of the old list, read at their first use.
	committed map[string]entry
	found     map[string]found
	// staged and reused count the distinct blocks found in the session and in the list.
	staged, reused int
}

type found struct {
	entry entry
	which Which
}

func (f *finder) find(b Named) (entry, error) {
	if seen, ok := f.found[b.ID]; ok {
		if seen.which != b.Which {
			return entry{}, storageerr.InvalidBlockList // A block that is named again must be named as the same kind.
		}
		return seen.entry, nil
	}
	e, ok, err := entry{}, false, error(nil)
	if b.Which != Committed {
		e, ok, err = f.inSession(b.ID)
	}
	if !ok && err == nil && b.Which != Uncommitted {
		e, ok, err = f.inList(b.ID)
	}
	if err != nil {
		return entry{}, err
	}
	if !ok {
		return entry{}, storageerr.InvalidBlockList
	}
	f.found[b.ID] = found{e, b.Which}
	return e, nil
}

func (f *finder) inSession(id string) (entry, bool, error) {
	if len(id) != int(f.staging.IDLength) {
		return entry{}, false, nil
	}
	b, ok, err := getBlock(f.get, f.name, f.staging.Session, id)
	if err != nil || !ok {
		return entry{}, false, err
	}
	f.staged++
	return entry{f.staging.Session, b.Length, id}, true, nil
}

func (f *finder) inList(id string) (entry, bool, error) {
	if f.committed == nil {
		if f.rowsMax > 0 && len(f.old.rows()) > f.rowsMax {
			return entry{}, false, ErrOvertaken
		}
		f.committed = map[string]entry{}
		for i := range f.old.rows() {
			entries, err := getSegment(f.get, f.name, f.old.ID, i)
			if err != nil {
				return entry{}, false, err
			}
			for _, e := range entries {
				f.committed[e.id] = e
			}
		}
	}
	e, ok := f.committed[id]
	if ok {
		f.reused++
	}
	return e, ok, nil
}

// committedCount returns how many blocks the old list has; at least one if the list exists and
// was not read.
func (f *finder) committedCount() int {
	if f.committed == nil && f.old != nil {
		return 1
	}
	return len(f.committed)
}

// id is the list's id, zero for none.
func (l *BlockList) id() geo.Timestamp {
	if l == nil {
		return 0
	}
	return l.ID
}

// rows are the lengths of the list's rows, none for no list.
func (l *BlockList) rows() []uint64 {
	if l == nil {
		return nil
	}
	return l.Segments
}

// discard appends the end of a session and of a committed list, if they exist. Of a list that a snapshot may name Dead
// finds out.
func discard(ops []change.Op, old *Blob, staging bool) []change.Op {
	if staging {
		ops = append(ops, change.Op{Delete: true, Row: []byte{rowStaging}})
	}
	if old.shares() && !plantedbugs.Planted(plantedbugs.SnapshotListEnded) {
		return ops
	}
	for i := range old.List.rows() {
		ops = append(ops, change.Op{Delete: true, Row: listRow(old.List.ID, i)})
	}
	return ops
}
