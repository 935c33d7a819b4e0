// Package drill measures what clients see of a failover: it writes and reads an account's own rows all the time, has
// it moved to its other location and back, and reports how long writes and reads stood, and whether an acknowledged write is
// gone.
//
// Invariant: a figure in a report was measured. A time without writes runs from the last success before it to the first one
// after it, so it is never shorter than what clients saw; a write counts as acknowledged only once its answer was read.
package drill
