// Package logtest checks what a state.Log promises, and has a model of a log to compare
// one with:
//
//	func TestConformance(t *testing.T) {
//		logtest.Run(t, func(t require.TestingT, fs vfs.FS) state.Log { ... })
//	}
//
// Invariant: the checks ask for what replicas rely on, on every file system state that
// a crash can leave: what was synced is there, and nothing that was not appended.
package logtest
