// Package conformance checks the table service against every case of Appendix A of the protocol
// (docs/protocol/table.md): by number and name, over HTTP, with signatures that it makes itself,
// against two locations in one process.
//
// Invariant: what a case reads at the primary is read at -secondary too, until the answer is the
// same but for the base URI. No case waits for a time to pass, and none measures one.
package conformance
