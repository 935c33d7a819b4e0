package location

import (
	"context"

	"antipode/geo"
	"antipode/replication/ship"
	"antipode/replication/site"
	"antipode/stamp/kv"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// shipping is a shipper that runs.
type shipping struct {
	*ship.Shipper
	of     *ranges.Range
	cancel context.CancelFunc
	done   chan struct{}
}

// rangesOf returns the ranges of which a node has a replica.
func (l *Location) rangesOf(n *node.Node) (list []geo.RangeID) {
	for _, id := range l.o.Route.IDs() {
		if n.Range(id) != nil {
			list = append(list, id)
		}
	}
	return list
}

// ship starts shippers of a node, which does not run yet.
func (l *Location) ship(n *node.Node, effects []site.Effect) {
	set, budget := map[geo.RangeID]*shipping{}, l.budget(n)
	var known kv.Getter
	if replica := n.Range(l.o.Route.Catalog()); replica != nil {
		known = replica.State()
	}
	for _, e := range effects {
		id := e.(site.StartShipper).Range
		sh := ship.New(ship.Options{
			Location: l.o.Name, Range: n.Range(id), Publisher: askingPublisher{l.o.WrapPublisher(l.o.Link.Publisher(l.pub)), &l.confirming},
			Pusher: l.far.Pusher, Clock: l.o.Clock, Logger: l.o.Logger, Alarm: l.o.OnAlarm, Budget: budget, Withheld: func(st geo.Stream) bool { return l.withholding.withheld(known, st) },
		})
		ctx, cancel := context.WithCancel(context.Background())
		s := &shipping{sh, n.Range(id), cancel, make(chan struct{})}
		go func() {
			defer close(s.done)
			_ = sh.Run(ctx) // Run ends with ctx alone.
		}()
		set[id] = s
	}
	l.shipMu.Lock()
	defer l.shipMu.Unlock()
	l.shippers[n.ID()] = set
}

// rebuildFrames has the shippers of this process look again at what they have built.
func (l *Location) rebuildFrames() {
	l.shipMu.Lock()
	defer l.shipMu.Unlock()
	for _, set := range l.shippers {
		for _, s := range set {
			s.Rebuild()
		}
	}
}

// unship stops shippers of a node.
func (l *Location) unship(n *node.Node, effects []site.Effect) {
	l.shipMu.Lock()
	set := l.shippers[n.ID()]
	delete(l.shippers, n.ID())
	l.shipMu.Unlock()
	for _, e := range effects {
		s := set[e.(site.StopShipper).Range]
		s.cancel()
		<-s.done
	}
}

// Shipper returns the shipper of a range at its leader, or nil if no node of this process leads
// the range.
func (l *Location) Shipper(id geo.RangeID) *ship.Shipper {
	r := l.Leader(id)
	if r == nil {
		return nil
	}
	// Leader is called before shipMu is taken: the stamp calls ship with its lock held.
	l.shipMu.Lock()
	defer l.shipMu.Unlock()
	for _, set := range l.shippers {
		if s := set[id]; s != nil && s.of == r {
			return s.Shipper
		}
	}
	return nil
}
