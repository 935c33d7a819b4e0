// Package ship is the source's side of the geo stream: it turns what a range's
// leader applied into frames, publishes them to the stream of the other location,
// pushes payload ahead of them, and lets the outbox go once it is acknowledged.
//
// Invariants: records leave in commit order, each once it is applied on a quorum,
// and stay in the outbox until the other location has them on its replicas; a
// closed record names every stream that changed since the last one (R12). A frame
// that was lost costs a pull, never a write.
package ship
