// Package inspect shows the content of a stopped node's folder: its log, its state, its
// extents and its streams, row by row, decoded. It uses the decoders of the packages that
// own the formats.
//
// Invariants: nothing is changed on disk, since all access goes through a file system that
// refuses to write. Damage is shown where it is, and never ends the report of the intact
// rest. Memory is bounded by one log segment, the index of the extents, and the number
// of streams, not by the size of the folder.
package inspect
