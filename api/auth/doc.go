// Package auth proves that a request was signed with a key of the account it
// addresses: SharedKey and SharedKeyLite of the blob, queue and table services
// (protocol/auth.md 1 to 12), and shared access signatures of an account or a service
// (13 to 18). It also signs, for tests and load generators.
//
// Invariant: a request passes only if an HMAC with a key of the addressed account
// covers it, or covers the signature's fields: then it passes as far as these permit, and
// no parameter that they leave unsigned widens that. Clients write the signed string in several known ways; up to eight
// signatures are tried. No way leaves out a part of the request that has an effect: if a
// way leaves out parameters with an empty value, [Verifier.Verify] removes these
// from the query it was given. If two different requests would sign to the same
// string, both are refused.
//
// Everything here is decided from the request line and the headers, so that a body
// need not be requested (Expect: 100-continue) before its sender is known.
package auth
