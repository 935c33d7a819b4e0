package feature

import "fmt"

// Level is a feature level. Durable: never renumber.
type Level uint32

// The levels. A release that writes something new adds one here, names it below, raises Known, and asks Gate.Allows
// before it writes that. docs/upgrade.md has the rules.
const (
	// Base is everything that was written before there were levels.
	Base Level = 1

	// Walls is the level of closed records that carry when they were made, since their time is ahead of the clock
	// (R6, R13), and of what is kept of them. It is also the level of the closed time from which a recovered range
	// takes them again.
	Walls Level = 2

	// Blobs is the level of rows of blobs with tagged fields: for leases, snapshots, append blobs, tags, and tiers of
	// which more is kept than a name. It is also the level of containers that have, or had, a lease.
	Blobs Level = 3

	// Known is the highest level that this program knows.
	Known = Blobs
)

// names say what each level brought, for people.
//
//nolint:gochecknoglobals // A table, never written.
var names = map[Level]string{
	Base:  "all that was written before there were levels",
	Walls: "Last Sync Time by the clock while times are ahead of it",
	Blobs: "leases of blobs and containers, snapshots, append blobs, tags, the tier Archive",
}

// Name says what a level brought; empty for one that this program does not know.
func (l Level) Name() string { return names[l] }

// String is for people.
func (l Level) String() string { return fmt.Sprintf("level %d", uint32(l)) }
