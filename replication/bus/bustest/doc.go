// Package bustest is the conformance suite of bus.Publisher and bus.Consumer. Every
// bus runs it:
//
//	func TestConformance(t *testing.T) {
//		bustest.Run(t, func(t *testing.T, b bus.Bounds) bustest.Bus { ... })
//	}
//
// Invariant: the suite requires what the rest of the system relies on by R15, and nothing more.
// Order, redelivery and refusal are checked on a healthy bus. The suite does not check a bus under
// faults, since correctness never depends on it.
package bustest
