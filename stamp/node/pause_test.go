package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/ranges"
)

// stopping is a node's clock. The node can be made to stand still right after it read it.
type stopping struct {
	*clock.Manual
	// stop runs once, after the next reading; nil for not at all.
	stop func()
}

// Mono implements clock.Clock.
func (c *stopping) Mono() time.Duration {
	now := c.Manual.Mono()
	if stop := c.stop; stop != nil {
		c.stop = nil
		stop()
	}
	return now
}

// countError is a refusal, as of a failed condition, which names the counter that it saw.
type countError struct{ saw uint64 }

func (e countError) Error() string { return fmt.Sprintf("the counter is %d", e.saw) }

// refusal is a command that changes nothing.
type refusal struct{}

func (refusal) Evaluate(tx *ranges.Tx) error {
	v, _, err := tx.Get(counterKey())
	if err != nil {
		return err
	}
	return countError{counterOf(v)}
}

// R5: a leader with a lease stands still inside a scheduler pass, right after the pass read
// the clock, until another leader has acknowledged a write. When it goes on, neither a
// refusal nor a read that came meanwhile is answered from what it holds: the lease that the
// pass began with has ended.
func TestR5PauseInsidePass(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newStepped(t, seed)
			var old *ranges.Range
			s.until("a leader", func() bool { old = s.leading(); return old != nil })
			id := old.Leader()
			opened := false
			old.Submit(setGate{openGate}, func(err error) { opened = err == nil })
			s.until("an open gate", func() bool { return opened })
			s.until("a lease", func() bool {
				s.read(id)
				return old.Replica().Lease() > s.clock.Mono()+20*time.Millisecond
			})
			var answer, read error
			s.clocks[id].stop = func() {
				s.paused[id] = 1 << 62
				s.acknowledgeElsewhere(old)
				old.Submit(refusal{}, func(err error) { answer = err })
				old.Confirm(func(err error) {
					read = err
					if err == nil {
						v, _, err := old.State().Get(counterKey())
						require.NoError(t, err)
						require.NotZero(t, counterOf(v), "a stale read")
					}
				})
				s.paused[id] = 0
			}
			_, err := s.nodes[id].Pass()
			require.NoError(t, err)
			s.until("answers", func() bool { return answer != nil && read != nil })
			require.ErrorIs(t, read, ranges.ErrNotLeader)
			var seen countError
			require.False(t, errors.As(answer, &seen), "a refusal on a stale state: %v", answer)
			require.ErrorIs(t, answer, ranges.ErrNotLeader)
		})
	}
}

// acknowledgeElsewhere lets the others elect another leader than old and acknowledge an
// increment there.
func (s *stepped) acknowledgeElsewhere(old *ranges.Range) {
	acked := false
	s.until("a write elsewhere", func() bool {
		for id := geo.NodeID(1); id <= 3; id++ {
			if r := s.nodes[id].Range(testRange); r != old && r.Leading() {
				r.Submit(&increment{}, func(err error) { acked = acked || err == nil })
				break
			}
		}
		return acked
	})
}
