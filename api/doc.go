// Package api is the HTTP front end of a location: it finds service and account,
// forwards what this location does not hold, authorizes, refuses writes on
// `-secondary`, and hands the rest to the service's handler.
//
// Invariants: a bad request gets the protocol's status, code and body and changes
// nothing (invariant 7); nothing is written through `-secondary` (invariant 4); a
// request is forwarded once at most, byte for byte.
package api
