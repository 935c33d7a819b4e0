package outbox

import (
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// rowBytesKept is the largest buffer of a row that is kept for the next one.
const rowBytesKept = 256 << 10

// staged is a record that goes into the batch, with the place before it.
type staged struct {
	stream  geo.Stream
	seq     geo.Seq
	before  change.Volume
	encoded []byte
}

// writeStaged gives the batch the records that it does not have yet.
func (o *Outbox) writeStaged(w Writer) error {
	for _, r := range o.staged {
		o.key = keys.AppendOutbox(o.key[:0], o.id, r.stream, r.seq)
		o.row = change.AppendOutboxRow(o.row[:0], r.before, r.encoded)
		if err := w.Set(o.key, o.row); err != nil {
			return err
		}
	}
	clear(o.staged)
	if o.staged = o.staged[:0]; cap(o.row) > rowBytesKept {
		o.row = nil
	}
	return nil
}
