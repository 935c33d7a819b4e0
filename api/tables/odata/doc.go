// Package odata is what all wire forms of the table service share: paths with their key
// predicates, query options, continuation tokens, and the entity and the set that a codec
// reads and writes. It knows no HTTP and holds no state.
//
// Invariant: a path, an option or a token is read in one way, or refused with a row of
// storageerr; what AppendEntityPath and EncodeToken print reads back the same.
package odata
