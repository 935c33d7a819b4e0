package ranges

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/feature"
	"antipode/stamp/kv"
	"antipode/stamp/outbox"
	"antipode/stamp/replica"
	"antipode/stamp/room"
)

// ErrNotLeader: this replica does not lead, or not yet (R1). Nothing happened; ask
// the leader.
var ErrNotLeader = errors.New("ranges: not the leader of the range")

// Bounds of the proposal queue (invariant 8).
const (
	queueMax        = 4096
	groupBytesMax   = 1 << 20
	groupCommands   = 512
	inflightMax     = 4
	reservedMax     = 64 << 10 // of a group before it is evaluated
	openMax         = 10_000   // generations remembered as open
	leaseRenewBelow = 2        // renew when less than 1/2 of the lease is left
)

// Command is one write, already decoded and authorized. Evaluate reads through tx
// and stages its effect there; it must not keep tx. It runs on the scheduler of the
// leader, may run again on another state when a group dies, and so must set its
// results on every run. An error undoes what the command staged; it is answered
// once everything the command could have seen is committed (R5). See Rehearsed, too.
type Command interface {
	Evaluate(tx *Tx) error
}

// Range is the leader's side of a range: proposal queue, clock, heads and overlay.
// Submit, Read and the observers may be called concurrently; Work and the rest
// belong to the node's scheduler.
type Range struct {
	o       Options
	Machine *Machine
	replica *replica.Replica
	// readers is replica for other goroutines than the scheduler's: a replica is replaced while they read.
	readers atomic.Pointer[replica.Replica]

	mu    sync.Mutex
	queue []*waiter
	reads []pendingRead
	// follow are the reads that wait for the next round of a follower, asked those that wait
	// for the current one: see follow.go.
	follow, asked []pendingRead
	stopped       bool
	later         later

	// leading, leaseUntil and leader are what other goroutines see. renew: a reader asks for a
	// renewal of the lease.
	leading    atomic.Uint64
	leaseUntil atomic.Int64
	renew      atomic.Bool
	leader     atomic.Uint64
	// leaderless is the running time since which no leader is known: see Leaderless.
	leaderless atomic.Int64
	inSync     atomic.Int64
	// noRoom: it leads, and takes only what a full disk takes.
	noRoom atomic.Bool
	// clockRefused: it leads and does not evaluate, because of its clock.
	clockRefused atomic.Bool
	// leaving and stuck: see leave.go.
	leaving, stuck atomic.Bool
	// coldUntil and rehearsals: see rehearse.go.
	coldUntil  atomic.Int64
	rehearsals chan struct{}
	view       atomic.Pointer[View]

	// Below: scheduler only.
	term   uint64
	number uint64
	pred   change.GroupID
	// answered is the index up to which all waiters of this term were answered; refused, that one above was not as it was
	// evaluated (R21), so that it stays.
	answered uint64
	refused  bool
	inflight []*group
	// acking are groups that took effect and wait for every in-sync replica.
	acking     []*group
	overlay    map[string]overlayValue
	staged     *staged // the keys of overlay in order; may be nil
	wipes      []wipe  // see wipe.go
	heads      map[geo.Stream]geo.Head
	cursors    map[geo.Stream]change.Cursor
	known      map[geo.SourceRange]cursor.Known
	gates      map[geo.Account]change.Gate
	stops      map[geo.Stream]change.Stop
	open       map[string]struct{} // see Tx.GenerationClosed
	last       geo.Timestamp
	lastClosed time.Duration
	viewAt     time.Duration
	slowUntil  time.Duration          // see slow.go
	clock      clockState             // see clock.go
	resting    resting                // see rest.go
	leave      leaveState             // see leave.go
	imaged     map[geo.Account]imaged // see Tx.AckedSinceImage
	key        []byte                 // of a row, reused
	// commandBytes is what a command of the last group took in it.
	commandBytes int

	feed outbox.Feed
}

