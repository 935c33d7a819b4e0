// Package api is the HTTP front end of a location: it finds service and account,
// forwards what this location does not hold, authorizes, refuses writes on
// `-secondary`, hands what another node leads to that node, and the rest to the
// service's handler. A Server without a Location is a front door, which hands every
// request to the location that has its account.
//
// A node gives its Server all of Options. Its Forwarder's endpoints are the front ends
// of the paired location, several of them, and its Leader answers from what stamp.Stamp
// and the peers' addresses say. A front door gives Locations, Clock, IDs and a Forwarder
// whose endpoints are the front ends of every location's nodes; it needs no data.
//
// Invariants: a bad request gets the protocol's status, code and body and changes
// nothing (invariant 7); nothing is written through `-secondary` (invariant 4); a
// request makes one hop to another location and one to a leader at most, byte for byte;
// no request is sent again that may have had an effect, or whose body was touched (R1).
// Whether it has one is declared with its operation, not told from its HTTP method.
package api
