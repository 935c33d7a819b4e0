// Package clocks sets the wall clocks of node processes wrong while clients write and read, on the deployment of package
// rig. The binary is built with the tag steppedclock for that: the one that is shipped has no option for it.
//
// Invariant: all clients use the machine's clock.
package clocks
