// Package drill measures what clients see of a failover. It writes and reads rows of an account all the time, and has
// the account moved to its other location and back. It reports how long writes and reads stood, and which
// acknowledged writes are gone. After an unplanned failover those writes are compared with the lost-change report.
//
// Invariant: a figure in a report was measured. A time without writes runs from the last success before it to the first one
// after it, so it is never shorter than what clients saw; a write counts as acknowledged only once its answer was read, and
// as gone only where all values of its row were read at the end.
package drill
