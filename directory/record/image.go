package record

import (
	"time"

	"antipode/geo"
	"antipode/stamp/ranges"
)

// ApplyWait is the pause of what waits until the other location has applied more.
const ApplyWait = 100 * time.Millisecond

// MovePause is the pause between two looks at how far the other location is.
const MovePause = 10 * time.Millisecond

// NextTurn is the pause of what has its next turn.
const NextTurn = 10 * time.Millisecond

// ImageEnds are the last numbers of an account's streams of an epoch in a range.
func ImageEnds(tx *ranges.Tx, a geo.Account, e geo.Epoch) []geo.Seq {
	out := make([]geo.Seq, geo.LaneCount)
	for lane := range out {
		out[lane] = tx.Head(geo.Stream{Account: a, Epoch: e, Range: tx.Range(), Lane: geo.Lane(lane)}).Seq
	}
	return out
}

// OperationWait bounds how long an answer waits for the other location.
const OperationWait = 2 * time.Second
