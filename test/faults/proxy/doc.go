// Package proxy carries TCP connections over loopback between the processes of a test, and
// causes faults on request: it refuses connections, holds back the bytes of one
// side, or delays them.
//
// Invariant: the bytes that arrive are a prefix of those that were sent, in order. Bytes
// that are held back arrive when the link is whole again, as they do from a kernel that
// repeats them.
package proxy
