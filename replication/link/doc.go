// Package link has the calls between two locations beside the stream: pulls,
// acknowledgements and payload, and the switch that cuts or delays all of it, the
// stream's publishes and forwarded HTTP included.
//
// An End is a location as the other one calls it. NewEnd is a location in this process;
// NewRemote is the same over a Caller, answered by Serve at a node of the other
// location. Source and Pusher use an End for the two halves of the replication.
//
// Invariants: nothing else connects two locations, and a cut link lets nothing through in
// either direction. Every call has a deadline and may be repeated, since its answer may
// get lost. While the other location hangs, a bounded number of calls waits for it and
// the rest fails at once.
package link
