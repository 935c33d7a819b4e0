// Package blobs is the front end of the blob service: it takes payload in, turns
// requests into the commands and queries of services/blobs, and streams payload out.
//
// Invariants: a request that is refused has changed nothing readable. A success is
// written only after the command is on every in-sync replica, with every chunk that it
// names (R3). An answer is of one committed state of the blob; if the rest cannot be
// read, the answer ends short of its Content-Length.
//
// # Requests
//
// Every operation goes through the same steps (parsed): refuse what is not built, parse what
// the operation alone has, read the groups of headers that its row takes (input). Only then its
// handler runs: it resolves the names, evaluates the command or the query, and writes the
// answer (head). So all operations check a request in the order of protocol/blob.md 2.6, and no
// handler reads a header or a parameter.
//
// # Uploads
//
// Memory is charged as it is filled (protocol.InFlight), so a body that does not come
// holds none. A body up to blobs.InlineBytesMax is read whole and travels in the change.
// A longer one passes through buffers of one chunk, four at once: a buffer is filled from
// the socket, hashed, and put on every node that is up while the next one is filled. The
// command that names the chunks is proposed when all of them are durable. An upload that
// fails before that leaves chunks that no row names: see package services/blobs.
//
// # Copies
//
// A source is found and authorized by protocol.Sources (call.withSource). What this location
// serves is read here as Get Blob reads it: a copy takes over rows and shares their chunks
// (blobs.CopyBlob), and a block or a blob without blocks shares whole chunks (origin.chunks), so
// that no payload moves. Parts of chunks are read and put, as uploads are. Any other source is
// one read of another server, which is put the same way (openElsewhere). A copy ends with its
// request: none is ever pending.
//
// # Not built
//
// Page blobs answer 501.
// Headers that would change the meaning of a write and are not built (customer keys,
// encryption scopes, immutability, structured bodies) are refused with
// UnsupportedHeader, never ignored. Public access to a container is refused, since
// anonymous requests are. Nothing is encrypted at rest, and the answers report this.
// Names of metadata are kept in lower case: net/http changes the case they came in, and
// most clients send lower case.
package blobs
