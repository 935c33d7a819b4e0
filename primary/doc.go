// Package primary is the write role: it evaluates commands under the gate of their
// account, takes payload in, and opens gates.
//
// Invariants: a write takes effect only under an open gate of its epoch (R7, and
// invariant 4) and in a generation that is not closed (R8); nothing is proposed
// whose payload is not durable on every in-sync replica (R3).
package primary
