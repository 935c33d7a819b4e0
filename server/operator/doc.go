// Package operator carries out the calls of operators in every process: a node, the gateway, both locations in one process.
// Each call is one entry of locationcalls.go: what a location does, in which of its processes, and how their answers become
// one. Local is a location that the process itself runs, Members one of which it runs a node, Remote one that it reaches
// through the admin ports of its nodes. Backend puts locations together.
//
// Invariant: what the documents show and how answers of several locations become one is
// decided in Backend alone, for flows of streams in package flow. A Location says what holds for itself.
package operator
