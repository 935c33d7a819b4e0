// Package cursor is the receiving side of the other location's streams: how far each
// stream is applied here, the closed times received, and the progress that sync times
// follow from.
//
// Received is part of a range's applied state. It is stepped with the parts of the groups that took
// effect. It writes its rows into the batch of the data they count, so that a record is applied
// exactly once. The owner guards it: no method is safe for concurrent use. It computes no Last Sync
// Time: package stats does, from Progress.
//
// Invariants: a cursor moves by one record, the one that follows it (R11); a closed time
// never goes back; a stream's Sync is a closed time whose head the stream has applied (R13).
package cursor
