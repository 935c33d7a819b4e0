// Package payload moves the chunks of payload between two locations: Pusher from the near stamp into the far one,
// Fetcher the other way. Each has one budget of bytes on the line, which follows what the line carries (package
// pace), and which small payload and large payload share.
//
// Invariants: no more is under way than the budget allows, but for one chunk; a chunk that waits for its turn has
// no deadline; small payload does not wait for large.
package payload
