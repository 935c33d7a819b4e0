// Package auth proves that a request was signed with a key of the account it
// addresses: SharedKey and SharedKeyLite of the blob, queue and table services
// (protocol/auth.md 1 to 12), and the signing side of the same for tests and load
// generators.
//
// Invariant: a request passes only if an HMAC with a key of the addressed account
// covers it. Clients are known to write the signed string in several ways, which are
// tried as far as eight signatures go; none of them leaves out a part of the request that has an
// effect. Where one leaves out parameters with an empty value, [Verifier.Verify]
// removes these from the query it was given, so they have none. Where two
// different requests would sign to the same string, both are refused.
//
// Everything here is decided from the request line and the headers: a body need
// not be asked for (Expect: 100-continue) before its sender is known.
package auth
