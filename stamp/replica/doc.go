// Package replica is one range's copy on one node: a member of its Raft group,
// stepped by the node's scheduler. It starts no goroutine and opens no clock or file.
//
// Invariants: a write is acknowledged at an index only when every in-sync replica
// has persisted it, two at least (InSync, R2); a replica that finds that it lost
// fsynced entries never votes or acknowledges again (R4); reads are served under a
// lease shorter than the time in which another leader could be elected (R5).
package replica
