// Package clone opens a clone of an account: a writable copy of what its secondary location has at a cut, for a
// rehearsal. It is a stamp of one node beside a live node, from a checkpoint of that node's state, and the front end that
// serves it.
//
// Invariants: nothing of a clone leaves it. It has no streams, no bus, no link, and its own catalog, in which the
// account has no copy. So it ships nothing, receives nothing, and is never taken for the account. The live node
// keeps every chunk as long as a clone reads from it (R9). A clone is gone once it is closed, and a restart of the
// process deletes what is left of it.
package clone
