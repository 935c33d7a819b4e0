// Package messages runs producers and consumers of one queue, keeps what they sent and saw, and says afterwards which
// promises of protocol/queue.md 28 that breaks. It takes nothing from the server but answers to clients.
//
// Invariant: History.Check complains only where no outcome of the requests without an answer explains what was seen.
package messages
