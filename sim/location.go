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
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// everyRange are the ranges of a stamp.
var everyRange = [...]geo.RangeID{1, 2, 3, 4} //nolint:gochecknoglobals // A table.

// firstRanges is the table of the ranges of both locations.
var firstRanges = route.First() //nolint:gochecknoglobals // A table.

// location is one stamp, the stream that it receives from the other location, and what the
// checks know of it. It implements directory.Stamp.
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
	// leapt is how far all its clocks are ahead, startedLeapt how many nodes were started since they leapt: see leaps.go.
	leapt        time.Duration
	startedLeapt int

	// bus is the stream that arrives here, from the other location.
	bus *membus.Bus
	// consumer is the durable one of that stream, which all processes use. deaf means that no process
	// receives, whichever node leads.
	consumer  bus.Consumer
	deaf      bool
	publisher bus.Publisher // to the other location's bus

	sweeping  sweeping
	directory *directory.Directory
	primary   *primary.Primary
	intake    *intake

	// reached: a node has reached the other location since all of them were down at once, in a run with fences.
	reached bool

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
	l.placement = ranges.Place(sites, geo.FirstRange(geo.Catalog), everyRange[:])
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

// join gives each location the other as its peer.
func join(a, b *location) {
	a.far, b.far = b, a
	for _, l := range []*location{a, b} {
		for _, svc := range []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table} {
			l.history[geo.FirstRange(svc)] = newHistory(l, svc)
		}
		l.publisher = linkedPublisher{l.far.bus.OpenPublisher(), l.s, l.far}
		l.directory = directory.NewDirectory(l, l.far.name)
		l.consumer = l.bus.OpenConsumer()
		if l.s.sweeps {
			l.sweep()
		}
	}
	a.directory.SetPeer(b.directory)
	b.directory.SetPeer(a.directory)
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
	next := time.Duration(math.MaxInt64)
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
	for _, id := range l.s.shipped {
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

// Leader is a range at one of the nodes that say they lead it, as a caller of the other location reaches it.
func (l *location) Leader(id geo.RangeID) *ranges.Range {
	if m := l.leader(id); m != nil {
		return m.n.Range(id)
	}
	return nil
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

// Route implements directory.Stamp.
func (*location) Route() *route.Table { return firstRanges }

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

// close ends the location's nodes.
func (l *location) close() {
	if l == nil {
		return
	}
	for _, m := range l.members {
		m.discard()
	}
}
