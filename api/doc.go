// Package api is the HTTP front end of a location. It finds service and account, looks up
// the operation, forwards a request that another location or node serves (package routing),
// authorizes, refuses writes through `-secondary`, and lets the service's handler answer the
// rest. A Server without a Location is a gateway, which forwards every request to the
// location that has its account.
//
// A node gives its Server all of Options. Its Forwarder's endpoints are the front ends
// of the paired location, several of them, and its Leader answers from the state of
// stamp.Stamp and the peers' addresses. A gateway gives Locations, Clock, IDs and a
// Forwarder whose endpoints are the front ends of every location's nodes; it needs no data.
//
// Invariants: a bad request gets the protocol's status, code and body and changes
// nothing (invariant 7); nothing is written through `-secondary` (invariant 4).
//
// Echo carries the handlers, as it does those of the admin port. Here its router is unused,
// and so are its binders and its middleware: the resources of the protocol have paths in
// which `//`, `..` and `%2F` are data, which are signed as they were sent, and which a router
// would clean, merge or decode. Server.handler is the only place that knows Echo, beside the
// ResponseWriter that reports the status and the length of an answer.
package api
