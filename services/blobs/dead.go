package blobs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"antipode/geo"
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

// Dead returns rows of a blob that nothing will ever read, at most deadMax, from the row from on;
// nil is the first. They are blocks of sessions that ended and that the committed list does not
// name, and rows of other lists. next is where the following call begins, nil if all rows were
// examined; deadMax or the budget may end the call earlier.
//
// Rows that are dead in one state are dead in every later one, since a list can only name blocks
// of the open session and of the previous list. So they may be dropped at any later time. r is a
// snapshot.
func Dead(ctx context.Context, r kv.Reader, n Name, from []byte, budget *services.Budget) (rows [][]byte, next []byte, err error) {
	b, _, err := lookup(r, n)
	if err != nil {
		return nil, nil, err
	}
	live, err := liveSession(r, n)
	if err != nil {
		return nil, nil, err
	}
	named, err := namedRows(ctx, r, n, b.List, budget)
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
	for more := true; it.Next(); {
		row := it.Key()[len(partition):]
		if !more || len(rows) == deadMax {
			return rows, bytes.Clone(row), it.Close()
		}
		kind, id, err := parseRowID(row)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("blob %q in container %q of %s: %w", n.Blob, n.Container, n.Account, err), it.Close())
		}
		_, used := named[string(row)]
		if !used && (kind != rowBlock || id != live) && (kind != rowList || id != b.List.id()) {
			rows = append(rows, bytes.Clone(row))
		}
		if more, err = budget.Spend(ctx, deadWork); err != nil {
			return nil, nil, errors.Join(err, it.Close())
		}
	}
	return rows, nil, it.Close()
}

// namedRows are the rows of the blocks that a committed list names.
func namedRows(ctx context.Context, get kv.Getter, n Name, l *BlockList, budget *services.Budget) (map[string]struct{}, error) {
	named := map[string]struct{}{}
	for i := range l.rows() {
		entries, err := getSegment(get, n, l.ID, i)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			named[string(blockRow(e.session, e.id))] = struct{}{}
		}
		// The whole list is needed, whatever budget is left; CommittedMax bounds it.
		if _, err := budget.Spend(ctx, deadWork*len(entries)); err != nil {
			return nil, err
		}
	}
	return named, nil
}

// liveSession returns the open session, expired or not; zero for none.
func liveSession(get kv.Getter, n Name) (geo.Timestamp, error) {
	s, _, _, err := GetStaging(get, n, 0) // At this time nothing has expired.
	return s.Session, err
}

// parseRowID returns the kind of row that a key belongs to, and its session or list.
func parseRowID(row []byte) (kind byte, id geo.Timestamp, err error) {
	if len(row) < 9 || row[0] != rowBlock && row[0] != rowList {
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
	live, err := liveSession(get, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	ops := make([]change.Op, 0, len(w.Rows))
	for _, row := range w.Rows {
		kind, id, err := parseRowID(row)
		if err != nil || kind == rowBlock && id == live || kind == rowList && id == b.List.id() {
			return services.Effect{}, fmt.Errorf("blobs: row %x is not dead: %w", row, errors.Join(err, ErrMalformed))
		}
		ops = append(ops, change.Op{Delete: true, Row: row})
	}
	return services.Effect{Ops: ops}, nil
}
