// Package primary is the write role: it evaluates commands under the gate of their
// account and closes generations.
//
// Invariants: a write takes effect only under an open gate (R7, invariant 4) and in a
// generation that is not closed (R8); a write whose payload is not durable on every in-sync
// replica is not proposed (R3).
package primary
