// Package admin is the protocol of the admin ports: the documents and a client for
// them. docs/admin.md describes every field; api/admin serves it.
//
// Invariant: a number in a document was computed or is absent, never guessed. A
// range without a leader has no backlog, a service whose replication state is unknown
// has no last sync time, and a reader can distinguish both from zero.
//
// The protocol is stable within StatusVersion: fields are added, never renamed, and a
// reader ignores unknown fields.
package admin
