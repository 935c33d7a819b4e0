package sim

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/failover/confirm"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/blobs"
	"antipode/services/queues"
	"antipode/stamp/extent"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/skew"
	"antipode/stamp/state"
)

// quiet drops the log lines of the production types: the event log is the report.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil)) //nolint:gochecknoglobals // Immutable.

// Timing of the nodes, in virtual time. Short, so that a run holds many elections.
const (
	tick          = 20 * time.Millisecond
	electionTicks = 10
	closeInterval = 60 * time.Millisecond
	// scrubPeriod is about how long a round over all that is on a disk takes. upkeepPause
	// lies between two steps of a node's upkeep at least.
	scrubPeriod = 400 * time.Millisecond
	upkeepPause = 10 * time.Millisecond
)

// member is one node of a location: its disk, which outlives it, and the node while
// it is up.
type member struct {
	l  *location
	id geo.NodeID
	fs *vfs.MemFS
	n  *node.Node
	// life counts starts: what an earlier life still says is dropped.
	life  int
	clock *skewed
	// process is what its process does of the replication, nil while the node is down.
	process *process
	// shippers are those of the node's ranges.
	shippers map[geo.RangeID]*shipping
	tickAt   time.Duration
	upkeepAt time.Duration
	dirty    bool
	// slow is how long the node rests after each step, zero for a healthy node. It rests until
	// restUntil.
	slow, restUntil time.Duration
	// killed is the disk as it was when the node died in the middle of a pass; nil
	// while it lives.
	killed *vfs.MemFS
	// foreign: it is started in the folder of another node.
	foreign bool
	// applied is the last index each range applied in this life.
	applied map[geo.RangeID]uint64
	// left is how much room its disk has if that is not zero: see full.go.
	left uint64
	// paused: it stands still. full: its disk has no room. failSync is the folder whose next
	// fsync fails, failed means that one did.
	paused, full, failed bool
	failSync             string
	// asked are the requests to the node while it stood still.
	asked []func()
	// passing is the pass that can stand still, nil for none. If seams is not zero, the pass
	// stands still at that many seams from now, for stopFor; if stopWhole, the whole node does.
	// See stopPass.
	passing   *passing
	seams     int
	stopFor   time.Duration
	stopWhole bool
	// tasks are what it does beside its scheduler.
	tasks []*task
	// fed means that it was given blobs by a snapshot: it holds the payload that the state
	// names, not all that records named.
	fed bool
	// corrupted are the chunks of which a bit was flipped here.
	corrupted map[extent.ChunkID]extent.Ref
	// collected are chunks that its collection dropped when nothing here named them.
	collected map[extent.ChunkID]bool
	// forgot are the replicas whose hard state and log are gone, by range.
	forgot map[geo.RangeID]geo.ReplicaID
	// damaged means that it lost what it had promised to keep, and is not rebuilt yet.
	// logCorrupted means that a bit of its log was flipped while it ran.
	damaged, logCorrupted bool
	// desk is what the node does for the directory, nil in a run without changes of redundancy.
	desk *desk
	// messages is the queue service of its process, nil in a run without.
	messages *queues.Service
	// fence and confirming are those of its process, nil in a run without: see fences.go. It looks at confirmAt.
	fence      *ranges.Fence
	confirming *confirm.Machine
	confirmAt  time.Duration
	// learned are the accounts of which it knows by an exchange that the other location was promoted.
	learned map[geo.Account]bool
	// compares means that it compares the gates of a range.
	compares bool
	// owes is the greatest index of each range that was acknowledged while this node
	// was in sync.
	owes map[geo.RangeID]uint64
	// owesChunks are the chunks that those writes named.
	owesChunks []extent.Ref
}

// skewed is a node's clock: its wall clock is off.
type skewed struct {
	*clock.Manual
	m   *member
	off time.Duration
}

// Now implements clock.Clock.
func (c *skewed) Now() time.Time {
	now := c.Manual.Now().Add(c.off + c.m.l.leapt)
	c.m.seam()
	return now
}

// Mono implements clock.Clock.
func (c *skewed) Mono() time.Duration {
	now := c.Manual.Mono()
	c.m.seam()
	return now
}

func newMember(l *location, id geo.NodeID) *member {
	m := &member{
		l: l, id: id, fs: vfs.NewCrashableMem(), owes: map[geo.RangeID]uint64{},
		corrupted: map[extent.ChunkID]extent.Ref{}, collected: map[extent.ChunkID]bool{}, forgot: map[geo.RangeID]geo.ReplicaID{},
	}
	m.clock = &skewed{Manual: l.s.clock, m: m}
	return m
}

