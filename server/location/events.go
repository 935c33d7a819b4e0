package location

import (
	"slices"
	"sync"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/node"
)

// eventsMax is how many events a location keeps: some days of quiet operation.
const eventsMax = 1024

// events is the event log of a location's nodes in this process: the newest eventsMax, in
// memory. Its methods may be called concurrently.
type events struct {
	location geo.Location
	clock    clock.Clock

	mu   sync.Mutex
	last uint64 // number of the newest event
	ring []wire.Event
}

func (v *events) add(e node.Event) {
	now := v.clock.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last++
	w := wire.Event{
		Number: v.last, Time: wire.Time{Time: now}, Location: v.location, Kind: string(e.Kind),
		Node: wire.NodeName(v.location, e.Node), Range: e.Range, Replica: e.Replica, Reason: e.Reason,
	}
	if len(v.ring) < eventsMax {
		v.ring = append(v.ring, w)
		return
	}
	v.ring[(v.last-1)%eventsMax] = w
}

// Events returns the newest events of the location's nodes that run in this process,
// newest first. They outlive stops and starts of the location, not the process.
func (l *Location) Events() []wire.Event {
	l.events.mu.Lock()
	defer l.events.mu.Unlock()
	out := slices.Clone(l.events.ring)
	slices.SortFunc(out, func(a, b wire.Event) int { return int(int64(b.Number) - int64(a.Number)) })
	return out
}
