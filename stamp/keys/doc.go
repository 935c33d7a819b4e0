// Package keys encodes the keys of a node's state store: order-preserving tuples.
//
// Invariant: the byte order of two encoded keys is the order of their tuples;
// strings compare as UTF-16 code units (protocol/table.md 4.5), and no key is a
// prefix of another of the same tuple shape. Decoders give a value or an error
// for any input. The layout is written down in docs/format/keys.md and frozen by
// testdata/keys.golden.
package keys
