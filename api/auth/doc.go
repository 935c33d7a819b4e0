// Package auth proves that a request was signed with a key of the account it
// addresses: SharedKey and SharedKeyLite of the blob, queue and table services
// (protocol/auth.md 1 to 12), and shared access signatures of an account or a service
// (13 to 18). It also signs, for tests and load generators.
//
// Invariant: the operation and every operand of a request follow from exactly what was
// signed with a key of the addressed account, as far as its scheme signs: protocol/auth.md 12
// lists what each leaves out. No two requests that differ in more have one string to sign,
// because protocol.Query has no name twice, and Verify refuses what else could be cut in two
// ways. A shared access signature covers its fields: a request passes as far as these permit,
// and no parameter that they leave unsigned widens that. Clients write the signed string in several known ways; up to eight
// signatures are tried. No way leaves out a part of the request that has an effect: if a
// way leaves out parameters with an empty value, [Verifier.Verify] removes these
// from the query it was given, and it gives headers the spaces that were signed.
//
// Everything here is decided from the request line and the headers, so that a body
// need not be requested (Expect: 100-continue) before its sender is known.
package auth
