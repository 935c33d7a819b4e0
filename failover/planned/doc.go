// Package planned moves an account to its secondary without loss (R19), at the present primary and
// at the next one: draining, the offer, and its refusal.
//
// Invariant (R19): an account is offered only with closed gates, and taken only where the streams
// are applied up to their ends; the commit that takes it is the one commit point.
package planned
