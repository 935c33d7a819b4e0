package receive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// R12: a closed record is folded into the next one only where the two make one chain of the same incarnation (R13): else the
// later one would stand for heads that it does not name, or for what a recovery has made void. The later head of a stream stays.
func TestR12FoldsOneChain(t *testing.T) {
	head := func(lane geo.Lane, seq geo.Seq) change.StreamHead {
		return change.StreamHead{Account: "a", Lane: lane, Seq: seq}
	}
	first := func() *change.Closed {
		return &change.Closed{Origin: "north", Range: 4, Incarnation: 1, T0: 10, T: 20, Heads: []change.StreamHead{head(1, 5), head(2, 6)}}
	}
	record := item{rec: &Record{Bytes: make([]byte, 100)}}
	for name, x := range map[string]struct {
		next  change.Closed
		room  int
		folds bool
	}{
		"the next of the chain":       {change.Closed{Incarnation: 1, T0: 20, T: 30}, 101, true},
		"one that overlaps":           {change.Closed{Incarnation: 1, T0: 15, T: 30}, 101, true},
		"one behind a gap":            {change.Closed{Incarnation: 1, T0: 21, T: 30}, 101, false},
		"one of a later incarnation":  {change.Closed{Incarnation: 2, T0: 20, T: 30}, 101, false},
		"a full one":                  {change.Closed{Incarnation: 1, T0: 20, T: 30, Full: true}, 101, false},
		"records that fill the batch": {change.Closed{Incarnation: 1, T0: 20, T: 30}, 100, false},
	} {
		next := x.next
		next.Origin, next.Range, next.Heads = "north", 4, []change.StreamHead{head(2, 7)}
		rr := &rangeReceiver{}
		require.Equal(t, x.folds, rr.fold(first(), []item{record, {closed: &next}}, x.room), name)
		if !x.folds {
			require.Equal(t, x.next.T0, next.T0, name)
			require.Len(t, next.Heads, 1, name)
			continue
		}
		require.Equal(t, geo.Timestamp(10), next.T0, name)
		require.Equal(t, []change.StreamHead{head(2, 7), head(1, 5)}, next.Heads, name)
		require.Equal(t, headBytes, rr.bytes, name)
	}
	require.False(t, (&rangeReceiver{}).fold(first(), []item{record}, 101), "no closed record follows")
}
