// Package cluster runs a whole deployment on one machine, for demonstrations and tests: two
// locations of three node processes each, and a gateway, on loopback, each with its data folder.
//
// Invariant: it ends only processes that it started. It identifies a process by its number and
// its start time.
package cluster
