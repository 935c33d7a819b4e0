// Package outbox is the source side of a range's streams: their heads, the records that
// the other location has not acknowledged, and the feed of new records to the shipper.
//
// An Outbox is part of a range's applied state. It is stepped with the parts of the
// groups that took effect and writes its rows into the batch of their data; it knows
// nothing of Raft. The owner guards it: no method is safe for concurrent use, except
// those of Feed.
//
// Memory and the time to open follow the number of streams, never that of records: heads count the
// bytes of their stream, and rows the bytes before them.
//
// Invariants: within a stream numbers are dense, and a record stays in the outbox from
// the group that numbered it until a trim (R14). A trim never passes the head.
package outbox
