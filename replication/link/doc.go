// Package link is the switch between two locations: it cuts or delays everything that goes from one to the
// other, the publishes of the stream and forwarded HTTP included, and bounds the calls that wait. What the calls
// say is in package pair, payload in package payload.
//
// Invariants: nothing else connects two locations, and a cut link lets nothing through in either direction. Every
// call has a deadline. While the other location hangs, a bounded number of calls waits for it and the rest fails
// at once.
package link
