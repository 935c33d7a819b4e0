package ranges

import (
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/outbox"
)

// What a former primary looks at in its outbox, once its gate is closed and nothing is numbered any more (R22).

// Streams returns the streams of an account that the range is, or was, the source of, in no order.
func (tx *Tx) Streams(a geo.Account) []geo.Stream { return tx.r.Machine.streamsOf(a) }

// Trimmed returns the last record of a stream that left the outbox.
func (tx *Tx) Trimmed(s geo.Stream) geo.Head { return tx.r.Machine.TrimmedHead(s) }

// Unsent returns encoded records of the outbox from number n of a stream on, up to bytesMax in total, but one at least if
// there is one. kv.ErrBusy: some that follow are not applied yet.
func (tx *Tx) Unsent(s geo.Stream, n geo.Seq, bytesMax int) ([][]byte, error) {
	if n > tx.Head(s).Seq {
		return nil, nil
	}
	out, err := outbox.Read(tx.r.o.State, tx.Range(), s, n, bytesMax)
	if err == nil && len(out) == 0 {
		err = kv.ErrBusy
	}
	return out, err
}

// Before returns the head of a stream before record n of the outbox; ok is false if that does not have the record.
func (tx *Tx) Before(s geo.Stream, n geo.Seq) (at geo.Head, ok bool, err error) {
	h, ok, err := outbox.Before(tx.r.o.State, tx.Range(), s, n)
	return h.Head, ok, err
}

// Answers says which records of the outbox were surely answered.
func (tx *Tx) Answers() change.Answers {
	m := tx.r.Machine
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.outbox.Answers()
}
