// Package node runs one node of a location as a process of its own, with its front end and
// its admin port: `antipode node`.
//
// Invariant: a node runs under the number and the data folder of its configuration and no
// other. An operation on another node of the location is a call to that node's process.
package node
