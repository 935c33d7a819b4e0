// Package cluster runs a whole deployment on one machine, for people who want to see one and
// for tests: two locations of three node processes each, and the gateway, all on loopback
// with data folders of their own.
//
// Invariant: it ends only processes that it started: a process is known by its number and the
// moment it started.
package cluster
