package kv

import "errors"

// Outcomes of a command or query that got no answer. The server of the protocol turns them
// into status codes.
var (
	// ErrBusy: nothing happened, and the same may be tried again.
	ErrBusy = errors.New("busy; nothing happened")
	// ErrUnknown: it may have happened, or still happen.
	ErrUnknown = errors.New("no answer in time; it may have happened")
)
