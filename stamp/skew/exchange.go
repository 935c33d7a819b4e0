package skew

import (
	"fmt"
	"log/slog"
	"time"

	"antipode/geo"
)

// Exchange asks the peers of a node for their clocks and answers them, over whatever carries
// messages between nodes. Pass and Tick are called from one goroutine.
type Exchange struct {
	*Table
	Watch Watch
	// SendQuestion and SendAnswer send a message, which may get lost. They do not block.
	SendQuestion func(to geo.NodeID, q Question)
	SendAnswer   func(to geo.NodeID, a Answer)
	// Report reports that the clock begins to keep the node from evaluating, or no longer does.
	Report func(begins bool, reason string)
	Logger *slog.Logger
}

// Pass answers the questions that arrived since the last pass.
func (x *Exchange) Pass() {
	for _, to := range x.Answers() {
		x.SendAnswer(to.Node, to.Answer)
	}
}

// Tick asks the peers whose turn it is, and looks at what is known of the clock here: by the nodes of the
// stamp, and by whether a range that is led here was kept from evaluating by it.
func (x *Exchange) Tick(nodes []geo.NodeID, refused bool, now, ran time.Duration) {
	q, peers := x.Ask()
	for _, p := range peers {
		x.SendQuestion(p, q)
	}
	off := refused || x.Compare(nodes, now).Agreement == Off
	begins, ends := x.Watch.Step(off, ran)
	if !begins && !ends {
		return
	}
	reason := Describe(x.Offsets())
	if begins {
		reason = fmt.Sprintf("%s; at most %s is allowed", reason, geo.ClockOffMax)
		x.Logger.Error("the wall clock disagrees with those of other nodes: ranges led here take no writes", "reason", reason)
	}
	x.Report(begins, reason)
}
