// Package stats turns cursors and closed records into sync times, and takes the
// minimum: Last Sync Time, a value or absent.
//
// Invariant 3: every change committed at the primary at or before Last Sync Time is
// readable at the secondary. A value that cannot be computed is absent, never
// guessed.
package stats
