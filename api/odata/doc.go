// Package odata is the wire form of the Table service: JSON entities in and out, key
// predicates, filters, continuation tokens and query options. It knows no HTTP and
// holds no state.
//
// Invariant: an entity that was read and is sent back as it is stores the same
// properties, of the same types, in the same order, at the levels minimalmetadata and
// fullmetadata; and the rows of a filter do not depend on the plan: a scan of Bounds
// with its residual finds what Match finds over the whole table.
//
// Requests come in by ParsePath, DecodeEntity, ParseFilter, ParseSelect, ParseTop and
// ParseContinuation; each fails with a row of storageerr. Documents go out by the
// Append methods of Answer, straight from the stored form of package entity.
package odata
