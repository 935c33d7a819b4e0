package feature

import "fmt"

// Level is a feature level. Durable: never renumber.
type Level uint32

// The levels. A release that writes something new adds one here, names it below, raises Known, and asks Gate.Allows
// before it writes that. docs/upgrade.md has the rules.
const (
	// Base is everything that was written before there were levels.
	Base Level = 1

	// Known is the highest level that this program knows.
	Known = Base
)

// names say what each level brought, for people.
//
//nolint:gochecknoglobals // A table, never written.
var names = map[Level]string{
	Base: "all that was written before there were levels",
}

// Name says what a level brought; empty for one that this program does not know.
func (l Level) Name() string { return names[l] }

// String is for people.
func (l Level) String() string { return fmt.Sprintf("level %d", uint32(l)) }
