// Package stamp is one location's storage cluster as one process sees it: the nodes that
// run here, and the others over the transport.
//
// Invariant: a command that was proposed, or that another node may have received, is never
// submitted a second time (R2). Only a command that found no leader is tried again.
//
// Open a Stamp with New, start its nodes with Start, and use Submit, Read, PutChunk and
// ReadChunk from any goroutine. Below it, package node is one node and its scheduler.
package stamp
