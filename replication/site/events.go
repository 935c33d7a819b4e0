package site

import (
	"time"

	"antipode/geo"
)

// Term is a term of the catalog's leader. Two processes never lead in the same one.
type Term uint64

// Event is what happened in the process.
type Event interface{ isEvent() }

// NodeStarted follows the start of a node of the process, also after a failure.
type NodeStarted struct {
	Node geo.NodeID
	// Ranges are those of which the node has a replica.
	Ranges []geo.RangeID
}

// NodeStops comes before a node of the process stops.
type NodeStops struct{ Node geo.NodeID }

// Look comes every LookEvery.
type Look struct {
	// Lead is the term in which a node of the process leads the catalog; 0 while none does.
	Lead Term
}

// Known is what Read was asked for.
type Known struct {
	Term Term
	// Incarnation is that of the stream as the location knew it last; zero if it knows none.
	Incarnation time.Time
}

// Failed follows a Read that got no answer.
type Failed struct{ Term Term }

// Ended follows the end of a receiver.
type Ended struct{ Term Term }

// Stop ends the receiver. Nothing is begun after it.
type Stop struct{}

func (NodeStarted) isEvent() {}
func (NodeStops) isEvent()   {}
func (Look) isEvent()        {}
func (Known) isEvent()       {}
func (Failed) isEvent()      {}
func (Ended) isEvent()       {}
func (Stop) isEvent()        {}

// Effect is what the process has to do.
type Effect interface{ isEffect() }

// Read reads what the location knows of the stream. Known or Failed follows, with the term.
type Read struct{ Term Term }

// StartReceiver starts a receiver. Ended follows when it has ended, with the term.
type StartReceiver struct {
	Term        Term
	Incarnation time.Time
}

// EndReceiver ends the receiver of a term. What it has submitted may still be committed.
type EndReceiver struct{ Term Term }

// StartShipper starts the shipper of a range at a node.
type StartShipper struct {
	Node  geo.NodeID
	Range geo.RangeID
}

// StopShipper stops it, and waits for its end.
type StopShipper struct {
	Node  geo.NodeID
	Range geo.RangeID
}

func (Read) isEffect()          {}
func (StartReceiver) isEffect() {}
func (EndReceiver) isEffect()   {}
func (StartShipper) isEffect()  {}
func (StopShipper) isEffect()   {}
