// Package confirm decides, for one node, whether the epochs of the accounts that are primary at its location are
// confirmed (R21): whether the node may take it that no other location has become their primary while it did not run.
//
// Invariant: a node holds the confirmation only from an exchange with the other location that began while the node ran,
// from a live node of its stamp that held it at a moment in which this node ran, from an operator's override, or
// from the standing policy for a location whose other location does not answer. It loses it with the process, and with
// a pause of the process that is longer than Options.Hold. Accounts that are known to have a higher epoch elsewhere
// stay refused, whatever confirms the rest.
//
// Why a live node of the stamp may pass it on: a node that holds it has run since its own exchange, so it knows as much
// as if this node had never stopped. A chain of such nodes is one node that ran all the time. What a location that ran
// all the time does not know, a promotion behind a cut link, no exchange can exclude: that is what the witness
// is for.
//
//	             Exchanged, NodeHolds, Overridden,
//	             Exchanged with an error while Alone
//	Unconfirmed ───────────────────────────────────> Held
//	     ^                                             │
//	     └──────── no Look for longer than Hold ───────┘
//
// A Machine is deterministic: Step takes the time and an event and returns effects. It reads no clock and starts
// nothing itself. Held returns what a ranges.Fence takes after each step; it ends by itself when steps stay away, so
// that a process that stood still refuses before its first step.
package confirm
