package blobs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

const (
	// deadMax is how many rows one DropDead drops: its change stays below a MiB.
	deadMax = 10_000
	// deadWork is the work of looking at one row or at one entry of a list, in the unit of
	// services.Budget.
	deadWork = 8
)

// Dead returns rows of a blob that nothing will ever read, at most deadMax, from the row from on; nil is the first. next is
// where the following call begins, nil if all rows were examined; deadMax or the budget may end the call earlier.
//
// A list names blocks of the session that was open when it was committed, and of the list that it replaced, alone. So the
// lists that name one block follow each other without a gap, beginning with the first that was committed after the block's
// session began: DESIGN R9. A block is alive while its session is open, as that of a copy under way is, or if the first list that is left of those since its
// session names it. A list is left while the blob or a snapshot has it, an append blob's session likewise.
//
// Rows that are dead in one state are dead in every later one. So they may be dropped at any later time. r is a snapshot.
func Dead(ctx context.Context, r kv.Reader, n Name, from []byte, budget *services.Budget) (rows [][]byte, next []byte, err error) {
	b, _, err := lookup(r, n)
	if err != nil {
		return nil, nil, err
	}
	open, err := openSessions(r, n)
	if err != nil {
		return nil, nil, err
	}
	if from == nil {
		from = []byte{rowBlock}
	}
	partition := n.Partition().Append(nil)
	it, err := r.Scan(append(partition[:len(partition):len(partition)], from...), keys.PrefixEnd(partition))
	if err != nil {
		return nil, nil, err
	}
	walk := lefts{ctx: ctx, r: r, name: n, blob: &b, budget: budget}
	defer func() { err = errors.Join(err, walk.close(), it.Close()) }()
	for more := true; it.Next(); {
		row := it.Key()[len(partition):]
		if !more || len(rows) == deadMax {
			return rows, bytes.Clone(row), nil
		}
		kind, id, err := parseRowID(row)
		if err != nil {
			return nil, nil, fmt.Errorf("blob %q in container %q of %s: %w", n.Blob, n.Container, n.Account, err)
		}
		alive := false
		switch kind {
		case rowBlock:
			alive = slices.Contains(open[:], id)
			if !alive {
				alive, err = walk.names(row, id)
			}
		case rowList:
			alive, err = walk.has(id)
		case rowSnapshot:
			alive = b.Snapshots.Count > 0 && id == b.Snapshots.First
		}
		if err != nil {
			return nil, nil, err
		}
		if !alive {
			rows = append(rows, bytes.Clone(row))
		}
		if more, err = budget.Spend(ctx, deadWork); err != nil {
			return nil, nil, err
		}
	}
	return rows, nil, nil
}

// lefts walks the payloads that the snapshots of a blob and the blob itself have in rows, in the order of their ids, which is
// that of the snapshots. It is asked for ids that do not fall, of rows of one kind after the other.
type lefts struct {
	ctx    context.Context
	r      kv.Reader
	name   Name
	blob   *Blob
	budget *services.Budget

	kind byte        // of the rows that it was asked for
	it   kv.Iterator // over the snapshots; nil before the first question, and without snapshots
	// at is the payload that the walk is at, and ahead the one behind it; nil for none. based: ahead was the blob itself.
	at, ahead *Blob
	based     bool
	// named are the rows that at names, once they were read.
	named map[string]struct{}
}

// names reports whether a row of a block, of a session that is not open, is named by what is left.
func (w *lefts) names(row []byte, session geo.Timestamp) (bool, error) {
	if err := w.seek(rowBlock, session); err != nil || w.at == nil {
		return false, err
	}
	if a := w.at.Appended; a != nil {
		if a.Session != session {
			return false, nil
		}
		end, _, err := keys.CutUint64(row[9:]) // What was appended since the last of them is of nobody.
		return end <= w.at.Length && err == nil && !plantedbugs.Planted(plantedbugs.AppendedUnread), err
	}
	if w.named == nil {
		var err error
		if w.named, err = w.list(w.at.List); err != nil {
			return false, err
		}
	}
	_, used := w.named[string(row)]
	return used, nil
}

// has reports whether a list is left.
func (w *lefts) has(list geo.Timestamp) (bool, error) {
	err := w.seek(rowList, list)
	return err == nil && w.at != nil && w.at.rowsID() == list, err
}

// seek moves on to the first payload whose id is not below id.
func (w *lefts) seek(kind byte, id geo.Timestamp) error {
	if w.kind != kind {
		if err := w.begin(kind); err != nil {
			return err
		}
	}
	for w.at != nil && w.at.rowsID() < id {
		if err := w.next(); err != nil {
			return err
		}
	}
	return nil
}

