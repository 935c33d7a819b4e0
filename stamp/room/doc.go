// Package room watches how much room the disk of a node has, and bounds what the node keeps there of stores that were
// set aside.
//
// Invariant: a node stops to take what needs room before a write of its stores fails for want of it, and it takes
// everything again by itself once there is room.
//
//	Plenty   everything is taken
//	Full     less than the reserve is free, until roomMore above it are. A leader takes no writes but deletions, and
//	         has a node with room lead in its place; a follower leaves the in-sync set, while enough others are in it.
//	         It is fed on, so that deletions reach it
//	Bare     less than half of the reserve: a leader takes no deletions of clients, a follower fetches no payload
//	Spent    less than a quarter: a follower takes no entries but those without which no leader could serve reads. It
//	         votes, and serves reads. A leader without a quorum that takes entries proposes nothing
//
// The rest of the reserve is for flushes, compactions and trims, which make room. Between two looks at a disk that is
// not Plenty, what the node is asked to take lowers what counts as free: see Expect.
//
// A Watch is the level of a node, and of its peers as they report it; it removes stores that were set aside.
package room
