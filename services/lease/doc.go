// Package lease is the state machine of leases, the same for blobs and for containers (protocol/blob.md 17). What is stored of
// a lease is a value; each action is a pure function of it and of the time.
//
// Invariant: times are commit times (R6), which only rise from one leader, restart or primary to the next. So a lease ends
// when it was promised, whichever node leads then, and of two holders the second one's time begins after the first one's end.
package lease
