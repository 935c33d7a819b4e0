package directory

import (
	"time"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// RememberStream keeps in the catalog when the bus made the stream that comes from Origin, so that whichever process
// receives next can see that it was made again (R15). It serves an alarm only: records that were lost with a stream
// are pulled whatever the row holds.
type RememberStream struct {
	Origin geo.Location
	Made   time.Time
}

// Evaluate implements ranges.Command.
func (c RememberStream) Evaluate(tx *ranges.Tx) error {
	known, err := catalog.StreamMade(tx, c.Origin)
	if err != nil || known.Equal(c.Made) {
		return err
	}
	op, err := catalog.StreamOp(c.Origin, c.Made)
	if err != nil {
		return err
	}
	p := catalog.StreamPartition()
	return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{op}})
}
