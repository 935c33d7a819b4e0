// Package directory holds the directory, which account is primary where under which
// epoch, and, later, the moves between locations.
//
// Invariant (R7, R8): an account is answered as created only after its name is
// reserved at both locations and its gate is committed in every range of both.
package directory
