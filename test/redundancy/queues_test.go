package redundancy

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/messages"
)

// crowd is producers and consumers of a queue of the account, which it creates.
func (a *account) crowd(ctx context.Context, queue string, producers, consumers int) *messages.Crowd {
	a.t.Helper()
	a.eventually(ctx, "a queue", func(ctx context.Context) bool { return a.Primary.CreateQueue(ctx, queue) == nil })
	return &messages.Crowd{
		Queue: queue, Producers: producers, Consumers: consumers, Hide: 3 * time.Second, Pause: 15 * time.Millisecond, Seed: 1,
		History: messages.History{Padding: 3000}, // Not in the row of its message.
	}
}

// working has crowds work through the gateway until the function that it returns is called, which returns once every request
// has its answer.
func (a *account) working(ctx context.Context, crowds ...*messages.Crowd) (end func()) {
	ctx, halt := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, c := range crowds {
		wg.Go(func() { c.Run(ctx, a.Primary) })
	}
	return sync.OnceFunc(func() {
		halt()
		wg.Wait()
	})
}

// goesOn waits until messages are put, got and deleted.
func (a *account) goesOn(ctx context.Context, c *messages.Crowd, more int) {
	a.t.Helper()
	puts, deletions, _ := c.Acked()
	a.eventually(ctx, "messages are put and deleted", func(context.Context) bool {
		p, d, _ := c.Acked()
		return p > puts+more && (c.Consumers == 0 || d > deletions+more)
	})
}

// drained requires that a crowd finds what it must, and that -secondary has nothing left either.
func (a *account) drained(ctx context.Context, c *messages.Crowd, safe time.Time) {
	a.t.Helper()
	wait, cancel := context.WithTimeout(ctx, *calmWait)
	defer cancel()
	require.NoError(a.t, c.Drain(wait, a.Primary))
	require.NoError(a.t, c.Check(safe))
	a.eventually(ctx, "no message at -secondary", func(ctx context.Context) bool {
		n, got, err := a.Secondary.CountMessages(ctx, c.Queue)
		return err == nil && got.OK() && n == 0
	})
	puts, deletions, gets := c.Acked()
	a.t.Logf("queue %s: %d messages put and %d deleted with an answer, %d got", c.Queue, puts, deletions, gets)
}

// An account moves to its other location and back while messages are put, got and deleted: none is lost, none is got while it
// is hidden or after its deletion, receipts of the other location work, and the count is exact (R19; protocol/queue.md 27).
//
// Capability: Blobs: Under faults of processes.
// Capability: Queues: Queues under faults.
func TestR19QueuesUnderLoad(t *testing.T) {
	r := rig.StartTest(t, nil)
	ctx := t.Context()
	a := pairedAccount(t, r)
	a.live(ctx)
	c := a.crowd(ctx, "moves", 4, 6)
	end := a.working(ctx, c)
	defer end()
	from, to := rig.North, rig.South
	for range max(2, *failovers/2) {
		a.goesOn(ctx, c, 50)
		a.failover(ctx, from, to)
		from, to = to, from
	}
	a.goesOn(ctx, c, 50)
	end()
	a.drained(ctx, c, time.Now())
	a.live(ctx)
	a.agrees(ctx)
}

// All nodes of the primary are killed while messages are put, got and deleted, a moment after the link was cut, and the
// other location is promoted: of what was acknowledged at or before the Last Sync Time that the command states nothing is
// missing, what was deleted until then does not come back, and what was hidden may be seen again (R20; protocol/queue.md 27).
// When the former primary is back both copies agree.
//
// Capability: Queues: Queues under faults.
// Capability: Failover: Kill -9 of all three primary nodes under load, and a promotion, with processes (R20).
func TestR20QueuesUnderLoad(t *testing.T) {
	r := rig.StartTest(t, nil)
	ctx := t.Context()
	a := pairedAccount(t, r)
	from, to := rig.North, rig.South
	for range max(1, *unplanned/2) {
		a.live(ctx)
		c, kept := a.crowd(ctx, "lives-"+string(from), 3, 5), a.crowd(ctx, "kept-"+string(from), 3, 0)
		end := a.working(ctx, c, kept)
		reported := a.reporting(ctx, to)
		a.goesOn(ctx, c, 50)
		a.goesOn(ctx, kept, 50)
		a.eventually(ctx, "Last Sync Time of queues", func(context.Context) bool { return !reported.now()[geo.Queue.String()].IsZero() })
		require.NoError(t, r.Cut(proxy.Fault{Refuse: true}, rig.NodesOf(from), rig.NodesOf(to)))
		a.goesOn(ctx, kept, 10)
		p := a.lose(ctx, from, to, reported)
		now := time.Now()
		c.Promoted(p.killed, now)
		kept.Promoted(p.killed, now)
		safe := p.loss[geo.Queue.String()].LastSyncTime.Time
		require.False(t, safe.Before(p.last[geo.Queue.String()]))
		a.goesOn(ctx, kept, 10)
		require.NoError(t, r.Cut(proxy.Fault{}, rig.NodesOf(from), rig.NodesOf(to)))
		for _, name := range rig.NodesOf(from) {
			require.NoError(t, r.Launch(name))
		}
		a.rejoined(ctx, from, to)
		a.goesOn(ctx, c, 20)
		end()
		a.live(ctx)
		a.agrees(ctx)
		t.Logf("killed %v after the last contact", p.killed.Sub(safe).Round(time.Millisecond))
		a.drained(ctx, c, safe)
		a.drained(ctx, kept, safe)
		require.NoError(t, r.Ready(ctx))
		from, to = to, from
	}
}
