// Package sim is both locations, three nodes each and under some seeds up to seven, stepped
// in one goroutine: the
// production types (node.Node, site.Machine, ship.Shipper, receive.Receiver, secondary.Applier,
// the commands of primary, stats.Of) over a clock moved by hand, a seeded generator,
// file systems in memory that keep what was synced, membus as the bus, and a
// network between nodes and a link between locations that break their promises.
//
// Invariant: the same seed gives the same event log, and so the same hash. Nothing observable
// depends on wall time, on the order of a map or on a goroutine: what a node does beside its
// scheduler, such as sending a range snapshot, is a task that the run steps from one pause to the
// next; flushes of the state are waited for; a crash tears files of the state store, which Pebble
// writes in the background, from a separate source; and what a restarted replica applies again is
// checked but not logged.
//
// Each node is a process with a site (package site), which decides whether the process receives, and for
// which term of the catalog's leader. A receiver sees its own node, and calls others over the network; it ends
// with its process. Two may receive for a moment, each in its term (ErrReceiver).
//
// The workload is writes of single entities, entity group transactions, blobs put whole
// and in blocks, and the making and deleting of their containers. Payload is in real
// chunk stores: on its way to a node, to a follower that fetches it and to the other
// location it may be lost, and a node may die with it in the page cache alone.
//
// Under Options.Queues there are queues, too: clients put, get, update, delete and clear messages through the queue service of
// the node that leads their range, and the keeper of each node collects and scales: see queues. Every change of a queue is
// compared with the state before it, and at rest all messages are got. Their range may be recovered with a loss: what it kept
// holds the same promises, and a message is got again early only where its get is lost.
//
// Faults: messages lost, doubled, late and out of order; nodes cut off, both ways or one, killed
// between any two writes of their log, stopped, standing still, slow; passes whose writes, fsyncs and applies take time, now
// and then as long as a disk stalls; power cuts that keep some
// unsynced blocks; failed fsyncs; full disks; wall clocks off by minutes; logs, states and whole
// disks that are gone or of which a bit is flipped, of one node at a time (R4); bits flipped in
// chunks and logs of running nodes, and peers that send other bytes than they hold; a link that
// is cut or slow, and a stream that loses, doubles, swaps, holds back, refuses and forgets. Small
// budgets of the log turn many absences into a range snapshot. In some runs an operator recovers a range of
// tables, blobs or queues with a loss (R4): see recovery. What that costs either location follows from the
// histories: see loss. In others the outbox has a small budget, so that accounts fall out of it (R18). In most runs
// operators change the redundancy of accounts, which may begin as LRS, and have copies made again, by the production
// code (R17): see moves, desk, copies. In half of those runs that have no recovery they also have
// primaries moved, often with too little time for it, and end such moves (R19): see failovers, home. In most of those they
// promote secondaries, too, whatever has become of the primary (R20): see promotions, forks. In some of those there is a
// witness at a third place (R21): see third.
//
// Run takes one seed to its end. While it runs it checks everything that the replicas apply
// against the promises of DESIGN section 9, and ends with the first broken one: see the errors of
// this package. Then it heals, and everything must come to rest: all voters of each range in
// sync, three of them, more only for the catalog of a large stamp; empty outboxes, Last Sync Time
// past the moment of healing, no damaged copy of a chunk that a peer could repair, all replicas
// of both locations equal. Streams that forked, or whose receiver lost what it had acknowledged, must be
// stopped at both ends instead, and their service unavailable (R16).
//
//	res := sim.Run(sim.Options{Seed: 7})
//	fmt.Println(res) // seed, event hash, what fired and what it caused
//
// RunStall takes one cause for which Last Sync Time stands still, with victims drawn by the seed: what antipodectl
// why answers is asked all the time, and must be right (ErrWhy). At the end of every run verify compares the
// copies (ErrVerify).
//
// TestScenarios plays stories in the same world, without chance: testdata holds a script and
// what everyone sees after each of its steps.
//
// Limits: no account is moved in a run with a recovery; chunks are short, and none is collected; the state is
// damaged only while its node is down, and its fsyncs do not fail; one range of a run is recovered with a
// loss, and never the catalog, and in such a run copies are made again after the faults alone: see startMoves; the scrub leaves out the tables of the state, which its own goroutines
// write; time stands still while a follower fetches a
// chunk, and before and after the faults within a pass; where a range is being recovered no pass stalls, since a survivor that
// stands still for an election timeout cannot keep two old replicas from each other.
package sim
