// Package membus carries a geo stream in memory, for tests and for the stepped
// simulator. It lies on demand in every way R15 allows a carrier to lie.
//
// Invariant: nothing happens outside a call. There is no goroutine, no timer and
// no randomness of its own, so the same calls, clock and seed give the same
// messages in the same order, and every fault that fired has been counted.
//
// A Carrier is one stream of one source location together with its durable
// consumer. Publish only queues; Step decides the fate of the oldest queued
// message (stored, lost, doubled, refused ...) and calls its done, so that
// whoever steps owns the order:
//
//	c := membus.New(clk, stream.Bounds{})
//	p, q := c.OpenPublisher(), c.OpenConsumer()
//	_ = p.Publish("geo.east.table.1", frame, done)
//	c.Deliver() // done has been called
//	msgs, err := q.Poll(64)
//
// Faults come from a seeded generator (SetFaults) or by hand (LoseIf, HoldIf,
// Cut, Wipe ...).
package membus
