// Package ship is the source side of the geo stream. It turns the applied groups of a range's
// leader into frames, and publishes them to the stream of the other location. It pushes payload
// ahead of them, and trims the outbox once it is acknowledged.
//
// Invariants: records leave in commit order, each after it is applied on a quorum, and
// stay in the outbox until the other location has them on its replicas. Every frame ends
// with a closed record, which names every stream that changed since the last one (R12). A
// lost frame costs a pull, never a write. Memory is bounded: see Bounds.
package ship
