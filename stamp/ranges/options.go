package ranges

import (
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/extent"
	"antipode/stamp/feature"
	"antipode/stamp/skew"
	"antipode/stamp/state"
)

// Options configures a Range.
type Options struct {
	Location geo.Location
	Range    geo.RangeID
	Clock    clock.Clock
	// CompareClock reads the wall clock and compares it with those of the nodes of the range (R6). Nil means
	// that the wall clock is right.
	CompareClock func(nodes []geo.NodeID, passBegan time.Duration) skew.Comparison
	// TimesAhead is by how much commit times that the node has applied are ahead of now, as of when they were first found to
	// be: what is taken since does not count. From the scheduler; nil means that none is.
	TimesAhead func(now time.Time) time.Duration
	// Understands returns an error for an entry that this program cannot apply. Nil means change.Understood;
	// tests play an older version with it. OnLater is called, once, when such an entry or snapshot comes; OnFloor where
	// the catalog's floor is above what this program knows: its node must stop. Both may be nil, and any goroutine calls.
	Understands func(entry []byte) error
	OnLater     func(reason string)
	OnFloor     func(error)
	// Levels are the feature levels of the node. Nil means a gate of this program.
	Levels *feature.Gate
	// OnTransfer is called, from the scheduler, when the leader asks another node to lead, with the reason. May be
	// nil.
	OnTransfer func(to geo.NodeID, reason string)
	// Running is the running time of the node's scheduler.
	Running *clock.Running
	// Parity is the lowest bit of every timestamp given here: 0 in one location
	// of a pair, 1 in the other (R6).
	Parity geo.Timestamp
	// CloseInterval is how long a range goes without a closed record before it commits
	// one (R12). Zero turns time-driven closed records off.
	CloseInterval time.Duration
	State         *state.Store
	// Nodes are those that the range began on.
	Nodes []geo.NodeID
	// Wake is called from any goroutine when there is work for the scheduler.
	Wake func()
	// LeaseLength is how long a lease runs from its round's send time.
	LeaseLength time.Duration
	// Fence says whether writes of accounts that have a copy may be answered (R21). Nil means that they may.
	Fence *Fence
	// Slow returns how long the next commands wait after a group of so many bytes, so that the log grows no faster than
	// a replica is fed. Nil means that they never do.
	Slow func(bytes int) time.Duration
	// HasChunk reports whether a chunk is durable on this node (R3).
	HasChunk func(extent.Ref) bool
	// OnCommit takes how long a command waited for its commit. May be nil.
	OnCommit func(time.Duration)
	// OnApplied gets every entry, on every replica, after it was applied; from
	// the scheduler. May be nil.
	OnApplied func(Applied)
}
