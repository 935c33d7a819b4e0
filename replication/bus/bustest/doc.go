// Package bustest is the conformance suite of stream.Publisher and
// stream.Consumer. Every carrier runs it:
//
//	func TestConformance(t *testing.T) {
//		bustest.Run(t, func(t *testing.T, b stream.Bounds) bustest.Carrier { ... })
//	}
//
// Invariant: the suite asks for what R15 lets the rest of the system rely on and
// for nothing more. Order, redelivery and refusal are checked on a carrier that
// is healthy; what a carrier may do when it lies is not, as correctness never
// rests on it.
package bustest
