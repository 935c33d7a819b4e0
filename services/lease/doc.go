// Package lease is the state machine of leases, the same for blobs and for containers (protocol/blob.md 17). What is stored of
// a lease is a value; each action is a pure function of it and of the time.
//
// Times are what the clock of the range's leader shows, as bounds of operations are (R6), not commit times: those may be
// ahead of it, and then hardly move. What is stored is the time of the end. So a lease ends when it was promised, but for as
// much as the clocks of two leaders differ, which is bounded (geo.ClockOffMax).
//
// Invariant: while a lease is locked by the leader's clock, nobody takes it with another ID.
package lease
