// Package seglog is a node's log of all its ranges in append-only segment files:
// state.Log with one write and one fdatasync for each synced commit.
//
// Invariant: what a synced Commit returned for is on disk and is found by every later
// Open, whole and unchanged, or Open refuses the log (R4). What was not synced is
// found in whole commits from the oldest on, or not at all. Nothing else is ever
// found: leftovers of an earlier use of a segment do not pass for records.
//
// # Use
//
//	l, err := seglog.Open(dir, state.Options{})
//	g, err := l.Range(id, voters)
//	b := l.NewBatch()
//	err = g.Append(b, entries)
//	err = b.Commit(true)
//
// # Segments
//
// The bytes are described in docs/format/log.md. A segment is filled with zeros and
// synced before its first use, and recycled by a rename, so that an fdatasync of the
// log changes no file metadata. A write is one frame, a whole number of pages: no page
// that was synced is written again, and none is read to be written. So on a disk frames
// are written past the page cache, where the file system lets us.
//
// A segment begins with the state of every range as of the end of the segment before
// it: hard state, last trimmed index, last index. So idle ranges pin no old segment.
// The oldest segment goes when none of its entries is wanted any more; while the live
// entries fill less than half of the segments, those of the oldest are copied into the
// current one. A copy fills an index that the log knows already; it never appends.
//
// # Torn tails and corruption
//
// Every frame says up to where its segment was durable when it was written. Open
// believes what lies below that, or refuses the log where it is not intact. What is
// found intact above the last mark may be in the page cache only, since a failed
// fsync leaves pages that count as clean: it is written again, into a new segment, and
// synced before Open returns. What is not intact there was promised to nobody and is
// left out. Nothing is ever appended to a segment that was found at open.
//
// # Limits
//
//   - 16 bytes of memory for each live entry, beside the newest 4 MiB of each range.
//   - Terms and segment numbers below 2^32; a commit of less than 1 GiB.
//   - A commit that is the last before a power failure has no mark yet: if the disk
//     loses it after all, Open takes it for a torn tail. Commit indexes of peers,
//     which the replica checks, still show it (R4).
//   - After a failed write or fsync the log is out of service for good. A full disk is
//     such a failure; admission belongs to the caller.
package seglog
