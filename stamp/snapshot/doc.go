// Package snapshot carries a range from one node to another as a copy of its rows, for a
// replica that the log of its leader no longer reaches back to.
//
// Invariants: a replica that was fed by a snapshot counts for nothing before it holds the
// payload that its state names (R3); a crash at any moment leaves the old replica or the new
// one, whole, and never one that lost what it acknowledged (R4; install.go has the states); rows of two views of the
// state never lie in one.
//
//	the leader                                 the peer
//	Offer      what a snapshot would hold
//	Send       a view of the state, as
//	           fragments of rows         ───>  Accept, Incoming.Send   staged as they come
//	                                           Incoming.Finish         payload fetched
//	                                           StepArrived             accepted, in a scheduler pass
//	                                           Begin                   state replaced, apart from it
//	                                           Install                 log reset, in another pass
//	FinishSends  Raft goes on        <───      FinishArrived           acknowledged
//
// A stream that broke off goes on behind the last row that the peer has (kept.go), and until the peer is in sync the
// leader keeps the log behind the snapshot and slows the writers that would outrun it (pin.go, trim.go).
//
// A Manager is both sides, for all ranges of a node, which it knows through the interface
// Node.
package snapshot
