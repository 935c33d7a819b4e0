package ranges

import (
	"errors"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// Detach stages what makes a copy of the state of a range that of a clone: the gate of one account alone, so that
// it takes no command of another account, and nothing of any stream, sent or received. So it never ships and
// never receives. as is the incarnation that the clone begins, under
// which its gates need no comparison.
func Detach(b *state.Batch, id geo.RangeID, a geo.Account, g change.Gate, as geo.Incarnation) error {
	var errs []error
	for _, prefix := range [][]byte{
		keys.Gates(id), keys.Heads(id), keys.OutboxAll(id), keys.Trims(id), keys.Cursors(id), keys.ReceivedAll(id), keys.Stops(id), keys.Images(id),
	} {
		errs = append(errs, b.DeleteRange(prefix, keys.PrefixEnd(prefix)))
	}
	return errors.Join(append(errs,
		b.Delete(keys.Answers(id)),
		b.Set(keys.Gate(id, a), change.AppendGate(nil, g)),
		b.Set(keys.Compared(id), change.AppendCompared(nil, as)),
	)...)
}