// group is one Raft entry in flight.
type group struct {
	id      change.GroupID
	index   uint64
	waiters []*waiter
	keys    []string
	// wall is what the wall clock showed as it was evaluated.
	wall time.Time
}

type overlayValue struct {
	value   []byte
	deleted bool
	group   change.GroupID
}

// New returns the range over its machine and replica. Attach must follow.
func New(o Options) (*Range, error) {
	if o.Levels == nil {
		o.Levels = feature.NewGate(feature.Known)
	}
	r := &Range{o: o, rehearsals: make(chan struct{}, rehearsalsMax)}
	m, err := OpenMachine(o.Range, o.State, r.observe, o.Nodes...)
	if err != nil {
		return nil, err
	}
	if m.gate = o.Levels; Service(o.Range) == geo.Catalog {
		err = m.takeLevels()
	}
	if err != nil {
		return nil, err
	}
	r.Machine = m
	r.resetOverlay()
	return r, nil
}

// joinMax is about how long a replica that was opened takes to join the others.
const joinMax = 3 * time.Second

// Attach gives the range its replica, which was built on r.Machine.
func (r *Range) Attach(rep *replica.Replica) {
	r.replica = rep
	r.readers.Store(rep)
	if r.leader.Load() == 0 {
		r.leaderless.Store(int64(r.o.Running.Time() + joinMax))
	}
}

// Feed carries what this replica applied while it led to the range's shipper.
func (r *Range) Feed() *outbox.Feed { return &r.feed }

// ID is the range's id.
func (r *Range) ID() geo.RangeID { return r.o.Range }

// Replica is the range's Raft member; scheduler only.
func (r *Range) Replica() *replica.Replica { return r.replica }

func (r *Range) resetOverlay() {
	r.overlay, r.staged, r.wipes = map[string]overlayValue{}, newStaged(Service(r.o.Range)), nil
	r.heads = map[geo.Stream]geo.Head{}
	r.cursors = map[geo.Stream]change.Cursor{}
	r.known = map[geo.SourceRange]cursor.Known{}
	r.gates = map[geo.Account]change.Gate{}
	r.stops = map[geo.Stream]change.Stop{}
	r.open = map[string]struct{}{}
	r.pred = r.Machine.AppliedState().Group
}

// Leading reports whether this replica leads and may evaluate.
func (r *Range) Leading() bool { return r.LeadTerm() > 0 }

// LeadTerm is the term in which this replica leads and may evaluate, 0 while it does not.
func (r *Range) LeadTerm() uint64 { return r.leading.Load() }

// Leader is the node that leads, as far as this replica knows; 0 for none.
func (r *Range) Leader() geo.NodeID { return geo.NodeID(r.leader.Load()) }

// InSync is the number of in-sync replicas as this leader sees it, 0 elsewhere.
func (r *Range) InSync() int { return int(r.inSync.Load()) }

// Submit queues a command. done is called exactly once, from the scheduler: nil when
// the effect is on every in-sync replica; ErrNotLeader or kv.ErrBusy when nothing
// happened; kv.ErrUnknown when it may or may not have; else the command's error.
func (r *Range) Submit(cmd Command, done func(error)) {
	r.enqueue(&waiter{cmd: cmd, done: done, at: r.o.Clock.Now()})
}

func (r *Range) enqueue(ws ...*waiter) {
	r.mu.Lock()
	refused := error(nil)
	switch {
	case r.stopped || !r.Leading():
		refused = ErrNotLeader
	case len(r.queue)+len(ws) > queueMax:
		refused = kv.ErrBusy
	}
	first := len(r.queue) == 0
	if refused == nil {
		r.queue = append(r.queue, ws...)
	}
	r.mu.Unlock()
	if refused != nil {
		for _, w := range ws {
			w.done(refused)
		}
		return
	}
	if first {
		r.o.Wake()
	}
}

// Stop fails everything that waits. A command that was proposed may have happened; one that
// waits for a lease changed nothing.
func (r *Range) Stop() {
	r.mu.Lock()
	r.stopped = true
	reads := r.reads
	r.reads = nil
	r.mu.Unlock()
	r.leading.Store(0)
	r.endFollowing()
	r.abandon()
	for _, p := range reads {
		p.done(ErrNotLeader)
	}
}

