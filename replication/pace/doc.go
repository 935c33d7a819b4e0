// Package pace finds how many bytes to have under way on a line of unknown width, by how long they take.
//
// Invariant: a Window never falls below its Least, so that something is always under way, and nothing it
// does blocks.
package pace
