// Package queues is the queue service: commands and queries on subqueues, and Service, which spreads the messages of a
// queue over its subqueues (protocol/queue.md, Part II).
//
// Invariants: no message that lives stands below the head of its subqueue, where a dequeue begins to walk (guarantee H
// of protocol/queue.md 16); at least one subqueue of a queue takes messages at any time (15); a message is in one
// subqueue, and is counted there, from its put until its deletion, and only its newest receipt names it.
//
// A range evaluates its commands one after the other, so the locks of protocol/queue.md 17 are not needed.
package queues
