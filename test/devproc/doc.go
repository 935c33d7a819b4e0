// Package devproc runs `antipode dev` as a child process, the way a user does:
// it builds the binary, finds free ports, starts, kills, stops and restarts it
// on one data folder, and knows how to reach it.
//
// Invariant: what is missing fails. No free ports, a build that breaks or a
// server that does not become ready are errors, never a reason to skip.
package devproc
