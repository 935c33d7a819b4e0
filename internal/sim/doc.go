// Package sim is both locations, three nodes each, stepped in one goroutine: the
// production types (node.Node, ship.Shipper, receive.Receiver, secondary.Applier,
// the commands of primary, stats.Of) over a clock moved by hand, a seeded generator,
// crashable file systems in memory, memstream as the carrier, and a network between
// nodes and a link between locations that lie.
//
// Invariant: the same seed gives the same event log, and so the same hash. Nothing
// observable depends on wall time, on the order of a map or on a goroutine: a crash
// keeps exactly what was synced, what a restarted replica applies again is checked but
// not logged, and no run is long enough for a log trim.
//
// Run takes one seed to its end. While it goes it holds everything that the replicas
// apply against the promises of DESIGN section 9, and ends with the first that was
// broken: see the errors of this package.
//
//	res := sim.Run(sim.Options{Seed: 7})
//	fmt.Println(res) // seed, event hash, what fired and what it caused
//
// Limits: the workload writes no payload chunks and moves no account; a crash keeps
// nothing of what was not synced, so no record is torn; time stands still within a
// pass, but for nodes killed in it.
package sim
