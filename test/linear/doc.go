// Package linear checks that single objects, entities and blobs, partitions of entities, and blobs that are leased
// behave as if one client after the other had used them (R1, R5): porcupine checks a [History] of what clients did and
// saw.
//
// Invariant: a call without an answer may have happened at any time after its start, or
// never; its return stays open to the end. A call that was refused before anything happened
// (R2) is not part of a history.
package linear
