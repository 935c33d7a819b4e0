// Package fetch copies payload chunks that a node lacks from its peers: those that entries of its leader name, those of
// range snapshots, and those that the scrub finds missing or damaged.
//
// Invariant: what is put here was read from a peer whole, and matches its reference.
package fetch
