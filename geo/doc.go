// Package geo is the vocabulary of Antipode: the typed names and numbers that every
// other package uses. It imports no other package of this module and holds no state.
//
// Invariant: a swap of two domain numbers (a lane for a sequence number, a commit
// timestamp for an epoch) does not compile.
package geo
