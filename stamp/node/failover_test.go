package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/ranges"
)

// When a leader falls silent the first of its followers leads after one election timeout
// and a tick, no round is lost to split votes, and writes are acknowledged without waiting
// for the silent one once more; in the clock of the test, whatever the seed.
func TestTimeWithoutWrites(t *testing.T) {
	const tick, electionTicks = 10 * time.Millisecond, 10
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newStepped(t, seed)
			var gone *ranges.Range
			s.until("a leader", func() bool { gone = s.leading(); return gone != nil })
			opened := false
			gone.Submit(setGate{openGate}, func(err error) { opened = err == nil })
			s.until("an open gate", func() bool { return opened })
			for id, n := range s.nodes {
				if n.Range(testRange) == gone {
					s.paused[id] = 1 << 62
					delete(s.net.nodes, id)
				}
			}
			began, acked := s.clock.Mono(), false
			s.until("a write", func() bool {
				for id := geo.NodeID(1); id <= 3; id++ {
					if r := s.nodes[id].Range(testRange); r != gone && r.Leading() {
						r.Submit(&increment{}, func(err error) { acked = acked || err == nil })
					}
				}
				return acked
			})
			require.Less(t, s.clock.Mono()-began, (electionTicks+8)*tick, "one that waited anew, for votes or for the silent replica, takes longer")
		})
	}
}
