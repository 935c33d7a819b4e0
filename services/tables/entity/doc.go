// Package entity is what an entity of the Table service is: an ordered list of
// custom properties in its durable binary form, and the limits that hold for it.
// PartitionKey, RowKey and Timestamp are not inside the list; they live in the key
// and in the header of the stored value.
//
// Invariant: a list has one form. A Builder writes what a Reader accepts back to the same bytes. A
// list that a Builder or Merge wrote passes Validate, except for two errors that only the whole
// entity shows: a name given twice, and the size with its keys.
//
// Write with a Builder, walk with a Reader, which gives views into the list and
// allocates nothing, and join with Merge. The layout is docs/format/entity.md, frozen
// by testdata/entity.golden. Text is measured and ordered in UTF-16 code units, as
// the protocol does (protocol/table.md 4.5, 4.6).
package entity
