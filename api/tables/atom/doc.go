// Package atom is the Atom form of entities and tables, which clients before 2015-12-11 speak
// (protocol/table.md 7). Bodies are read into the stored form of package entity and documents are
// appended straight from it.
//
// Invariant: an entity that was read and is sent back as it is stores the same properties, of the
// same types, in the same order, where XML can carry its text: no control characters.
package atom
