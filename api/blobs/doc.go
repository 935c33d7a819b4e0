// Package blobs is the front end of the blob service: it takes payload in, turns
// requests into the commands and queries of services/blobs, and streams payload out.
//
// Invariants: a request that is refused has changed nothing readable, and a success
// is written only after the command is on every in-sync replica, every chunk it names
// included (R3). What is sent of a blob is of one committed state of it; where the
// rest cannot be read the answer breaks off short of its Content-Length.
//
// # The way of an upload
//
// Memory is charged as it is filled (protocol.InFlight), so a body that does not come holds
// none. A body up to blobs.InlineBytesMax is read whole and travels in the change. A longer
// one passes through buffers of a chunk, four at once: filled from the socket, hashed,
// and put on every node that is up while the next is filled. The command that names the
// chunks is proposed when all are durable. An upload that fails before leaves chunks that no row
// names: see package services/blobs.
//
// # What is not here yet
//
// Leases, snapshots, copies, tags, ACL, page and append blobs and $root
// answer 501. Headers that would change what a write means and are not built
// (customer keys, encryption scopes, tags, immutability, structured bodies) are
// refused with UnsupportedHeader, never ignored. Public access to a container is
// refused, since anonymous requests are. Nothing is encrypted at rest, and the answers
// say so. Names of metadata are kept in lower case: net/http rewrites the case they
// came in, and lower case is what most clients send.
package blobs
