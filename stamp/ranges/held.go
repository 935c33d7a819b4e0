package ranges

import (
	"bytes"
	"slices"

	"antipode/stamp/change"
	"antipode/stamp/state"
)

// heldMax bounds the rows that are held back at once. Every operation of a queue is compared with each of them.
const heldMax = 8

// held is the rows that a group has changed but its batch does not have yet. Each command on a subqueue writes the head
// row of it last, and a group has up to hundreds of them: of one row the batch takes the last value alone, instead of a
// key for each in the memtable, which is flushed with all of them.
//
// Invariant: what is held is written before the batch takes anything but changes, and at the end of the group.
type held struct {
	// on: the last row of a change is held. In other ranges than those of queues it would be for nothing.
	on   bool
	rows []heldRow
}

type heldRow struct{ key, value []byte }

// apply gives an operation to the batch. A row that is to be held is not written now, and what was held of the same row
// never is. key may be reused; the value must stay as it is.
func (h *held) apply(batch *state.Batch, key []byte, op change.Op, hold bool) error {
	if i := slices.IndexFunc(h.rows, func(r heldRow) bool { return bytes.Equal(r.key, key) }); i >= 0 {
		if hold {
			h.rows[i].value = op.Value
			return nil
		}
		h.rows = slices.Delete(h.rows, i, i+1)
	}
	switch {
	case op.Delete:
		return batch.Delete(key)
	case !hold:
		return batch.Set(key, op.Value)
	}
	if len(h.rows) == heldMax {
		oldest := h.rows[0]
		h.rows = slices.Delete(h.rows, 0, 1)
		if err := batch.Set(oldest.key, oldest.value); err != nil {
			return err
		}
	}
	h.rows = append(h.rows, heldRow{bytes.Clone(key), op.Value})
	return nil
}

// write gives the batch what is held.
func (h *held) write(batch *state.Batch) error {
	for _, r := range h.rows {
		if err := batch.Set(r.key, r.value); err != nil {
			return err
		}
	}
	clear(h.rows)
	h.rows = h.rows[:0]
	return nil
}
