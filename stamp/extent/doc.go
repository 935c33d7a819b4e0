// Package extent is the chunk store of one node. Payloads above the inline limit
// are cut into chunks by the caller and appended here; a change then names the
// chunks by Ref.
//
// Invariant: a chunk reported durable is whole on disk, and bytes that fail their
// CRC are never returned.
//
// "Whole on disk" means that every byte of it was covered by an fdatasync that
// returned without error. What a medium forgets after that is found when it is
// read: the answer is ErrCorrupt, Durable turns false, and a second Put of the same
// Ref repairs the chunk.
//
// # Use
//
//	s, err := extent.Open(fs, dir, extent.Options{})
//	ref := extent.NewRef(id, data)
//	err = s.Put(ref, data) // in the file, perhaps only in the page cache
//	err = s.Sync(ctx)      // everything put before this call is durable
//	n, err := s.Read(ref, off, p)
//
// Syncs are grouped: callers that arrive while an fdatasync runs share the next
// one. There is no goroutine in here; a caller of Sync does the work for the others.
//
// # Files
//
// Chunks are appended to one active extent file. A full one is sealed and never
// written again; it is unlinked when all its chunks are dead. The bytes are
// described in docs/format/extent.md. After each fdatasync the store appends a
// mark, which says how far the file is durable. Open believes the headers below a
// mark without reading the payloads. What it finds intact above the last mark it
// writes again into a new extent, and syncs that: after a failed fsync the kernel
// may hold pages that it calls clean and that are not on the disk, so a second fsync
// of the same pages proves nothing. What is not intact above the last mark was never
// acknowledged and is left out; below it, it is ErrCorrupt for that chunk.
//
// # Limits
//
//   - The index is in memory, about 100 bytes a chunk, and Open visits the header of
//     every chunk. It will move to the state store (DESIGN section 4).
//   - Delete is in memory only. After a restart the chunks of extents that were not
//     yet unlinked are back; the caller compares Refs with what its state names and
//     deletes the rest (R9).
//   - An extent with one live chunk keeps its whole file: there is no compaction.
//   - One active extent, buffered writes, no preallocation.
//   - A chunk of which both header and trailer are lost cannot be named: it is
//     ErrNotFound, and Stats.LostBytes counts its bytes.
//   - Every extent keeps one file descriptor open.
//   - A full disk takes the store out of service as any failed write does; admission
//     belongs to the caller.
package extent
