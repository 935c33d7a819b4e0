// Package linear checks that single objects, entities and blobs, behave as if one client
// after the other had used them (R5): a [History] of what clients did and saw is handed to
// porcupine.
//
// Invariant: what has no answer may have happened at any time after its call, or never; its
// return stays open to the end. What was refused before anything happened (R2) is no part of
// a history.
package linear
