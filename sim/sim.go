package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"antipode/directory"
	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/extent"
	"antipode/stamp/state"
)

// The two locations.
const (
	north = geo.Location("north")
	south = geo.Location("south")
)

// Lengths of a run, in virtual time.
const (
	faultPhase = 5 * time.Second
	// patientTimeout is for how long.
	patientTimeout = 10 * time.Second
	// storyMax is when the clients stop at the latest where there is a story.
	storyMax = time.Minute
	// bootMax, drainMax: a location that takes longer to elect, or a backlog that
	// takes longer to drain after all faults ended, is stuck.
	bootMax = 10 * time.Second
	// bootTime: two candidates may win one after the other at the start, and a term
	// that ends leaves its first command unknown.
	bootTime = time.Second
	drainMax = 20 * time.Second
	// corruptionPause lies between two looks for damaged copies on the disks.
	corruptionPause = 50 * time.Millisecond
	// skewMax bounds how far a node's wall clock is off, in either direction, unless it is wrong: see
	// clocks.go.
	skewMax = 300 * time.Millisecond
)

// Options configures a run.
type Options struct {
	Seed uint64
	// Tee takes every line of the event log as it is written. May be nil.
	Tee func(line string)
	// Recovers has a range recovered with loss, after a long time without what it loses, while redundancies change.
	Recovers bool
	// Doubts moves primaries in each run, has an operator end each move as soon as the account is offered, and loses half of
	// the calls between the locations.
	Doubts bool
	// Queues has queues with clients and keepers beside everything else: see queues.go.
	Queues bool
	// Promotes has operators promote secondaries in each run. Witnessed: then there is a witness in each, too.
	Promotes, Witnessed bool
}

// Result is the outcome of a run.
type Result struct {
	Seed uint64
	// Hash is of the whole event log, Events its length in lines.
	Hash   uint64
	Events int
	Counts Counts
	// Err is the promise that was broken, nil for a clean run; Tail are then the
	// newest lines of the event log.
	Err  error
	Tail []string
}

// String is the run on one line.
func (r Result) String() string {
	outcome := "ok"
	if r.Err != nil {
		first, _, _ := strings.Cut(r.Err.Error(), "\n") // Behind it stands a stack.
		outcome = "BROKEN: " + first
	}
	return fmt.Sprintf("seed=%d hash=%016x events=%d %s %s", r.Seed, r.Hash, r.Events, r.Counts, outcome)
}

