// Package node is the process of one node (`antipode node`): the node itself, its front end
// and its admin port.
//
// Invariant: a node runs under the number and the data folder of its configuration and no
// other. An operation on another node of the location is a call to that node's process.
package node
