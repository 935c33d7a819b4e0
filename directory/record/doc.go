// Package record is what the parts of a location's directory share: the records and gates of
// accounts, as commands look them up and stage them, and the commands that several parts commit.
//
// Invariant (R7, R8): a gate never goes back, neither to an earlier epoch nor within one, and the
// highest epoch that was seen for a name outlives its record.
package record
