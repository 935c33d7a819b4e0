// Package edm reads and prints the values of the EDM types as text: in bodies, documents
// and filters (protocol/table.md 5).
//
// Invariant: what is printed reads back as the same value.
package edm
