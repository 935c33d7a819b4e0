// Package rest is the thin storage client that the end-to-end tests use where an
// SDK would hide what they look at: whether an answer came at all, its exact
// status and code, and the bytes of a secondary read.
//
// Invariant: a call returns an error only when no answer arrived, and
// [NeverSent] identifies the ones that cannot have reached a server. Nothing is
// tried twice, so one call is at most one write.
package rest
