package primary

import (
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/services/blobs"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// rowsRecordBytes bounds the rows that share a record. A larger row has one alone, as it had when it was
// written.
const rowsRecordBytes = 256 << 10

// row is a row of this location that the secondary gets again.
type row struct {
	partition keys.Partition
	op        change.Op
	// chunks is the payload that the row names.
	chunks []extent.Ref
}

// accountRows returns the bounds of the rows of an account that a range holds.
func accountRows(tx *ranges.Tx, s geo.Service, a geo.Account) (from, to []byte) {
	held, _ := ranges.Span(tx.Range())
	prefix := keys.AppendAccount(nil, s, a)
	own := geo.Span{Start: string(prefix), End: string(keys.PrefixEnd(prefix))}.Within(held)
	return []byte(own.Start), []byte(own.End)
}

// rowOf returns the row of a key: its value, or its deletion if it is not present. For bytes that are no
// row it returns an error.
func rowOf(key, value []byte, present bool) (r row, err error) {
	if r.partition, r.op.Row, err = keys.ParsePartition(key); err != nil {
		return row{}, err
	}
	if !present {
		r.op.Delete = true
		return r, nil
	}
	r.op.Value = value
	if r.chunks, err = blobs.RowChunks(key, value); err != nil {
		err = fmt.Errorf("row %x of container %q, object %q: %w", r.op.Row, r.partition.Container, r.partition.Object, err)
	}
	return r, err
}

// size is about what the row takes in a record.
func (r row) size() int {
	return len(r.op.Row) + len(r.op.Value) + len(r.chunks)*len(extent.ChunkID{})
}

// stageRows stages changes that set or delete rows. They are numbered like any other change, so that
// the secondary gets them in order with all others. Rows of one partition that follow each other
// share records. The node must hold the payload.
func stageRows(tx *ranges.Tx, rows []row) error {
	for len(rows) > 0 {
		p := rows[0].partition
		rec := change.Record{CommitTime: tx.Timestamp(p.Generation.Created), Partition: p.Append(nil)}
		n, bytes := 0, 0
		for n < len(rows) && rows[n].partition == p && (n == 0 || bytes+rows[n].size() <= rowsRecordBytes) {
			r := rows[n]
			rec.Ops = append(rec.Ops, r.op)
			rec.Chunks = addRefs(rec.Chunks, r.chunks)
			bytes += r.size()
			n++
		}
		if err := tx.Restate(p, rec); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// addRefs appends those of refs that are not in named, each once.
func addRefs(named, refs []extent.Ref) []extent.Ref {
	if len(refs) == 0 {
		return named
	}
	seen := idsOf(named)
	named = slices.Clip(named) // It may be a part of what a row was made of.
	for _, ref := range refs {
		if !seen[ref.ID] {
			seen[ref.ID] = true
			named = append(named, ref)
		}
	}
	return named
}

func idsOf(refs []extent.Ref) map[extent.ChunkID]bool {
	out := make(map[extent.ChunkID]bool, len(refs))
	for _, ref := range refs {
		out[ref.ID] = true
	}
	return out
}