// Sim is one run. It is used by one goroutine.
type Sim struct {
	rng    *rand.Rand
	clock  *clock.Manual
	now    time.Duration // of clock.Mono
	log    *eventLog
	timers timers
	rates  rates
	counts Counts
	shared *state.Shared

	// used are the services that carry the workload, shipped their ranges and the catalog's: the others stand idle.
	used    []geo.Service
	shipped []geo.RangeID
	// queues draws what clients of queues do, nil in a run without: see queues.go.
	queues *rand.Rand

	locations [2]*location
	accounts  []*account
	ops       []*op
	// inSyncTimeout of the nodes. With a short one a new leader acknowledges while the
	// one before it may still think that it leads.
	inSyncTimeout time.Duration
	// batchBytesMax bounds what a receiver commits in one group. With a small one
	// neighbouring records of a frame are applied apart.
	batchBytesMax int
	// logBytesMax and flushEntries of the nodes. With small ones a node that was away is fed by a
	// range snapshot.
	logBytesMax, flushEntries uint64
	// rests means that ranges at rest leave out closed records: see look.go. collects means that payload is collected within
	// the run: see collected.go.
	rests, collects bool
	// costs draws how long the parts of a pass take, nil where time stands still within it: see passing.go.
	costs *passCosts
	// fills draws which disks are full at the end, nil in a run without: see full.go.
	fills *rand.Rand
	// mixes draws which folders are mixed up, nil in a run without: see folders.go.
	mixes *rand.Rand
	// task is the one that runs, nil for none.
	task *task
	// callsCut and busCut: no call, no publish crosses the link between the locations.
	callsCut, busCut bool
	// stalled means that calls and publishes over the link take long; lag is added to each of
	// them, zero in a run of a seed.
	stalled bool
	lag     time.Duration
	// skewMax bounds how far the wall clock of a node is off when the node starts.
	skewMax time.Duration
	// budget bounds the outbox of each node, of the ranges that may be recovered; 0 is no bound.
	budget int64
	// rewritten means that a location was set back to an earlier state on purpose: its history no
	// longer determines what its replicas must hold.
	rewritten bool
	// corruptionSeen is what the last look at the disks for damaged copies found, at corruptionCheckedAt.
	corruptionSeen      string
	corruptionCheckedAt time.Duration
	// sweeps means that the locations have sweepers: see sweep.go.
	sweeps bool
	// losing means that a range is recovered for certain, with a loss of much: see Options.Recovers.
	losing bool
	// moves draws the changes of redundancy and what becomes of their calls, nil in a run without: see moves.go.
	moves *rand.Rand
	// fences draws what becomes of questions about epochs, nil in a run without: see fences.go.
	fences *rand.Rand
	// failovers draws the planned moves of primaries and who comes to the wrong location, nil in a run without: see
	// failovers.go. recovers means that a range is recovered with loss.
	failovers *rand.Rand
	recovers  bool
	// away is the share of clients that come to the location that is not the primary: they do not know yet that it moved.
	away float64
	// promotions draws the unplanned failovers and what becomes of their primaries, nil in a run without: see promotions.go.
	promotions     *rand.Rand
	promotionTimes unplanned.Times
	// third is the witness, nil in a run without: see third.go.
	third *third
	// doubts, promotes and witnessed are those of Options.
	doubts, promotes, witnessed bool
	// losesCall reports whether a call between the directories is lost, or its answer; nil for none.
	losesCall func(method string, answer bool) bool
	// onStep is called with each durable step of a failover, without a location if it is one of the witness; nil for nobody.
	onStep func(l *location, step string)
	// faulty means that faults may occur; before and after, the network is honest.
	faulty bool
	// story is what happens in place of a run of faults, nil for those. victims draws what it concerns.
	story   func()
	victims *rand.Rand
	// patient means that leaders wait long for a replica that is slow.
	patient bool
	// callsRefused is how the other location refuses every call, nil if it answers. huge are chunks that take for ever to
	// cross the link; poisoned are records that cannot be decoded. wrongClocks: more clocks are wrong than may be.
	callsRefused error
	huge         map[extent.ChunkID]bool
	poisoned     *poisoned
	wrongClocks  bool
	// looks counts the looks of startChecks. leaps draws leaps of clocks, nil in a run without: see leaps.go.
	looks int
	leaps *rand.Rand
	// beginsAhead is by how much the clocks of both locations begin ahead, 0 in most runs; ahead: they are so yet.
	beginsAhead time.Duration
	ahead       bool
	// workEnd is when the clients stop.
	workEnd time.Duration
	err     error
}

// Run plays one seed to its end.
func Run(o Options) Result {
	s := newSim(o)
	s.skewMax, s.budget, s.losing, s.doubts = skewMax, outboxBudget(o.Seed), o.Recovers, o.Doubts
	s.promotes, s.witnessed = o.Promotes, o.Witnessed
	if o.Recovers {
		s.budget = 0
	}
	if o.Queues {
		s.planQueues(o.Seed)
	}
	return s.result(o.Seed)
}

// result plays a run to its end.
func (s *Sim) result(seed uint64) Result {
	if s.played(seed) {
		s.close()
	}
	res := Result{Seed: seed, Hash: s.log.h.Sum64(), Events: s.log.count, Counts: s.counts, Err: s.err}
	if s.err != nil {
		res.Tail = s.log.lines()
	}
	return res
}

// newSim returns a run that has no locations yet.
func newSim(o Options) *Sim {
	s := &Sim{
		rng:   rand.New(rand.NewPCG(o.Seed, 0x616e7469706f6465)),
		clock: clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		log:   newEventLog(o.Tee), shared: state.NewShared(16<<20, 4096),
		huge: map[extent.ChunkID]bool{}, shipped: []geo.RangeID{geo.FirstRange(geo.Catalog)}, away: 0.08,
	}
	for _, svc := range objectServices {
		s.use(svc)
	}
	return s
}

// use has a service carry the workload.
func (s *Sim) use(svc geo.Service) {
	s.used = append(s.used, svc)
	s.shipped = append(s.shipped, geo.FirstRange(svc))
}

// close ends all nodes.
func (s *Sim) close() {
	for _, l := range s.locations {
		l.close()
	}
	s.shared.Close()
}

// played runs to the end and reports whether the nodes can still be closed: after a
// panic of one of them locks may be held.
func (s *Sim) played(seed uint64) (whole bool) {
	defer func() {
		if p := recover(); p != nil {
			s.fail(fmt.Errorf("%w: %v\n%s", ErrPanic, p, debug.Stack()))
		}
	}()
	s.sweeps = seed%sweepingEvery == 0 && s.story == nil
	s.rests = seed%restingEvery == 0
	s.collects = seed%collectingEvery == collectingEvery-1 && s.story == nil
	if s.story == nil {
		s.planMoves(seed)
		s.planFences(seed)
		s.planCosts(seed)
		s.planFull(seed)
		s.planFolders(seed)
	}
	s.run(stampNodes(seed))
	return true
}

