// Package pair has the calls between two locations beside the stream: pulls of records and closed records,
// acknowledgements, received times, questions of package verify, and chunks, which a push of much payload asks for first.
//
// An End is a location as the other one calls it. NewEnd is a location in this process;
// NewRemote is the same over a link.Caller, answered by Serve at a node of the other
// location. Through passes the calls of an End through the link. Source uses an End for the receiving half of the
// replication, package payload for the sending one.
//
// Invariant: every call may be repeated, with the effect of one, since its answer may get lost.
package pair
