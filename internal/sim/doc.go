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
// The workload is writes of single entities, entity group transactions, blobs put whole
// and in blocks, and the making and deleting of their containers. Payload is in real
// chunk stores: on its way to a node, to a follower that fetches it and to the other
// location it may be lost, and a node may die with it in the page cache alone.
//
// Run takes one seed to its end. While it goes it holds everything that the replicas
// apply against the promises of DESIGN section 9, and ends with the first that was
// broken: see the errors of this package.
//
//	res := sim.Run(sim.Options{Seed: 7})
//	fmt.Println(res) // seed, event hash, what fired and what it caused
//
// Limits: no account is moved; chunks are short, and none is damaged or collected; a
// crash keeps nothing of what was not synced, so no record is torn; time stands still
// within a pass, but for nodes killed in it, and so while a follower fetches a chunk.
package sim
