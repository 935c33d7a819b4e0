package admin

import (
	"context"

	"antipode/geo"
)

// Levels are the feature levels that a location has committed (docs/upgrade.md).
type Levels struct {
	// Floor is what a program has to know to serve there.
	Floor uint32 `json:"floor"`
	// Active is the highest level at which it writes; never above Floor.
	Active uint32 `json:"active"`
}

// Finalize is the body of POST /v1/cluster/finalize.
type Finalize struct {
	// Level is the level to finalize at. Nil is the highest that all nodes know; 0 is refused, as any that no node knows.
	Level *uint32 `json:"level,omitempty"`
	// Without are nodes that need not be seen, by name, since they are away for long. A program on one that does not know
	// the level will not serve.
	Without []string `json:"without,omitempty"`
}

// Finalized is its answer.
type Finalized struct {
	// Level is what all locations are at now. Raised reports whether any was seen below; a node that answers may not have
	// applied a level yet that was raised moments ago, and raising it again changes nothing.
	Level     uint32         `json:"level"`
	Raised    bool           `json:"raised"`
	Locations []geo.Location `json:"locations"`
}

// CodeNotUpgraded is the code of an error that says why an upgrade is not finalized: a node that does not know the
// level, or was not seen. Nothing changed, unless the message says so.
const CodeNotUpgraded = "NotUpgraded"

// Finalize raises both locations to a feature level, once all their nodes were seen to know it. From then on no node can
// go back to a version that does not know it.
func (c *Client) Finalize(ctx context.Context, f Finalize) (Finalized, error) {
	return CallFinalize.Do(ctx, c, At{}, f)
}

// RaiseLevels raises the levels of one location, which knows nothing of the other one: Finalize does it in order.
func (c *Client) RaiseLevels(ctx context.Context, l geo.Location, to Levels) (Levels, error) {
	return CallRaiseLevels.Do(ctx, c, At{Location: l}, to)
}
