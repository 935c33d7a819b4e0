// Package logtest is the conformance suite of state.Log, and a model of a log for
// tests of one. Every log runs it:
//
//	func TestConformance(t *testing.T) {
//		logtest.Run(t, func(t require.TestingT, fs vfs.FS) state.Log { ... })
//	}
//
// Invariant: the suite asks for what replicas rely on, on every file system state that
// a crash can leave: what was synced is there, and nothing that was not appended.
package logtest