// logSegmentBytes is small, so that a run goes round the segments of the log: what
// lags behind is copied forward, and files are recycled.
const logSegmentBytes = 128 << 10

// storeOptions are the options with which the node, and the checks of its disk, open the stores.
func (m *member) storeOptions(fs vfs.FS) state.Options {
	return state.Options{
		FS: fs, Shared: m.l.s.shared, StateMemTableBytes: 4 << 20, LogSegmentBytes: logSegmentBytes, Logger: quiet,
	}
}

// dataDir is the node's folder on its own disk.
const dataDir = "data"

// open starts the node on its disk and checks what it recovered.
func (m *member) open() {
	s := m.l.s
	if !m.foreign {
		m.checkOwed()
	}
	m.life++
	life := m.life
	m.openFence()
	m.l.startsLeapt()
	if m.l.wrong != m {
		m.clock.off = s.between(-s.skewMax, s.skewMax)
	}
	n, err := node.Open(node.Options{
		Location: m.l.name, ID: m.id, Levels: finalized(), Peers: m.l.placement.Nodes, Dir: dataDir, State: m.storeOptions(&disk{m.fs, m, life}),
		AskFarClock: func(done func(skew.Own, error)) { m.l.net.askFar(m, done) },
		Clock:       m.clock, Transport: m.l.net, Seed: s.rng.Uint64(), Parity: m.l.parity, Tick: tick, ElectionTicks: electionTicks,
		InSyncTimeout: s.inSyncTimeout, Logger: quiet, CloseInterval: s.closeIntervalOf,
		ScrubPeriod: scrubPeriod, CollectGrace: s.collectGrace(), FlushEntries: s.flushEntries, LogBytesMax: s.logBytesMax, SnapshotFragmentBytes: 1 << 10,
		RowChunks: blobs.RowChunks, ChunkSpans: blobs.ChunkSpans, FetchBytesPerSecond: 1 << 40,
		Go: m.begin, Stepped: true, Fence: m.fence, OnEvent: m.onEvent,
		OnApplied: func(id geo.RangeID, a ranges.Applied) {
			if m.life == life && m.killed == nil {
				m.onApplied(id, a)
				if m.n != nil && a.Index == m.n.Range(id).Machine.AppliedState().Index { // The last of its batch.
					m.takesTime(false)
				}
			}
		},
	})
	if m.refusesFolder(err) {
		return
	}
	if err != nil {
		s.fail(fmt.Errorf("%w: open %s-%d: %w", ErrStore, m.l.name, m.id, err))
		return
	}
	m.n, m.dirty, m.tickAt, m.upkeepAt = n, true, s.now, s.now
	m.applied = map[geo.RangeID]uint64{}
	m.shippers = map[geo.RangeID]*shipping{}
	for _, id := range m.has(everyRange[:]) {
		m.applied[id] = n.Range(id).Machine.AppliedState().Index
		m.l.history[id].checkMember(m)
	}
	m.compares = false
	m.startProcess()
	m.openDesk()
	m.openQueues()
	if m.life > 1 {
		s.counts.Reopened++
		s.event("%s node %d opens", m.l.name, m.id)
	}
}

// leads reports whether the node is up and itself holds that it leads a range.
func (m *member) leads(id geo.RangeID) bool {
	return m.n != nil && m.killed == nil && m.n.Range(id) != nil && m.n.Range(id).Leading()
}

// has returns those of the given ranges of which the node has a replica.
func (m *member) has(some []geo.RangeID) (list []geo.RangeID) {
	for _, id := range some {
		if slices.Contains(m.l.placement.Of(id), m.id) {
			list = append(list, id)
		}
	}
	return list
}

func (m *member) next() time.Duration {
	if m.still() {
		return math.MaxInt64
	}
	next := min(m.tickAt, m.upkeepAt, m.process.next())
	if m.confirming != nil {
		next = min(next, m.confirmAt)
	}
	for _, sh := range m.shippers {
		next = min(next, sh.at)
	}
	if m.dirty || m.killed != nil {
		next = 0 // The work waits until the rest ends. A node that was killed ends with its next pass.
	}
	return max(next, m.restUntil)
}