// Work is the range's part of one scheduler pass, before Ready is collected: it follows a
// change of leadership, acknowledges, evaluates and proposes.
func (r *Range) Work(now time.Duration) {
	r.look(now)
	id, term := r.replica.Leader()
	r.recordLeader(id)
	if nodes := r.replica.Stalled(); nodes != nil {
		r.transfer(nodes, stalledReason)
	}
	may := r.replica.MayEvaluate()
	if may && term != r.LeadTerm() {
		r.lead(term, now)
	}
	if !may && r.Leading() {
		r.leading.Store(0)
		r.abandon()
	}
	r.noRoom.Store(may && r.replica.Room() != room.Plenty)
	if !may {
		r.clockRefused.Store(false)
		r.inSync.Store(0)
		r.leaseUntil.Store(0)
		r.serveReads(now)
		r.serveFollowing(now)
		return
	}
	r.endFollowing()
	r.acknowledge(now)
	r.renewLease(now)
	r.serveReads(now)
	r.followRest(now)
	r.closeByTime(now)
	if !r.stepDown() {
		r.evaluate(now)
		r.leaveVoidTerm(now)
	}
}

// lead begins to lead in a term: the overlay starts from the applied state (R1).
func (r *Range) lead(term uint64, now time.Duration) {
	r.abandon()
	r.term, r.number, r.answered, r.refused = term, 0, 0, false
	r.last, r.slowUntil = 0, 0
	r.clock = clockState{}
	before := r.overlay
	r.resetOverlay()
	if plantedbugs.Planted(plantedbugs.OverlayOutlivesTerm) {
		r.overlay = before
	}
	r.lastClosed = now
	r.resting.begin(now)
	r.feed.Reset()
	r.leading.Store(term)
}

// abandon ends a term as leader. Queued commands were never proposed: nothing happened.
// Groups in flight, and those not yet on every in-sync replica, may have.
func (r *Range) abandon() {
	for _, g := range append(r.inflight, r.acking...) {
		for _, w := range g.waiters {
			w.done(kv.ErrUnknown)
		}
	}
	r.inflight, r.acking = nil, nil
	r.mu.Lock()
	queue := r.queue
	r.queue = nil
	r.mu.Unlock()
	for _, w := range queue {
		w.done(ErrNotLeader)
	}
	r.feed.Reset()
}

// observe is called after each applied entry.
func (r *Range) observe(a Applied) {
	if r.o.OnApplied != nil {
		r.o.OnApplied(a)
	}
	if len(r.inflight) > 0 && a.Group == r.inflight[0].id {
		g := r.inflight[0]
		r.inflight = r.inflight[1:]
		if !a.Effective {
			r.kill(g)
			return
		}
		g.index = a.Index
		for _, k := range g.keys {
			if r.overlay[k].group == g.id {
				delete(r.overlay, k)
			}
		}
		if r.staged != nil {
			r.staged.prune(r.overlay)
		}
		r.dropWipes(g.id)
		r.acking = append(r.acking, g)
		if r.o.Levels.Allows(feature.Walls) {
			a.Wall = geo.TimestampOf(g.wall)
		}
	}
	if !a.Effective || !r.Leading() {
		return
	}
	if r.resting.applied(a); len(a.Records) > 0 || a.Closed != 0 {
		r.feed.Push(a.Added)
	}
}

// kill drops the overlay after a group that had no effect. All groups in flight behind it are
// no-ops too, since their predecessor never took effect. The commands of all of them are
// evaluated again (R1).
func (r *Range) kill(first *group) {
	var again []*waiter
	for _, g := range append([]*group{first}, r.inflight...) {
		again = append(again, g.waiters...)
	}
	r.inflight = nil
	// The numbers of the killed groups are not used again within the term, so a late
	// no-op entry can never match a new group.
	r.resetOverlay()
	r.requeue(again)
}
