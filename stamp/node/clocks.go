package node

import (
	"slices"
	"time"

	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/skew"
)

// newClocks returns what compares the wall clock of the node with those of its peers (R6).
func (n *Node) newClocks() skew.Exchange {
	send := func(to geo.NodeID, m membership.Message) { n.o.Transport.Send(n.o.ID, to, []Envelope{{Report: m}}) }
	return skew.Exchange{
		Table:        skew.New(n.o.ID, n.o.Peers, n.o.Clock, n.scheduler.running, n.o.AskFarClock != nil),
		SendQuestion: func(to geo.NodeID, q skew.Question) { send(to, membership.ClockQuestion{Question: q}) },
		AskFar:       n.o.AskFarClock,
		SendAnswer:   func(to geo.NodeID, a skew.Answer) { send(to, membership.ClockAnswer{Answer: a}) },
		Report: func(begins bool, reason string) {
			n.event(Event{Kind: map[bool]EventKind{true: ClockOff, false: ClockAgrees}[begins], Node: n.o.ID, Reason: reason})
		},
		Logger: n.o.Logger,
	}
}

// Receive takes messages of peers, and the batch with them. It may be called from any goroutine.
func (n *Node) Receive(batch []Envelope) {
	// Those about a node are taken here. How long one about clocks would wait in the inbox is not known to those
	// that measure with it.
	n.scheduler.inbox.put(slices.DeleteFunc(batch, func(e Envelope) bool {
		switch m := e.Report.(type) {
		case membership.ClockQuestion:
			n.clocks.TakeQuestion(e.From, m.Question)
			return true
		case membership.ClockAnswer:
			n.clocks.TakeAnswer(e.From, m.Answer)
			return true
		case membership.RoomReport:
			n.room.Take(e.From, m.Level)
			return true
		}
		return false
	}))
}

// Clocks is what the node knows of its wall clock. It may be called from any goroutine.
func (n *Node) Clocks() *skew.Exchange { return &n.clocks }

// times are the commit times of the ranges of a node.
type times struct {
	n *Node
	// found is by how much they were ahead of the clock when that was found; 0 while they are not.
	found time.Duration
}

// ahead implements ranges.Options.TimesAhead.
func (t *times) ahead(now time.Time) time.Duration {
	latest := geo.Timestamp(0)
	for _, h := range t.n.ranges {
		latest = max(latest, h.Machine.AppliedState().Last)
	}
	switch by := latest.Time().Sub(now); {
	case by <= 2*geo.ClockOffMax:
		t.found = 0
	case t.found == 0:
		t.found = by
	}
	return t.found
}
