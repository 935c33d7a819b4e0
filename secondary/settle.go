package secondary

import (
	"bytes"
	"encoding/json"
	"fmt"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/services/blobs"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/ranges"
)

// kindRebase is the kind of rebase.
const kindRebase = "secondary.rebase"

// Rebase implements receive.Applier.
func (a *Applier) Rebase(r receive.Rebase, done func(error)) {
	a.submit(r.Stream.Source(), &rebase{r}, done)
}

// Settled implements receive.Applier.
func (a *Applier) Settled(st geo.Stream, base geo.Head, at geo.Seq, done func(error)) {
	a.submit(st.Source(), &ranges.EndSettle{Stream: st, Base: base, At: at}, done)
}

// rebase is the command that sets the cursor of a stream to the base from which it goes on: see
// ranges.Settle. It does nothing unless the cursor is still the one that the source offered the base to.
type rebase struct{ receive.Rebase }

// Evaluate implements ranges.Command.
func (c *rebase) Evaluate(tx *ranges.Tx) error {
	rec, err := change.ParseRecord(c.Record)
	if err != nil || rec.Stream() != c.Stream || len(rec.Ops) > 0 {
		return fmt.Errorf("%w: the base of %s: %w", errApply, c.Stream, err)
	}
	gate, at := tx.Gate(c.Stream.Account), tx.Cursor(c.Stream)
	if gate.Role != change.RoleSecondary || !gate.Open || gate.Epoch != c.Stream.Epoch || at.Applied != c.From || rec.Seq <= at.Applied.Seq {
		return nil
	}
	if why, _ := tx.Stopped(c.Stream); why.Reason.Stands() && !why.Reason.MaySettle() {
		return nil
	}
	src := c.Stream.Source()
	switch known := tx.Known(src); {
	case rec.Incarnation < known.Incarnation || tx.Ahead(rec.CommitTime) > 0:
		return nil // The source lost the base; or its time is not to be taken yet (R6), and it is offered again.
	case rec.Incarnation > known.Incarnation:
		tx.TakeClosed(cursor.Recovered(src, rec.Incarnation))
	}
	tx.Rebase(c.Record, &rec)
	base := tx.Cursor(c.Stream).Applied
	tx.Stop(c.Stream, change.Stop{Reason: change.StopSettling, Here: base, There: base})
	return nil
}

// Reclaims implements ranges.Reclaimer: it needs almost no room.
func (c *rebase) Reclaims() {}

// Kind implements ranges.Portable.
func (c *rebase) Kind() string { return kindRebase }

// Encode implements ranges.Portable.
func (c *rebase) Encode() []byte {
	b, _ := json.Marshal(c.Rebase) // It has no value that JSON lacks.
	return b
}

func parseRebase(body []byte) (ranges.Portable, error) {
	c := &rebase{}
	if err := json.Unmarshal(body, &c.Rebase); err != nil {
		return nil, fmt.Errorf("%w: a base: %w", errApply, err)
	}
	return c, nil
}

// EncodeResult implements ranges.Portable.
func (c *rebase) EncodeResult() []byte { return nil }

// DecodeResult implements ranges.Portable.
func (c *rebase) DecodeResult(b []byte) error {
	if len(b) != 0 {
		return errApply
	}
	return nil
}

// foundBytesMax is how many bytes of rows one group keeps in the lost-and-found, but for the last row: an entry of more
// than 16 MiB is never committed.
const foundBytesMax = 4 << 20

// foundRowBytes is what a row costs in the entry besides its key and its value: it has a record for itself.
const foundRowBytes = 512

// keepFound keeps in the lost-and-found what a record of a stream that is being settled is about to overwrite or
// delete with something else. It returns false if that is more than the group has room for: it has kept a part,
// and the record has to wait.
func (c *apply) keepFound(tx *ranges.Tx, st geo.Stream, rec *change.Record) (whole bool, err error) {
	why, _ := tx.Stopped(st)
	if !why.Reason.Settles() {
		return true, nil
	}
	for _, op := range rec.Ops {
		key := append(bytes.Clone(rec.Partition), op.Row...)
		value, present, err := tx.Get(key)
		if err != nil {
			return false, err
		}
		if !present || !op.Delete && bytes.Equal(value, op.Value) {
			continue
		}
		if kept, err := tx.Kept(st, why.Here.Seq, key); kept || err != nil {
			if err != nil {
				return false, err
			}
			continue
		}
		if c.found >= foundBytesMax {
			return false, nil
		}
		c.found += len(key) + len(value) + foundRowBytes
		chunks, _ := blobs.RowChunks(key, value) // Of a row that cannot be decoded the bytes are kept.
		if err := tx.KeepFound(st, why.Here.Seq, key, value, chunks); err != nil {
			return false, err
		}
	}
	return true, nil
}
