package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"antipode/directory"
	"antipode/geo"
	"antipode/primary"
	"antipode/replication/bus"
	"antipode/replication/bus/membus"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/secondary"
	"antipode/stamp/cursor"
	"antipode/stamp/ranges"
)

// everyRange are the ranges of a stamp.
var everyRange = [...]geo.RangeID{1, 2, 3, 4} //nolint:gochecknoglobals // A table.

// shipped are the ranges that carry the workload: the others stand idle.
var shipped = [...]geo.RangeID{geo.FirstRange(geo.Catalog), geo.FirstRange(geo.Table), geo.FirstRange(geo.Blob)} //nolint:gochecknoglobals // A table.

// location is one stamp, the receiver of the other location's stream, and what the
// checks know of it. It implements directory.Stamp and
// secondary.Stamp.
type location struct {
	s       *Sim
	name    geo.Location
	parity  geo.Timestamp
	far     *location
	net     *network
	members []*member
	// placement says which members have which ranges.
	placement ranges.Placement

	// wrong is the member whose clock is wrong, nil for none: see clocks.go.
	wrong *member

	// bus is the stream that arrives here, from the other location.
	bus       *membus.Bus
	receiving receiving
	publisher bus.Publisher // to the other location's bus

	sweeping  sweeping
	directory *directory.Directory
	primary   *primary.Primary
	intake    *intake

	history map[geo.RangeID]*history
	// recovery is the one under way, nil for none.
	recovery *recovery
	// leaders are the leaders at the last look, to count changes; lowSync means that a leader saw
	// fewer than three replicas in sync.
	leaders map[geo.RangeID]geo.NodeID
	lowSync map[geo.RangeID]bool
	// healed is the greatest commit or closed time of each range when the faults ended.
	healed map[geo.RangeID]geo.Timestamp
}

// receiving is the receiver and when it wants to be stepped.
type receiving struct {
	*receive.Receiver
	at    time.Duration
	dirty bool
	// dead means that the process that receives was killed, and that no other one takes over.
	dead bool
}

// ackWait is short, so that the bus delivers again within a run.
const ackWait = 500 * time.Millisecond

// pendingBytesMax is small, so that a range without a leader is left to the pull within a run.
const pendingBytesMax = 16 << 10

func newLocation(s *Sim, name geo.Location, parity geo.Timestamp, nodes int) *location {
	l := &location{
		s: s, name: name, parity: parity, bus: membus.New(s.clock, bus.Bounds{AckWait: ackWait}),
		history: map[geo.RangeID]*history{}, leaders: map[geo.RangeID]geo.NodeID{}, lowSync: map[geo.RangeID]bool{}, intake: &intake{},
		healed: map[geo.RangeID]geo.Timestamp{},
	}
	l.net = newNetwork(l)
	l.primary = primary.New(l.intake)
	var sites []ranges.Site
	for id := geo.NodeID(1); id <= geo.NodeID(nodes); id++ {
		l.members = append(l.members, newMember(l, id))
		sites = append(sites, ranges.Site{Node: id})
	}
	l.placement = ranges.Place(sites, everyRange[:])
	return l
}

// holders are the members that have a range.
func (l *location) holders(id geo.RangeID) []*member {
	on := l.placement.Of(id)
	out := make([]*member, len(on))
	for i, n := range on {
		out[i] = l.member(n)
	}
	return out
}

// pair gives each location the other as its peer.
func pair(a, b *location) {
	a.far, b.far = b, a
	for _, l := range []*location{a, b} {
		for _, svc := range []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table} {
			l.history[geo.FirstRange(svc)] = newHistory(l, svc)
		}
		l.publisher = linkedPublisher{l.far.bus.OpenPublisher(), l.s, l.far}
		l.directory = directory.NewDirectory(l, l.far.name)
		l.receive()
		if l.s.sweeps {
			l.sweep()
		}
	}
	a.directory.SetPeer(b.directory)
	b.directory.SetPeer(a.directory)
}

// receive starts the receiver, in place of one that died with the location.
func (l *location) receive() {
	l.receiving = receiving{dirty: true, Receiver: receive.New(receive.Options{
		Origin: l.far.name, Ranges: shipped[:], Consumer: l.bus.OpenConsumer(), Source: link{l.s, l.far},
		Applier: watchedApplier{secondary.NewApplier(l), l}, Clock: l.s.clock, Logger: quiet, Alarm: l.alarm,
		Wake: func() { l.receiving.dirty = true }, BatchBytesMax: l.s.batchBytesMax, PendingBytesMax: pendingBytesMax,
	})}
}

// alarm takes the named alarms of shippers and receivers.
func (l *location) alarm(reason string) {
	l.s.event("%s alarm %s", l.name, reason)
	switch reason {
	case receive.AlarmStands:
		l.s.counts.RangeStood++
	case receive.AlarmGap:
		l.s.counts.Gap++
	case receive.AlarmFork, receive.AlarmChecksum, receive.AlarmEpoch, ship.AlarmLost, ship.AlarmBudget:
		if !l.s.rewritten && l.s.poisoned == nil && !l.s.mayAlarm(reason) {
			l.s.fail(fmt.Errorf("%w: %s", ErrAlarm, reason))
		}
	}
}

func (l *location) member(id geo.NodeID) *member { return l.members[id-1] }

