package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// R16: a receiver whose stream has forked asks again and again. It sets the cursor to the base that it is offered,
// from the cursor that it asked with, and only to the record of that hash; while its fork is settled it asks
// with the reason, and ends the settlement that it asked for, up to the head of the first answer.
func TestR16SettlementIsFollowed(t *testing.T) {
	for seed := range uint64(10) {
		w := newWorld(t, seed)
		w.writeTo(testRange, 40)
		r := w.receiver()
		w.run(r, 10*time.Second)
		st := testStream(testRange, 0)
		at := w.cursors[st]
		w.stops = map[geo.Stream]change.Stop{st: {Reason: change.StopForked, Here: at}}
		record := []byte("the base")
		base := geo.Head{Seq: at.Seq + 7, Hash: change.HashOf(record)}
		w.outbox[st] = map[geo.Seq][]byte{base.Seq: []byte("another record")}
		asked, reasons, head, again := 0, map[change.StopReason]bool{}, geo.Head{Seq: base.Seq + 10}, false
		w.compare = func(cursors map[geo.Stream]Cursor, _ bool) []Mismatch {
			c, ok := cursors[st]
			if !ok {
				return nil
			}
			asked++
			reasons[c.Stop] = true
			if c.Stop != change.StopSettling {
				return []Mismatch{{Stream: st, Reason: change.StopSettling, There: base, Stopped: true}}
			}
			if again { // The source has been recovered with loss, and settles it again.
				return nil
			}
			head.Seq++
			return []Mismatch{{Stream: st, Reason: change.StopSettling, There: head}}
		}
		r.ranges[testRange].mirror.reload()
		w.run(r, 30*time.Second)
		require.GreaterOrEqual(t, asked, 2, "it asks again")
		require.Empty(t, w.rebased, "another record is no base")
		w.outbox[st][base.Seq] = record
		w.run(r, 30*time.Second)
		require.NotEmpty(t, w.rebased)
		require.Equal(t, Rebase{Stream: st, From: at, Record: record}, w.rebased[0])
		require.Empty(t, w.settled)

		w.stops[st] = change.Stop{Reason: change.StopSettling, Here: base, There: base}
		r.ranges[testRange].mirror.reload()
		w.run(r, 30*time.Second)
		require.Greater(t, len(w.settled), 1, "it asks until its stop has ended")
		first := w.settled[0]
		require.Equal(t, ended{st, base, first.at}, first)
		require.Greater(t, head.Seq, first.at, "the head has moved on since")
		for _, end := range w.settled {
			require.Equal(t, first, end)
		}
		again = true
		w.run(r, 5*time.Second)
		again, w.settled, head.Seq = false, nil, base.Seq+100
		w.run(r, 5*time.Second)
		require.Greater(t, w.settled[0].at, base.Seq+100, "an answer from before it was settled again does not count")
		require.Equal(t, map[change.StopReason]bool{change.StopForked: true, change.StopSettling: true}, reasons)
		require.True(t, r.ranges[testRange].mayPull(st), "the stream goes on")
	}
}
