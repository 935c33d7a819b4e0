// Package operator is what stands behind the admin port of every process: a node, the gateway,
// both locations in one process. Backend implements api/admin.Cluster over Locations. Local
// is a location that the process itself runs, Remote one that it reaches through the admin
// ports of its nodes.
//
// Invariant: what the documents show and how answers of several locations become one is
// decided in Backend alone, for flows of streams in package flow. A Location says what holds for itself.
package operator