// next is when somebody here wants to work.
func (l *location) next() time.Duration {
	next := l.receiving.at
	if l.receiving.dead {
		next = math.MaxInt64
	}
	if l.sweeping.Sweeper != nil {
		next = min(next, l.sweeping.at)
	}
	for _, m := range l.members {
		if m.n != nil {
			next = min(next, m.next())
		}
	}
	return next
}

// work lets everybody here work once and reports whether anybody did.
func (l *location) work() bool {
	busy := false
	for _, m := range l.members {
		busy = m.work() || busy
	}
	if !l.receiving.dead && (l.receiving.dirty || l.s.now >= l.receiving.at) {
		l.receiving.dirty = false
		l.receiving.at = l.s.now + l.receiving.Step(l.s.now)
		busy = true
	}
	busy = l.sweepStep() || busy
	if busy {
		l.watchLeaders()
	}
	return busy
}

// wake lets all nodes do a pass: something was submitted to one of them.
func (l *location) wake() {
	for _, m := range l.members {
		m.dirty = true
	}
}

// watchLeaders counts changes of leaders and of in-sync sets.
func (l *location) watchLeaders() {
	for _, id := range shipped {
		for _, m := range l.members {
			if !m.leads(id) {
				continue
			}
			r := m.n.Range(id)
			if was := l.leaders[id]; was != m.id && l.newest(id) == m {
				if was != 0 {
					l.s.counts.LeaderChange++
				}
				l.leaders[id] = m.id
				l.s.event("%s r%d led by %d", l.name, id, m.id)
			}
			if l.leaders[id] == m.id {
				low := r.InSync() < len(l.placement.Of(id))
				if low && !l.lowSync[id] {
					l.s.counts.OutOfSync++
				}
				l.lowSync[id] = low
			}
		}
	}
}

// newest returns the leader of the highest term: an isolated leader may not know of it yet.
func (l *location) newest(id geo.RangeID) *member {
	var best *member
	var term uint64
	for _, m := range l.members {
		if m.leads(id) {
			if _, t := m.n.Range(id).Replica().Leader(); t > term {
				best, term = m, t
			}
		}
	}
	return best
}

// Leader implements secondary.Stamp: one of those that say they lead.
func (l *location) Leader(id geo.RangeID) *ranges.Range {
	if m := l.leader(id); m != nil {
		return m.n.Range(id)
	}
	return nil
}

// LeaderNode implements secondary.Stamp: all nodes are in this process, so that Leader
// suffices.
func (l *location) LeaderNode(geo.RangeID) (geo.NodeID, bool) { return 0, false }

// Replica implements secondary.Stamp.
func (l *location) Replica(id geo.RangeID) *ranges.Range { return l.Leader(id) }

// Progress implements secondary.Stamp: of a leader whose lease holds. One that has none asks for it.
func (l *location) Progress(_ context.Context, id geo.RangeID, src geo.SourceRange, a geo.Account) (p cursor.Progress, err error) {
	m := l.leader(id)
	if m == nil || m.still() {
		return p, ranges.ErrNotLeader
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // It must not wait for a lease.
	r := m.n.Range(id)
	err = r.Read(ctx, func(ranges.State) error {
		p = r.Machine.Progress(src, a)
		return nil
	})
	if err != nil {
		r.Confirm(func(error) {})
		m.dirty = true
	}
	return p, err
}

func (l *location) leader(id geo.RangeID) *member {
	var found []*member
	for _, m := range l.members {
		if m.leads(id) {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[l.s.rng.IntN(len(found))]
}

// shipper finds the shipper of a range at a node that leads it.
func (l *location) shipper(id geo.RangeID) *ship.Shipper {
	if m := l.leader(id); m != nil {
		return m.shippers[id].Shipper
	}
	return nil
}

// Location implements directory.Stamp.
func (l *location) Location() geo.Location { return l.name }

// Submit implements directory.Stamp, for the boot: it steps the run until the
// command has its answer.
func (l *location) Submit(_ context.Context, id geo.RangeID, cmd ranges.Command) error {
	answer, asked := errStuck, false
	l.s.runUntil(bootMax, func() bool {
		if r := l.Leader(id); r != nil && !asked {
			asked = true
			r.Submit(cmd, func(err error) {
				answer = err
				asked = !errors.Is(err, ranges.ErrNotLeader) // ErrNotLeader means that nothing happened.
			})
			l.wake()
		}
		return asked && !errors.Is(answer, errStuck)
	})
	return answer
}

// Read implements directory.Stamp. Making an account reads nothing.
func (l *location) Read(context.Context, geo.RangeID, func(ranges.State) error) error {
	return errStuck
}

// Go implements secondary.Stamp: only a payload is put in the background.
func (l *location) Go(f func(ctx context.Context)) { f(context.Background()) }

// close ends the location's nodes.
func (l *location) close() {
	if l == nil {
		return
	}
	for _, m := range l.members {
		m.discard()
	}
}

// watchedApplier counts what became of received records.
type watchedApplier struct {
	receive.Applier
	l *location
}

// Apply implements receive.Applier.
func (a watchedApplier) Apply(b *receive.Batch, done func(error)) {
	a.Applier.Apply(b, func(err error) {
		if err == nil {
			a.l.outcomes(b)
		}
		done(err)
	})
	a.l.wake()
}

func (l *location) outcomes(b *receive.Batch) {
	for _, r := range b.Records {
		switch r.Outcome {
		case receive.Duplicate:
			l.s.counts.Dedup++
		case receive.Wait:
			l.s.counts.Wait++
		case receive.Refused:
			l.s.fail(ErrAlarm)
		}
	}
}
