// Package gateway runs the gateway: the process that forwards each request to a node of the
// location that has the account, and operations to the nodes they are for.
//
// Invariant: it keeps no state, so any number of gateways may run side by side.
package gateway
