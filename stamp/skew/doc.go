// Package skew measures how far the wall clocks of the nodes of a stamp are apart, and decides by it
// whether a leader may give times (R6).
//
// Invariant: a clock that a Table calls Agreed was within geo.ClockOffMax of the clocks of a quorum,
// measured while both nodes ran, and was not set since.
//
// Each node asks every other one for its wall clock once a second. The answer was read between
// question and answer, so what is learned is an interval:
//
//	here    ──sent────────────────────────────arrived──>  monotonic time, of this node
//	             \                            /
//	there         \──arrived────held────sent─/           wall clock, of the peer
//
//	the peer's wall clock at (sent + (arrived-held)) / 2 was what it answered, ± half the rest
//
// The measurement relates the peer's wall clock to the monotonic clock here, not to the wall clock
// here. So it says nothing about the wall clock here, and stays right when that one is set: how far
// the two wall clocks are apart now follows from one reading here. A clock that is set by ten minutes
// is found in the next evaluation, before it gives a time.
//
// What a late answer proves. Its interval is wide: it neither proves that the clocks agree nor
// that they do not. The narrowest measurement of the last sampleAge is used, and a node without
// processor time needs only one good answer in that time. Times at which questions and answers
// arrive are taken by the transport's goroutines, so that a scheduler that comes late does not widen
// the interval.
//
// What a node that was just started proves. Nothing, before the first answers: it asks in every tick until
// then. An evaluation waits for it.
package skew
