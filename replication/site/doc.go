// Package site decides, for one process of a location, what it does of the replication with the other
// location: whether it receives the incoming stream, when another process takes that over, and which ranges it ships.
//
// Invariants: a process receives for one term of the catalog's leader at a time, and only for a term in
// which a node of the process leads. It reads what the location knows of the stream before, in that term:
// nothing is taken over from the receiver of an earlier term. A receiver of a term that is over is ended,
// and waited for, before the next one begins in the process. A site that is stopped begins nothing.
//
// A Machine is deterministic: Step takes the time and an event and returns effects; it reads no clock and
// starts nothing itself. The owner carries out the effects in their order: a process in goroutines, the
// simulator one step at a time.
//
//	            leads              Known                 the term is over, Stop
//	Following ─────────> Reading ─────────> Receiving ───────────────────────────> Ending
//	    ^ ^                 │                   │                                   │ │
//	    │ └─ the term is ───┘                   │ Ended, by itself                  │ │
//	    │    over, Failed                       v                                   │ │
//	    └───────────────────────────────────────┴────────────── Ended ──────────────┘ │
//	                                                                                  v
//	Following, Reading ── Stop ───────────────────────────────────────────────────> Stopped
//
// The handover to another process needs no message between the two. The lead of the catalog decides,
// which two processes may hold for a moment, each in its own term; then there are two receivers, which
// lose and repeat nothing (package receive). A receiver reads the cursors and stopped streams of a
// range itself before it acknowledges anything of the range: a range without a leader must not keep
// the others from being received (R15).
//
// A shipper is different: each node has one for each of its ranges, which ships while its node leads the
// range (package ship). So a new leader ships without delay.
package site
