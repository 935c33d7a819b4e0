// Package json is the JSON form of entities and tables at three levels of metadata
// (protocol/table.md 5, 6). Bodies are read into the stored form of package entity and
// documents are appended straight from it.
//
// Invariant: an entity that was read and is sent back as it is stores the same properties,
// of the same types, in the same order, at MinimalMetadata and FullMetadata.
package json
