// Package config reads node.yaml and gateway.yaml: the identity of a process, its addresses, and
// the addresses of the processes it calls.
//
// Invariant: a Node that Parse returns without an error passes every check that does not need
// the machine it is for. Unknown fields are refused, so that no misspelt field is ignored.
// Syntax errors are reported together; if there are none, so are all invalid values. Each
// problem has its line, the value and what to write instead.
package config
