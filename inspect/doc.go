// Package inspect shows what the folder of a stopped node holds: its log, its state, its
// extents and its streams, row by row, decoded. It uses the decoders of the packages that
// own the formats and has none of its own.
//
// Promises: nothing is changed on disk, since all access goes through a file system that
// refuses to write; damage is shown where it is and never ends the report of what is
// intact; memory is bounded by one log segment, the index of the extents, and the number
// of streams, not by what is stored.
package inspect
