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
//	err = s.Put(ref, data) // in the file, perhaps only in a cache
//	err = s.Sync(ctx)      // everything put before this call is durable
//	n, err := s.Read(ref, off, p)
//
// A large payload that begins on a page goes to the file from where it lies; Buffers
// lends such memory. NewChunk and PutChunk sum a chunk once for several stores.
//
// Syncs are grouped: callers that arrive while an fdatasync runs share the next
// one. There is no goroutine in here; a caller of Sync does the work for the others, and
// the owner calls Compact and Scrub step by step.
//
// # Files
//
// Chunks are appended to one of two active extent files: small chunks, through the page
// cache; and those of 256 KiB and more, in whole pages and past the page cache where fs
// is the disk and lets us. O_DIRECT says nothing about the device's own cache, so both
// need the fdatasync. Room is taken ahead, so that few fdatasyncs meet metadata. A full
// file is sealed and never written again; when all its chunks are dead it is recycled,
// under a new number and incarnation. The bytes are described in docs/format/extent.md.
//
// The header of each chunk says how far the file was durable before it, and the seal says so for
// all of it. Open believes the headers below that without reading the payloads. What it finds
// intact above it writes again into a new extent, and syncs that: after a failed fsync the kernel
// may hold pages that it calls clean and that are not on the disk, so a second fsync of the same
// pages proves nothing. A chunk that is not intact there was never acknowledged, or was damaged
// since, and is left out. Below, it is ErrCorrupt for that chunk.
//
// Reads go through the page cache. For a MiB just written, as the push to the other
// location reads it, that took 1.3 ms and 0.5 ms of processor, past it 1.6 ms and 0.3 ms;
// but the next read then takes 0.3 ms in place of a request to the disk. Only Scrub reads
// past it.
//
// # Limits
//
//   - The index is in memory, about 115 bytes a chunk (1.2 GB for ten million, measured by
//     BenchmarkLockHold), and Open visits the header of every chunk. It will move to the
//     state store (DESIGN section 4). The bytes of a chunk that is deleted come back when
//     its extent is dropped.
//   - Delete is in memory only. After a restart the chunks of extents that were not
//     yet dropped are back; the caller compares Refs with what its state names and
//     deletes the rest (R9).
//   - The writes of one file are one after the other: a second chunk waits for the first.
//   - A file in its first life has metadata to write with each fdatasync; only recycled
//     ones have none. Writing large files twice to spare it was no faster.
//   - A process that is killed leaves up to 8 MiB of room taken ahead, until the extent is
//     dropped.
//   - A chunk of which both header and trailer are lost cannot be named: it is
//     ErrNotFound, and Stats.LostBytes counts its bytes.
//   - Every extent keeps one file descriptor open.
//   - A full disk takes the store out of service as any failed write does; admission
//     belongs to the caller.
package extent
