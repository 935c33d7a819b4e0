// Package ledger writes entities and blobs, each once and under a key that nothing else has, and finds out afterwards which
// of them are left: an oracle of a failover that knows only the client's side.
//
// Invariant: what was acknowledged is in the ledger as such, and nothing else is. A write whose answer leaves open whether
// it happened is unknown, never refused.
package ledger
