// Package notices posts the events of failovers to a receiver by HTTP: the notice that affected customers get.
//
// Invariant: nothing waits for the receiver. Send keeps a notice in memory and returns; what does not fit any more is
// counted, and the next notice that arrives has the number. Notices arrive in their order, at least once.
package notices
