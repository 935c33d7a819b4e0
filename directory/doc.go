// Package directory records which location is the primary of an account, and under which
// epoch. It reserves the names of accounts at both locations and sets their gates.
//
// Invariant (R7, R8): an account is answered as created only after its name is
// reserved at both locations and its gate is committed in every range of both.
package directory
