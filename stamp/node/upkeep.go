package node

import (
	"context"
	"sync/atomic"
	"time"

	"antipode/stamp/extent"
	"antipode/stamp/state"
)

// Upkeep is what a node does for its stores beside serving, in steps of a few MiB, one at
// a time and paced:
//
//	scrub     reads and checks everything on the disk, once in ScrubPeriod
//	repair    copies a damaged or missing chunk from a peer
//	collect   drops chunks that nothing names, after CollectGrace
//	compact   empties extents that hold mostly garbage
//
// A store that is found damaged as a whole is taken out of service: see condemn.

// Of the pace.
const (
	scrubPeriodDefault  = 7 * 24 * time.Hour
	collectGraceDefault = 24 * time.Hour
	// upkeepDelay is how long after the start the first steps begin, at the latest.
	upkeepDelay = 10 * time.Second
	// damagePoll is how often upkeep looks for chunks that reads found damaged.
	damagePoll = time.Second
)

// upkeep is the work and what it counted.
type upkeep struct {
	n     *Node
	tasks []*task

	scrub   scrubRound
	collect collectRound
	// missing are chunks that the state names and that were not here when a walk over the
	// names passed, each until the repair tried it; at most missingMax, the next walk finds
	// the others. A new walk keeps what is waiting: walks may follow faster than repairs.
	missing []extent.Ref

	counts upkeepCounts
}

// task is one kind of upkeep. step does a little and returns how long to rest.
type task struct {
	due  time.Duration
	step func(ctx context.Context) time.Duration
}

// upkeepCounts are for metrics. They count from the node's start.
type upkeepCounts struct {
	scrubbedExtents, scrubbedState, scrubbedLog atomic.Uint64 // bytes
	scrubbedChunks, scrubRounds                 atomic.Uint64
	repaired, missing                           atomic.Uint64
	collectedChunks, collectedBytes             atomic.Uint64
	compactedBytes                              atomic.Uint64
}

func newUpkeep(n *Node) *upkeep {
	u := &upkeep{n: n}
	if !n.o.Stepped { // Which tables there are depends on the state store's own goroutines.
		u.scrub.stores = append(u.scrub.stores, scrubStore{dir: "state", files: n.state, bytes: &u.counts.scrubbedState})
	}
	if log, ok := n.log.(state.Verifier); ok {
		u.scrub.stores = append(u.scrub.stores, scrubStore{dir: "log", files: log, bytes: &u.counts.scrubbedLog})
	}
	begin := n.o.Clock.Mono() + min(upkeepDelay, n.o.ScrubPeriod, n.o.CollectGrace)
	for _, step := range []func(context.Context) time.Duration{u.repairStep, u.scrubStep, u.collectStep, u.compactStep} {
		u.tasks = append(u.tasks, &task{due: begin, step: step})
	}
	return u
}

// Upkeep looks after the node's stores until ctx ends or the node closes. It is one
// goroutine's work; a simulation calls UpkeepStep instead.
func (n *Node) Upkeep(ctx context.Context) {
	ctx, cancel := joinContext(ctx, n.ctx)
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(n.UpkeepStep(ctx))
	}
}

// UpkeepStep does the step that is due longest, if one is, and returns how long nothing
// is due after it. It is called by one goroutine at a time.
func (n *Node) UpkeepStep(ctx context.Context) time.Duration {
	first := n.upkeep.tasks[0]
	for _, t := range n.upkeep.tasks {
		if t.due < first.due {
			first = t
		}
	}
	if now := n.o.Clock.Mono(); first.due > now {
		return first.due - now
	}
	rest := first.step(ctx)
	first.due = n.o.Clock.Mono() + rest
	return 0
}
