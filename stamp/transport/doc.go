// Package transport carries Raft messages, payload chunks and calls between the nodes of a
// stamp that are separate processes: node.Transport over gRPC and mutual TLS.
//
// Invariant: what a member receives was sent by the node that its envelope names, as the
// certificate says, to this node, of the same stamp and location (internal/identity): the
// replicas that a message names are the member's to check; and memory is
// bounded, whatever a peer does: a queue per peer, one frame in flight, a fixed sum of
// bytes for chunks and for calls that come in.
//
// Each ordered pair of nodes has one long-lived stream of messages. Sender side:
//
//	Send ──> queue of the peer ──> frame (up to 256 KiB of messages) ──> stream
//
// Send never blocks. A message is dropped when the queue is full or no stream stands, and what is
// queued when a stream breaks is dropped with it: Raft sends again what it still needs, and older
// messages would only be in its way. A stream stands once the peer has answered it. The peer
// answers only while a node is attached there, so Peer gives nil for a process that is up without
// its node.
//
// Chunks have a separate connection: a heartbeat must not wait behind 4 MiB. Calls
// have one too: those that wait for a commit must not hold up the chunks that it needs.
//
// Nodes of the paired location may make calls that were given to HandlePair, and none of
// what nodes of the own stamp may do.
package transport
