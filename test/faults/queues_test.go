package faults

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/messages"
	"antipode/test/rest"
)

// leadsQueues returns the node that leads the range of queues, if it is found soon.
func leadsQueues(r *rig.Rig) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	name, err := r.Leader(ctx, rig.North, geo.Queue)
	return name, err == nil
}

// onQueues is a fault of the node that leads the range of queues when it is played.
func onQueues(what string, do func(r *rig.Rig, leader string) (func() error, error)) fault {
	return fault{what + " of the leader of queues", func(r *rig.Rig, _ *rand.Rand) (func() error, error) {
		leader, ok := leadsQueues(r)
		if !ok {
			return func() error { return nil }, nil
		}
		return do(r, leader)
	}}
}

// The node that leads the range of queues is killed, paused, cut off, deaf and mute, and the gateway is killed, while
// producers and consumers work through the gateway and through every node (protocol/queue.md 28; invariants Q1 to Q4 and Q6 there): each
// acknowledged message is delivered until somebody deletes it, none is got by two consumers within its timeout, none comes
// back after its deletion, no receipt but the newest works, and the count of the quiet queue is exact, at -secondary too.
//
// Capability: Queues: Queues under faults.
func TestQueues(t *testing.T) {
	r := rig.StartTest(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), *duration+resolveWait)
	defer cancel()
	gateway := r.Client(rig.Gateway, false)
	require.NoError(t, gateway.CreateQueue(ctx, "faults"))
	through := []*rest.Client{gateway}
	for _, name := range rig.NodesOf(rig.North) {
		through = append(through, r.Client(name, false))
	}
	apart := func(what string, f proxy.Fault) fault {
		return onQueues(what, func(r *rig.Rig, leader string) (func() error, error) {
			return cut(r, f, []string{leader}, rig.Others([]string{leader}, rig.NodesOf(rig.North)))
		})
	}
	leader := newPlayer(r, random(1), []fault{
		onQueues("kill -9", func(r *rig.Rig, leader string) (func() error, error) { return killed(r, leader) }),
		onQueues("SIGSTOP", func(r *rig.Rig, leader string) (func() error, error) {
			return func() error { return r.Resume(leader) }, r.Pause(leader)
		}),
		apart("silent links", proxy.Fault{HoldForth: true, HoldBack: true}),
		apart("held messages", proxy.Fault{HoldForth: true}),
		apart("deafness", proxy.Fault{HoldBack: true}),
	})
	leader.shortest, leader.longest = 2*time.Second, 4*time.Second // Long enough for another leader to take writes.
	beside := newPlayer(r, random(2), between())
	c := &messages.Crowd{
		Queue: "faults", Producers: 6, Consumers: 8, Hide: 3 * time.Second, Pause: 10 * time.Millisecond, Seed: *seed,
		History: messages.History{Padding: 3000}, // Not in the row of its message.
	}
	running, halt := context.WithTimeout(ctx, *duration)
	defer halt()
	g, running := errgroup.WithContext(running)
	g.Go(func() error { return leader.run(running) })
	g.Go(func() error { return beside.run(running) })
	g.Go(func() error { c.Run(running, through...); return nil })
	require.NoError(t, g.Wait())
	healed := time.Now()
	logPlayed(t, leader, beside)
	ready(ctx, t, r)
	rig.Pause(ctx, lateWait-time.Since(healed))
	require.NoError(t, c.Drain(ctx, gateway))
	require.NoError(t, c.Check(time.Now()))
	puts, deletions, gets := c.Acked()
	t.Logf("%d messages put and %d deleted with an answer, %d got, over %v of faults", puts, deletions, gets, *duration)
	require.Positive(t, puts)
	require.Positive(t, deletions)
	secondary := r.Client(rig.Gateway, true)
	for {
		n, a, err := secondary.CountMessages(ctx, "faults")
		if err == nil && a.OK() && n == 0 {
			break
		}
		require.NoError(t, ctx.Err(), "%d messages at -secondary: %v, %v", n, a, err)
		rig.Pause(ctx, poll)
	}
}
