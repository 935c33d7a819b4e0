package cursor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// R13, R16: after a recovery with loss the first closed record that is taken is full. Its time is neither below what
// was shown before nor below the newest applied record. From then on a closed record joins if it is full, or begins
// no later than the one before it ended.
func TestR13JoinsAfterARecovery(t *testing.T) {
	recovered, closed := Known{Incarnation: 1, Before: 100}, Known{Incarnation: 1, Before: 100, Closed: 200}
	for name, x := range map[string]struct {
		known Known
		c     change.Closed
		upTo  geo.Timestamp
		joins bool
	}{
		"the first is full":                     {recovered, change.Closed{Full: true, T: 100}, 100, true},
		"the first is not full":                 {recovered, change.Closed{T0: 50, T: 300}, 0, false},
		"its time is below what was shown":      {recovered, change.Closed{Full: true, T: 99}, 0, false},
		"its time is below what is applied":     {recovered, change.Closed{Full: true, T: 149}, 150, false},
		"the next begins where that ended":      {closed, change.Closed{T0: 200, T: 300}, 0, true},
		"the next begins before":                {closed, change.Closed{T0: 150, T: 300}, 400, true},
		"the next leaves a gap":                 {closed, change.Closed{T0: 201, T: 300}, 0, false},
		"a full one joins whatever is applied":  {closed, change.Closed{Full: true, T0: 250, T: 300}, 400, true},
		"a range of which nothing is known yet": {Known{}, change.Closed{Full: true, T: 1}, 0, true},
	} {
		require.Equal(t, x.joins, x.known.Joins(&x.c, func() geo.Timestamp { return x.upTo }), name)
	}
}