func (s *Sim) run(nodes [2]int) {
	s.batchBytesMax = [...]int{1, 1 << 10, 1 << 20}[s.rng.IntN(3)]
	s.logBytesMax = [...]uint64{6 << 10, 24 << 10, 1 << 30}[s.rng.IntN(3)]
	s.flushEntries = [...]uint64{60, 20_000}[s.rng.IntN(2)]
	s.build(nodes)
	s.inSyncTimeout = s.between(40*time.Millisecond, 300*time.Millisecond)
	if s.patient {
		s.inSyncTimeout = patientTimeout
	}
	s.beginAhead()
	s.boot()
	if s.err != nil {
		return
	}
	if s.story != nil {
		s.workEnd = s.now + storyMax
		s.story()
		return
	}
	s.workEnd = s.now + faultPhase
	s.startWorkload()
	s.startQueues()
	s.startChecks()
	s.startFaults()
	s.startMoves()
	s.startFailovers()
	s.startPromotions()
	s.startThird()
	s.runFor(faultPhase)
	s.heal()
	s.mend()
	s.emptyQueues()
	s.drain()
	s.fillDisks()
	s.checkEnd()
}

// build makes the two locations.
func (s *Sim) build(nodes [2]int) {
	s.locations[0], s.locations[1] = newLocation(s, north, 0, nodes[0]), newLocation(s, south, 1, nodes[1])
	join(s.locations[0], s.locations[1])
}

// boot starts all nodes and makes the accounts, over an honest network.
func (s *Sim) boot() {
	if s.third != nil {
		s.third.open()
	}
	for _, l := range s.locations {
		for _, m := range l.members {
			m.open()
		}
	}
	s.runFor(bootTime)
	if s.rests {
		s.startLooks()
	}
	for _, a := range accountPlan {
		made := newAccount(a.name, s.locations[a.home])
		stored, err := made.home.directory.CreateAs(context.Background(), directory.Wanted{
			Name: a.name, Key1: []byte("key1"), Key2: []byte("key2"), Redundancy: s.redundancyAtStart(),
		})
		if err != nil {
			s.fail(fmt.Errorf("%w: account %s: %w", ErrDrain, a.name, err))
			return
		}
		made.record, made.epoch, made.incomplete = stored, stored.GeoEpoch(), !stored.Redundancy.Geo()
		s.accounts = append(s.accounts, made)
		for _, svc := range s.used {
			if err := s.await(made.home, s.newContainer(made, svc)); err != nil {
				s.fail(fmt.Errorf("%w: first container of %s: %w", ErrDrain, a.name, err))
				return
			}
		}
	}
}

// fail keeps the first broken promise; the run ends with it.
func (s *Sim) fail(err error) {
	if s.err == nil {
		s.err = err
		first, _, _ := strings.Cut(err.Error(), "\n") // A stack differs from run to run.
		s.event("BROKEN %s", first)
	}
}

// runFor steps for d of virtual time.
func (s *Sim) runFor(d time.Duration) {
	for end := s.now + d; s.now < end && s.err == nil; {
		s.step(end)
	}
}

// runUntil steps until done, at most for d.
func (s *Sim) runUntil(d time.Duration, done func() bool) bool {
	for end := s.now + d; s.now < end && s.err == nil; {
		if done() {
			return true
		}
		s.step(end)
	}
	return s.err == nil && done()
}

// step moves the clock to what happens next, at most to end, and lets everybody
// work until nobody has anything left to do at that moment.
func (s *Sim) step(end time.Duration) {
	next := end
	if len(s.timers.heap) > 0 {
		next = min(next, s.timers.heap[0].at)
	}
	for _, l := range s.locations {
		next = min(next, l.next())
	}
	if next > s.now {
		s.clock.Advance(next - s.now)
		s.now = next
	}
	s.fire()
	for busy := true; busy && s.err == nil; {
		busy = false
		for _, l := range s.locations {
			busy = l.work() || busy
		}
	}
}

// await runs a command on the leader of its range to its answer: for the boot.
func (s *Sim) await(l *location, o *op) error {
	return l.Submit(context.Background(), o.rangeID, o.cmd)
}

// errStuck: a command of the boot had no answer.
var errStuck = errors.New("sim: no answer")
