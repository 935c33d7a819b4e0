package clock

import "testing"

// What a reading costs: Mono is the one that leases need.
func BenchmarkSystem(b *testing.B) {
	b.Run("mono", func(b *testing.B) {
		for b.Loop() {
			System{}.Mono()
		}
	})
	b.Run("now", func(b *testing.B) {
		for b.Loop() {
			System{}.Now()
		}
	})
}
