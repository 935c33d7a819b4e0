// Package admin is the protocol of the admin ports: the documents they speak and
// a client for them. docs/admin.md describes every field; api/admin serves it.
//
// Invariant: a number in a document was computed or is absent, never guessed. A
// range without a leader has no backlog, a service whose replication cannot be
// judged has no last sync time, and a reader can tell that from zero.
//
// The protocol is stable within StatusVersion: fields are added, never renamed,
// and a reader ignores what it does not know.
package admin
