// Package confirm decides, for one node, whether the epochs of the accounts that are primary at its location are
// confirmed (R21): whether the node may take it that no other location has become their primary while it did not run.
//
// Invariant: a node holds the confirmation only from one of four sources. The first is an exchange with the other
// location that began while the node ran. The second is a live node of its stamp that held it at a moment in which
// this node ran. The others are an operator's override, and the standing policy for a location whose other location
// does not answer. A node loses the confirmation with the process, and with a pause of the process that is longer
// than Options.Hold. Accounts that are known to have a higher epoch elsewhere stay refused, whatever confirms the
// rest.
//
// Why a live node of the stamp may pass it on: a node that holds it has run since its own exchange, so it knows as
// much as if this node had never stopped. A chain of such nodes is one node that ran all the time. No exchange can
// exclude a promotion behind a cut link, because a location that ran all the time does not know of it. The witness
// exists for that case.
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
