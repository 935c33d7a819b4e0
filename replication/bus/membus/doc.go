// Package membus is the bus in memory, for tests and for the stepped simulator. On
// demand it shows every fault that R15 allows a bus to have.
//
// Invariant: nothing happens outside a call. The package has no goroutine, no timer and no random
// source except the seeded one. So the same calls, clock and seed give the same messages in the
// same order, and every fault that fired has been counted.
//
// A Bus is one stream of one source location together with its durable consumer. Publish only
// queues; Step decides the oldest queued message (stored, lost, doubled, refused ...) and calls
// its done, so the caller of Step controls the order:
//
//	b := membus.New(clk, bus.Bounds{})
//	p, q := b.OpenPublisher(), b.OpenConsumer()
//	_ = p.Publish("geo.east.table.1", frame, done)
//	b.Deliver() // done has been called
//	msgs, err := q.Poll(64)
//
// Faults come from a seeded generator (SetFaults) or by hand (LoseIf, HoldIf,
// Cut, Wipe ...).
package membus
