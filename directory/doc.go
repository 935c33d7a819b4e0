// Package directory records which location is the primary of an account, and under which
// epoch. It reserves the names of accounts at both locations, sets their gates, and goes on with
// what is under way for them.
//
// Its parts stand below it and never import it: directory/record is what all share,
// directory/batch has steps of many accounts share groups and calls, failover/planned,
// failover/unplanned and failover/rejoin move accounts, and replication/bootstrap copies them. A
// Directory owns one of each; each owns its memory and the mutex of it.
//
// Invariant (R7, R8): an account is answered as created only after its name is
// reserved at both locations and its gate is committed in every range of both.
package directory
