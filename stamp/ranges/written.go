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
// whole, at any time, and no two states of a unit are mixed.
//
// These keys are part of the range's rows: durable, and lost in a recovery with the changes that they belong to. They
// go to no other location, and are deleted when the settlement ends.

// written stages which units a change writes, if its stream is settled for the receiver's side.
func (tx *Tx) written(p keys.Partition, rec *change.Record) error {
	gate := tx.Gate(p.Account)
	if !gate.Numbered {
		return nil
	}
	s := geo.Stream{Account: p.Account, Epoch: gate.Epoch, Range: tx.Range(), Lane: rec.Lane}
	why, _ := tx.Stopped(s)
	if why.Reason != change.StopTaking {
		return nil
	}
	of := keys.Written(p.Service, s)
	mark := change.Record{CommitTime: rec.CommitTime, Partition: of.Append(nil)}
	for _, op := range rec.Ops {
		row := writtenRow(why.Here.Seq, p.Unit(op.Row))
		if n := len(mark.Ops); n > 0 && bytes.Equal(mark.Ops[n-1].Row, row) {
			continue
		}
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

// Written reports whether a client has written a unit of a stream since the settlement with a base began, which keeps
// the receiver's side.
func (tx *Tx) Written(s geo.Stream, base geo.Seq, unit []byte) (bool, error) {
	key := keys.Written(Service(tx.Range()), s).Append(nil)
	_, marked, err := tx.Get(append(key, writtenRow(base, unit)...))
	return marked, err
}

func writtenRow(base geo.Seq, unit []byte) []byte {
	return append(keys.AppendUint64(nil, uint64(base)), unit...)
}

// forgetWritten stages the deletion of what written staged for a stream.
func (tx *Tx) forgetWritten(s geo.Stream) error {
	prefix := keys.Written(Service(tx.Range()), s).Append(nil)
	return tx.Wipe(state.Span{Lower: prefix, Upper: keys.PrefixEnd(prefix)})
}