// begin starts the walk, or starts it again for rows of another kind.
func (w *lefts) begin(kind byte) error {
	if err := w.close(); err != nil {
		return err
	}
	w.kind, w.it, w.at, w.ahead, w.based = kind, nil, nil, nil, false
	if w.blob.Snapshots.Count > 0 && !plantedbugs.Planted(plantedbugs.SnapshotListUnread) {
		first := w.name.keyOf(snapshotRow(w.blob.Snapshots.First, 0))
		it, err := w.r.Scan(first, keys.PrefixEnd(first[:len(first)-8]))
		if err != nil {
			return err
		}
		w.it = it
	}
	if err := w.load(); err != nil {
		return err
	}
	return w.next()
}

// next moves on to the next payload. Snapshots of one payload are one; of an append blob the last has the most blocks.
func (w *lefts) next() (err error) {
	w.at, w.named = w.ahead, nil
	for err == nil && w.at != nil {
		if err = w.load(); w.ahead == nil || w.ahead.rowsID() != w.at.rowsID() {
			break
		}
		w.at = w.ahead
	}
	return err
}

// load reads the payload behind ahead into it.
func (w *lefts) load() error {
	w.ahead = nil
	for w.it != nil && w.it.Next() {
		s, err := parseRow(w.it.Value())
		if err != nil {
			return fmt.Errorf("snapshot of blob %q in container %q of %s: %w", w.name.Blob, w.name.Container, w.name.Account, err)
		}
		if _, err := w.budget.Spend(w.ctx, deadWork); err != nil {
			return err
		}
		if s.InRows() {
			w.ahead = &s
			return nil
		}
	}
	if err := w.close(); err != nil {
		return err
	}
	if !w.based && w.blob.InRows() {
		w.ahead = w.blob
	}
	w.based = true
	return nil
}

// close ends the walk over the snapshots.
func (w *lefts) close() error {
	it := w.it
	if w.it = nil; it == nil {
		return nil
	}
	return it.Close()
}

// list reads the rows of the blocks that a committed list names.
func (w *lefts) list(l *BlockList) (map[string]struct{}, error) {
	named := map[string]struct{}{}
	for i := range l.rows() {
		entries, err := getSegment(w.r, w.name, l.ID, i)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			named[string(blockRow(e.session, e.id))] = struct{}{}
		}
		// The whole list is needed, whatever budget is left; CommittedMax bounds it.
		if _, err := w.budget.Spend(w.ctx, deadWork*len(entries)); err != nil {
			return nil, err
		}
	}
	return named, nil
}

// rowsID is the id of the list, or the session, that the payload is in; zero if it is not in rows.
func (b *Blob) rowsID() geo.Timestamp {
	if b.Appended != nil {
		return b.Appended.Session
	}
	return b.List.id()
}

// openSessions returns the session of uncommitted blocks, expired or not, and that of a copy under way; zero for none.
func openSessions(get kv.Getter, n Name) ([2]geo.Timestamp, error) {
	s, _, _, err := GetStaging(get, n, 0) // At this time nothing has expired.
	return [...]geo.Timestamp{s.Session, s.Copying.Session}, err
}

// parseRowID returns the kind of row that a key belongs to, and its session, list or Snapshots.First.
func parseRowID(row []byte) (kind byte, id geo.Timestamp, err error) {
	if len(row) < 9 || row[0] < rowBlock || row[0] > rowSnapshot {
		return 0, 0, fmt.Errorf("%w: row %x", ErrMalformed, row)
	}
	return row[0], geo.Timestamp(binary.BigEndian.Uint64(row[1:])), nil
}

// DropDead deletes rows that Dead returned. It changes nothing that can be read.
type DropDead struct {
	// Command has the name alone.
	Command
	Rows [][]byte
}

// Deletes implements services.Deletion.
func (w *DropDead) Deletes() bool { return true }

// IsRemainder implements services.Remainder.
func (w *DropDead) IsRemainder() {}

// Evaluate implements services.Write. It refuses rows that are plainly alive.
func (w *DropDead) Evaluate(get kv.Getter, _ geo.Timestamp) (services.Effect, error) {
	b, _, err := lookup(get, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	open, err := openSessions(get, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	ops := make([]change.Op, 0, len(w.Rows))
	for _, row := range w.Rows {
		kind, id, err := parseRowID(row)
		if err != nil || kind == rowBlock && slices.Contains(open[:], id) || kind == rowSnapshot && id == b.Snapshots.First ||
			kind != rowSnapshot && b.InRows() && id == b.rowsID() && !plantedbugs.Planted(plantedbugs.AppendedUnread) {
			return services.Effect{}, fmt.Errorf("blobs: row %x is not dead: %w", row, errors.Join(err, ErrMalformed))
		}
		ops = append(ops, change.Op{Delete: true, Row: row})
	}
	return services.Effect{Ops: ops}, nil
}
