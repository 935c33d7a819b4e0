// Package test drives the built `antipode dev` from outside: as a user of the
// official SDKs, as an operator who cuts links and stops locations, and as a
// power cut. What is checked is what a client can see; nothing here looks inside
// the process.
//
// The parts: devproc runs the binary, rest speaks the protocol, oracle remembers
// what was promised, load writes and reads it back, npm holds the JavaScript
// clients. Every wait has a deadline, and a missing tool or port fails a test.
// With -short only the parts' own tests run.
package test
