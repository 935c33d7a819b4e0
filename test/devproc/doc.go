// Package devproc runs the server as child processes, the way a user does: [Run] any
// command of it, [Start] `antipode dev`. It builds the binary, finds free ports, starts,
// pauses, kills, stops and restarts on one data folder, and knows how to reach what runs.
//
// Invariant: what is missing fails. No free ports, a build that breaks or a
// server that does not become ready are errors, never a reason to skip.
package devproc
