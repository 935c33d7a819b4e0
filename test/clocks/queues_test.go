package clocks

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/faults/rig"
	"antipode/test/messages"
)

// The clock of the node that leads the range of queues is set ten minutes ahead and ten minutes back under producers and
// consumers, until another node leads: no message is lost, none comes back after its deletion, the count is exact, and
// none is hidden for the ten minutes: all can be got soon afterwards (protocol/queue.md 28, invariant Q9 there).
//
// Capability: Queues: Queues under faults.
// Capability: Two locations: One node's clock stepped by ten minutes, either way, at the primary and at the
// secondary, under load, with processes.
func TestQ9QueuesWithSteppedClocks(t *testing.T) {
	r := rig.StartTest(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*calmWait)
	defer cancel()
	primary := r.Client(rig.Gateway, false)
	require.NoError(t, primary.CreateQueue(ctx, "clocks"))
	c := &messages.Crowd{
		Queue: "clocks", Producers: 4, Consumers: 6, Hide: 3 * time.Second, Pause: writePause, Seed: 1,
		History: messages.History{Padding: 3000, Stepped: true},
	}
	working, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(working, primary) })
	t.Cleanup(func() { stop(); wg.Wait() })
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		stepped(ctx, t, r, rig.North, geo.Queue, ahead)
	}
	stop()
	wg.Wait()
	require.NoError(t, c.Drain(ctx, primary))
	require.NoError(t, c.Check(time.Now()))
	puts, deletions, gets := c.Acked()
	t.Logf("%d messages put and %d deleted with an answer, %d got", puts, deletions, gets)
	require.Positive(t, deletions)
}
