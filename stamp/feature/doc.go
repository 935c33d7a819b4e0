// Package feature has the feature levels of a cluster, and the gate that code asks before it writes what an earlier
// version does not know.
//
// A level stands for everything that one release is the first to write: kinds of parts, layouts, steps, fields that
// decide something. Each program knows the levels up to Known. Each location keeps two levels in its catalog, durably:
//
//	floor   no program that knows less serves here. It stops, with one line, and changes nothing
//	active  what may be written here
//
// Both are Base until an operator finalizes an upgrade. That raises the floor of both locations, once all their nodes
// were seen to know the level, and then what is active: so a node that gets what was written at a level has
// its floor, also in the other location. Until then every node can go back to the version before.
//
// A node also keeps the floor in a file of its folder, which is read before any store is opened: the formats of
// its stores may rise with it.
package feature
