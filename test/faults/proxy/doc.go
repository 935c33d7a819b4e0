// Package proxy carries TCP connections over loopback between the processes of a test, and
// breaks them on order: it refuses them, holds back what one side sends, or delays it.
//
// Invariant: what arrives is a beginning of what was sent, in order. Bytes that are held
// back arrive when the link is whole again, as they do from a kernel that repeats them.
package proxy
