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
	// AskFar asks a node of the other location for its clock: done is called once, from any goroutine. It does not block.
	// Nil: there is no other location.
	AskFar func(done func(Own, error))
	// Report reports that the clock begins to keep the node from evaluating, or no longer does.
	Report func(begins bool, reason string)
	Logger *slog.Logger
}

// Off returns why the wall clock keeps the node from evaluating; empty while it does not. It may be called from any goroutine.
func (x *Exchange) Off() string {
	if !x.Watch.Off() {
		return ""
	}
	return x.Why()
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
	if x.AskFar != nil {
		if sent, ask := x.Table.AskFar(); ask {
			x.AskFar(func(o Own, err error) { x.TakeFar(sent, o, err) })
		}
	}
	off := x.CompareStamp(nodes, now).Agreement == Off || refused
	begins, ends := x.Watch.Step(off, ran)
	if !begins && !ends {
		return
	}
	reason := "it is right again"
	if begins {
		reason = fmt.Sprintf("%s; at most %s is allowed", x.Why(), geo.ClockOffMax)
		x.Logger.Error("the wall clock is not believed: ranges led here take no writes", "reason", reason)
	}
	x.Report(begins, reason)
}
