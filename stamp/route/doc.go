// Package route is the only place that decides which range holds a key of a service, and which
// ranges of a stamp hold the span of another location's range (R14).
//
// Invariant: the ranges of a table do not overlap, and together those of a service hold all its keys.
// New refuses anything else.
//
// A Table never changes: a split makes another one. The code that builds the parts of a location passes it
// to them; First is the table of a new stamp.
package route
