package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// A stream of an account that has no secondary here any more has records that are gone at the source. The
// receiver was behind in it and asked for them; once the range here reports the stream as ended, it
// asks no more (R7, R10).
func TestR10EndedStreamIsNotPulled(t *testing.T) {
	w := newWorld(t, 1)
	w.writeTo(testRange, 30)
	ended := testStream(testRange, 1)
	r := w.receiver()
	w.run(r, 5*time.Second)
	w.outbox[ended] = nil
	w.heads[ended] = geo.Head{Seq: w.cursors[ended].Seq + 5, Hash: 5}
	w.closedH[ended] = w.heads[ended].Seq
	r.ranges[testRange].mirror.reload()
	w.run(r, 5*time.Second)
	before := w.pulls[ended]
	require.Positive(t, before)

	w.ended = map[geo.Account]geo.Epoch{ended.Account: {Number: ended.Epoch.Number + 1, Location: ended.Epoch.Location}}
	delete(w.cursors, ended)
	delete(w.closedH, ended)
	w.run(r, 5*time.Second)
	before = w.pulls[ended]
	w.run(r, 30*time.Second)
	require.Equal(t, before, w.pulls[ended])
}
