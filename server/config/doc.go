// Package config reads node.yaml: who a node is, where it listens, and whom it talks to.
//
// Invariant: a Node that Parse returns without an error passes every check that does not
// need the machine it is for; a file that is not understood in full is refused, so that
// no misspelt field is ignored. All that cannot be read is reported at once, and then all
// that is read and cannot be, each with its line, its value and what to write instead.
package config
