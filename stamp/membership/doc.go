// Package membership decides for one range on one node. It decides which replica the node holds,
// how far that replica can be trusted, and which change of the configuration the leader makes next.
//
// Invariant: an id that a replica took part under is never used again after the replica lost
// anything that it had promised (R4). So a node that finds its folder empty, damaged or
// outdated takes no part until the group has given it a new id.
//
// A Machine is deterministic: Step takes an event and returns effects, and neither reads a
// clock nor a file nor sends anything itself. The node carries the effects out in their order;
// each is durable before the next begins, and one that fails takes the node out of service.
// What a crash leaves between two effects, the event Opened continues. Two effects may take long, and
// the node carries them out apart from its scheduler: Wipe and ReformState. Each is the last effect
// of its event. Until Wiped or Reformed follows, the replica takes part in nothing, and a later
// recovery may retire it.
//
//	                    an empty folder                     a folder with data, from before
//	                          │                             there were identities
//	                          v                                       │
//	  ┌──── Lose, a later ─ Joining ── every node of the range is ────┤
//	  │     recovery                   empty too, or joined with us   │
//	  v                                                               v
//	Forgotten ── LastID ──> Lost <── Lost, a later recovery ─────── Member <──────────┐
//	                         │                                        │               │
//	                         │  the leader speaks to a new id         │ an operator   │
//	                         v                                        v Reform        │
//	                     Rebuilding ─── the old data is removed ──────┼───────────────┤
//	                                                              Recovering ─ the range is
//	                                     (Lost, too, can be re-formed)          re-formed
//
//	Joining     a new stamp: no peer has data either
//	Member      it acted under its id, so its log held a hard state: without one it is lost
//	Lost        it found that it lost what it had promised; its id is the last one under which
//	            it may have taken part, as far as its folder knows
//	Forgotten   the same, but the folder is a new one: it does not know its last id yet
//	Rebuilding  a new id, under which nothing was sent yet: the old data is being removed. After
//	            a restart it is Lost then: see wipedAgain
//	Recovering  a new id, under which nothing was sent yet: the range is being re-formed
//	            from its data
//
// How a lost replica comes back, each step an event for the operator:
//
//	its node    asks the leader, once in each life, which id was given last
//	its node    reports the loss to all peers, until it is removed
//	the leader  removes its id                            replica-removed
//	the leader  adds a learner on the node, a new id      replica-added
//	its node    receives a message for the new id         replica-rebuilding
//	the leader  feeds it, from the log or by a snapshot
//	the leader  promotes it when it has caught up         replica-promoted
//
// The new id must be one under which the node never took part. A node whose folder is gone, or was set
// back, does not know which those are: it may have been rebuilt before, and its newest id may still be a
// member, to which the leader speaks. So it accepts no message until the leader has reported,
// after a round that confirms that it leads, which id was given last: those above are new. A member whose
// folder was set back to before it was rebuilt has a former id: a peer that knows the later one names it
// (LogMark), and the replica is lost under that.
//
// Removal and the rest are committed by a quorum of the trusted replicas. Without one nothing
// changes, and the range answers 503 until an operator re-forms it from one replica.
//
// The fence of a recovery (R4): two replicas that were away while their range was re-formed are
// a quorum of the old configuration, and would elect a leader beside the new one. Every Raft
// message carries the recovery of its sender in the sender's id:
//
//	of an earlier recovery   dropped; its node is sent the later one
//	of a later recovery      the replica here is retired, durably, before anything else
//
// A node without a leader asks all others in each tick. So it learns of a recovery within the
// election timeout during which a restarted replica neither votes nor stands. No fence holds
// against replicas that are a quorum of the old configuration, if they are cut off from the
// re-formed range and none of them can learn of the recovery. They can continue without it.
package membership
