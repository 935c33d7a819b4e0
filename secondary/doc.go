// Package secondary is the read role: it commits the records of the other location in stream
// order, and writes nothing else: `-secondary` takes reads only.
//
// Invariants: a stream's records are applied in order, each whole and once, its
// cursor in the same commit (invariant 2); a record of an epoch that is not the
// gate's changes nothing and moves no cursor (R7); a record waits until its
// generation is in the catalog (R14) and its payload is durable (R3).
package secondary
