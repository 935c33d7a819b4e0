// Package server runs one process of a deployment: a Node of a location, or the front Door.
//
// Invariant: a node takes part under the number and the data folder of its configuration and
// no other, and what an operator asks of one node is told of, or done to, the others by calls
// between the processes alone.
package server