// work does the passes and steps that are due and reports whether there were any.
func (m *member) work() bool {
	s := m.l.s
	if m.n == nil || m.still() || s.now < m.restUntil {
		return false
	}
	busy := m.workOnce()
	if busy {
		m.restUntil = s.now + m.slow
	}
	return busy
}

func (m *member) workOnce() bool {
	s := m.l.s
	m.compareGates()
	m.lookAround()
	busy := m.upkeep()
	if m.dirty || m.killed != nil || s.now >= m.tickAt {
		busy = true
		m.dirty = false
		if s.now >= m.tickAt {
			m.tickAt = s.now + tick
		}
		m.pass()
	}
	if m.n == nil || s.err != nil {
		return busy
	}
	if !m.still() && m.killed == nil {
		busy = m.process.work() || busy
	}
	for _, id := range m.l.s.shipped {
		if sh := m.shippers[id]; sh != nil && (sh.dirty || s.now >= sh.at) {
			sh.dirty = false
			sh.at = s.now + max(sh.Step(s.now), time.Millisecond)
			m.dirty, busy = true, true // It may have given the range a trim.
		}
	}
	return busy
}

// upkeep does the step of the node's upkeep that is due, and reports whether one was.
func (m *member) upkeep() bool {
	s := m.l.s
	if s.now < m.upkeepAt {
		return false
	}
	rest := m.scrub()
	if rest > 0 {
		m.upkeepAt = s.now + max(rest, upkeepPause)
	}
	m.dirty = m.dirty || m.killed != nil || m.failed
	return true
}

// passes does passes until nothing is left to do, or the node died in between. p is nil
// where they cannot stand still.
func (m *member) passes(p *passing) {
	for again := true; again; {
		var err error
		again, err = m.n.Pass()
		switch {
		case p != nil && p.abandoned:
			return
		case m.killed != nil:
			m.die(m.killed)
			return
		case m.failed:
			m.die(m.crashed()) // It is out of service, and is started again.
			return
		case err != nil && m.logCorrupted:
			m.l.s.event("%s node %d: out of service", m.l.name, m.id)
			m.die(m.crashed())
			return
		case err != nil:
			m.l.s.fail(fmt.Errorf("%w: %s-%d: %w", ErrStore, m.l.name, m.id, err))
			return
		}
		m.findSnapshots()
	}
	for _, id := range m.has(everyRange[:]) {
		if err := m.n.Range(id).Replica().Lost(); err != nil && !m.damaged {
			m.l.s.fail(fmt.Errorf("%w: %s-%d r%d: %w", ErrReplicaLost, m.l.name, m.id, id, err))
		}
	}
}

// maybeKill draws whether the node dies now, in the middle of its pass: what it has
// not synced is lost, although a leader may have sent it already.
func (m *member) maybeKill() bool {
	s := m.l.s
	if s.chance(s.rates.kill) {
		m.kill()
	}
	return m.killed != nil
}

// kill ends the node at this point of its pass, where its peers are well.
func (m *member) kill() {
	if m.killed != nil || m.l.recovery != nil || m.l.up() < len(m.l.members) {
		return
	}
	m.killed = m.crashed()
	m.l.s.counts.Killed++
	m.l.s.event("%s node %d killed", m.l.name, m.id)
}

// die ends the node, as a crash does, and leaves it with disk. Callers that waited for it get an
// error.
func (m *member) die(disk *vfs.MemFS) {
	m.discard()
	m.fs = disk
	m.l.s.restart(m)
}

// discard closes the node and writes nothing to the event log.
func (m *member) discard() {
	if m.n == nil {
		return
	}
	m.abandonPass()
	m.endTasks()
	n := m.n
	m.n, m.killed, m.seams, m.process = nil, nil, 0, nil
	m.paused, m.failed, m.failSync, m.asked, m.slow, m.restUntil = false, false, "", nil, 0, 0
	m.life++
	// A log that failed over a flipped bit reports that once more when it is closed.
	if err := n.Close(false); err != nil && (!m.logCorrupted || n.Failed() == nil) {
		m.l.s.fail(fmt.Errorf("%w: close %s-%d: %w", ErrStore, m.l.name, m.id, err))
	}
}

// up counts the nodes that run and are connected.
func (l *location) up() int {
	n := 0
	for _, m := range l.members {
		if m.n != nil && m.killed == nil && !m.stands() && !l.net.isolated[m.id] {
			n++
		}
	}
	return n
}
