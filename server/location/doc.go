// Package location assembles the part of one location that runs in this process: the stamp
// with all nodes or one, the two roles, shipping, receiving, statistics, and the handlers of
// the front end. `antipode dev` runs two locations in one process, `antipode node` one node
// of a location. Set is the locations of a process, Server starts and stops one with its front
// end.
//
// Invariant: a location reaches the other one through Options.Link and Far alone.
package location
