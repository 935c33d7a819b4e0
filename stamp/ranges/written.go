package ranges

import (
	"bytes"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// A settlement that keeps the receiver's side has the source take rows from the receiver, and must undo nothing that
// a client writes meanwhile. So while a stream is stopped for change.StopTaking, the group that commits a change of
// it also commits which units the change writes (keys.Partition.Unit), under the number of the base. A unit that is
// not among them has been written by no record above the base: at the receiver it is as it was at the cursor that
// was set to the base, whenever it is read, but for what the settlement itself has done. So the source may take it
// whole, at any time, and no two states of a unit are mixed. What the settlement leaves as it is at the source (see
// Leave) is among them before the first row of it is sent again: what the receiver then has of it is not what it had.
// For the same reason nothing else sends rows of a unit that may still be taken: see Takes.
//
// These keys are part of the range's rows: durable, and lost in a recovery with the changes that they belong to. They
// go to no other location, and are deleted when the settlement ends.

// written stages which units a change of a partition and its lane writes, if its stream is settled for the receiver's side.
func (tx *Tx) written(p keys.Partition, rec *change.Record) error {
	s, base := tx.taking(p, rec.Lane)
	if base == 0 {
		return nil
	}
	of := keys.Written(p.Service, s)
	mark := change.Record{CommitTime: rec.CommitTime, Partition: of.Append(nil)}
	var last []byte
	for _, op := range rec.Ops {
		row := writtenRow(base, p.Unit(op.Row))
		if bytes.Equal(last, row) {
			continue
		}
		last = row
		if _, marked, err := tx.Get(append(of.Append(nil), row...)); err != nil {
			return err
		} else if !marked {
			mark.Ops = append(mark.Ops, change.Op{Row: row, Value: []byte{1}})
		}
	}
	if len(mark.Ops) == 0 {
		return nil
	}
	return tx.Restate(of, mark)
}

// taking returns the stream of a partition on a lane, and the base of its settlement if that keeps the receiver's side; zero if
// there is none.
func (tx *Tx) taking(p keys.Partition, lane geo.Lane) (s geo.Stream, base geo.Seq) {
	gate := tx.Gate(p.Account)
	s = geo.Stream{Account: p.Account, Epoch: gate.Epoch, Range: tx.Range(), Lane: lane}
	if why, _ := tx.Stopped(s); gate.Numbered && why.Reason == change.StopTaking {
		base = why.Here.Seq
	}
	return s, base
}

// Leave stages that the settlement under way leaves the unit of a row as it is here, as if a client had written it.
func (tx *Tx) Leave(p keys.Partition, row []byte) error {
	return tx.written(p, &change.Record{CommitTime: tx.Timestamp(0), Lane: p.Lane(), Ops: []change.Op{{Row: row}}})
}

// Takes reports whether the unit of a row may still be taken from the receiver by the settlement under way.
func (tx *Tx) Takes(p keys.Partition, row []byte) (bool, error) {
	s, base := tx.taking(p, p.Lane())
	if base == 0 {
		return false, nil
	}
	written, err := tx.Written(s, base, p.Unit(row))
	return !written, err
}

// Written reports whether a client has written a unit of a stream since the settlement with a base began, which keeps
// the receiver's side, or Leave was called for it.
func (tx *Tx) Written(s geo.Stream, base geo.Seq, unit []byte) (bool, error) {
	key := keys.Written(Service(tx.Range()), s).Append(nil)
	_, marked, err := tx.Get(append(key, writtenRow(base, unit)...))
	return marked, err
}

// Holds reports whether a record is of a stream that the range numbers: between the last one that was deleted and the
// head, both included, without groups in flight. Of one below that it is not known any more.
func (tx *Tx) Holds(s geo.Stream, at geo.Head) (bool, error) {
	have, known, err := tx.r.Machine.OutboxAt(s, at.Seq)
	if change.Undecoded(err) { // The stream stops there (R11).
		return false, nil
	}
	return known && have.Head == at, err
}

func writtenRow(base geo.Seq, unit []byte) []byte {
	return append(keys.AppendUint64(nil, uint64(base)), unit...)
}

// forgetWrittenBefore stages the deletion of what written staged for a stream under lower bases: of a settlement that
// did not end.
func (tx *Tx) forgetWrittenBefore(s geo.Stream, base geo.Seq) error {
	prefix := keys.Written(Service(tx.Range()), s).Append(nil)
	return tx.Wipe(state.Span{Lower: prefix, Upper: append(bytes.Clone(prefix), writtenRow(base, nil)...)})
}

// forgetWritten stages the deletion of what written staged for a stream.
func (tx *Tx) forgetWritten(s geo.Stream) error {
	prefix := keys.Written(Service(tx.Range()), s).Append(nil)
	return tx.Wipe(state.Span{Lower: prefix, Upper: keys.PrefixEnd(prefix)})
}
