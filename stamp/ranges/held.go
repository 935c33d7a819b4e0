package ranges

import (
	"bytes"
	"slices"

	"antipode/stamp/change"
	"antipode/stamp/state"
)

// held is the rows that a group has changed but its batch does not have yet. The batch takes them in the order of their
// keys, and of one row the last change alone: each command on a subqueue writes the head row of it, and a group has up
// to hundreds of them. Rows in their order cost the memtable less, since new messages are side by side, and so are those
// that are invisible for the same time.
//
// Invariant: what is held is written before the batch takes anything but changes, and at the end of the group.
type held struct {
	// on: changes are held. In other ranges than those of queues it would be for nothing.
	on bool
	// keys are the keys of rows, one after the other, reused from group to group.
	keys []byte
	rows []heldRow
}

// heldRow is the change of a row, whose key is in held.keys. The value is that of the change.
type heldRow struct {
	from, to int
	value    []byte
	deleted  bool
}

// heldKeysKept is how many bytes of keys are kept for the next group.
const heldKeysKept = 256 << 10

// apply gives an operation to the batch, or holds it. key may be reused; the value must stay as it is.
func (h *held) apply(batch *state.Batch, key []byte, op change.Op) error {
	switch {
	case h.on:
		from := len(h.keys)
		h.keys = append(h.keys, key...)
		h.rows = append(h.rows, heldRow{from, len(h.keys), op.Value, op.Delete})
		return nil
	case op.Delete:
		return batch.Delete(key)
	}
	return batch.Set(key, op.Value)
}

func (h *held) key(r heldRow) []byte { return h.keys[r.from:r.to] }

// last returns the last change of each row, in the order of their keys.
func (h *held) last() []heldRow {
	slices.SortStableFunc(h.rows, func(a, b heldRow) int { return bytes.Compare(h.key(a), h.key(b)) })
	out := h.rows[:0]
	for i, r := range h.rows {
		if i+1 == len(h.rows) || !bytes.Equal(h.key(r), h.key(h.rows[i+1])) {
			out = append(out, r)
		}
	}
	return out
}

// write gives the batch what is held.
func (h *held) write(batch *state.Batch) error {
	for _, r := range h.last() {
		var err error
		if r.deleted {
			err = batch.Delete(h.key(r))
		} else {
			err = batch.Set(h.key(r), r.value)
		}
		if err != nil {
			return err
		}
	}
	clear(h.rows)
	if h.rows, h.keys = h.rows[:0], h.keys[:0]; cap(h.keys) > heldKeysKept {
		h.rows, h.keys = nil, nil
	}
	return nil
}
