package ranges

import "antipode/geo"

// A range that was recovered with loss (R4) may have lost records that it received and acknowledged. The closed records
// that its source has made since leave those out (R12), but a full one of before, which the bus may still bring, does not
// name them, and those that follow it would join: Last Sync Time would pass over what was lost. So the first one that is
// taken is full and of a time after all that the range can have acknowledged. Nothing was taken that was ahead of the
// clock of the leader then by more than geo.ClockOffMax, which may have been ahead of that of a leader now by as much (R6);
// and each leader's term is after the recovery. The clock is this leader's, which other voters agreed with: that by which
// the range was recovered was compared by nobody, and one that was ahead would have held Last Sync Times back for as long.
// A leader that is the only voter has only its own.
//
// What was nevertheless taken ahead of the clock, with both locations' clocks ahead and set right since, is not covered.

// ClosesFrom is the least time of a closed record that may be taken where none is since the range was recovered with
// loss; 0 if it never was.
func (tx *Tx) ClosesFrom() geo.Timestamp {
	if tx.r.Machine.Incarnation() == 0 {
		return 0
	}
	return geo.TimestampOf(tx.r.clock.began.Add(2 * geo.ClockOffMax))
}
