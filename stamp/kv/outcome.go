package kv

import "errors"

// What is said of a command or query that has no answer of its own. Whoever serves the
// protocol turns them into its codes.
var (
	// ErrBusy: nothing happened, and the same may be tried again.
	ErrBusy = errors.New("busy; nothing happened")
	// ErrUnknown: it may have happened, or still happen.
	ErrUnknown = errors.New("no answer in time; it may have happened")
)
