// Package clocks runs the nodes of both locations and the gateway in one process, as package cluster
// configures them, each node with a wall clock that the test sets wrong: the binary has no option for that.
//
// Invariant: all clients use the machine's clock.
package clocks
