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

// events is the event log of a location's nodes, and of the accounts, in this process: the newest
// eventsMax, in memory. Its methods may be called concurrently.
type events struct {
	location geo.Location
	clock    clock.Clock

	mu   sync.Mutex
	last uint64 // number of the newest event
	ring []wire.Event
}

// add keeps an event of a node.
func (v *events) add(e node.Event) {
	v.keep(wire.Event{Kind: string(e.Kind), Node: wire.NodeName(v.location, e.Node), Range: e.Range, Replica: e.Replica, Reason: e.Reason})
}

// keep gives an event its number, time and location, and returns it so.
func (v *events) keep(w wire.Event) wire.Event {
	now := v.clock.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last++
	w.Number, w.Time, w.Location = v.last, wire.Time{Time: now}, v.location
	if len(v.ring) < eventsMax {
		v.ring = append(v.ring, w)
		return w
	}
	v.ring[(v.last-1)%eventsMax] = w
	return w
}

// report logs and keeps an event about an account.
func (l *Location) report(e wire.Event) wire.Event {
	l.o.Logger.Info("event", "kind", e.Kind, "account", e.Account, "service", e.Service, "reason", e.Reason)
	e = l.events.keep(e)
	l.o.OnEvent(node.EventKind(e.Kind))
	return e
}

// Events returns the newest events of the location's nodes that run in this process, and what this
// process saw of its accounts, newest first. They outlive stops and starts of the location, not the process.
func (l *Location) Events() []wire.Event {
	l.events.mu.Lock()
	defer l.events.mu.Unlock()
	out := slices.Clone(l.events.ring)
	slices.SortFunc(out, func(a, b wire.Event) int { return int(int64(b.Number) - int64(a.Number)) })
	return out
}
