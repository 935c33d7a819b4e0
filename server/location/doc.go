// Package location puts one location together as one process sees it: the stamp, of which
// all nodes or one run here, the roles, shipping, receiving, statistics, and the handlers of
// its front end. `antipode dev` runs two in one process, `antipode node` one node of one.
//
// Invariant: a location meets the other one through Options.Link and Far alone.
package location
