// Package gateway runs the gateway: the process that forwards each request to a node of the
// location that has the account, and operations to the nodes they are for.
//
// It asks the locations for the epochs of accounts, which come before who answered last: see routing.Gateway.
//
// Invariant: it keeps no state but what it learns again after a restart, so any number of gateways may run side by side.
package gateway
