package auth

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Both orders sort these names as the clients do that use them.
func TestOrders(t *testing.T) {
	tests := []struct {
		name    string
		order   func(a, b string) int
		ordered []string
	}{
		{"byte", byteOrder, []string{"x-ms-date", "X-Ms-Meta-A", "x-ms-meta-a-b", "x-ms-meta-a1", "X-Ms-Meta-A_1", "x-ms-meta-ab", "x-ms-version"}},
		{"culture", cultureOrder, []string{"x-ms-date", "X-Ms-Meta-A", "X-Ms-Meta-A_1", "x-ms-meta-a1", "x-ms-meta-ab", "x-ms-meta-a-b", "x-ms-meta-ac", "x-ms-version"}},
		{"culture, hyphens", cultureOrder, []string{"ab", "ab-", "a-b", "a-b-", "-ab"}},
		{"culture, others", cultureOrder, []string{"a", "a!", "a.", "a_", "a~", "a+", "a0", "a9", "aa", "a'b", "a-b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i, a := range tt.ordered {
				for j, b := range tt.ordered {
					if got := sign3(tt.order(a, b)); got != sign3(i-j) {
						t.Errorf("%q against %q: %d", a, b, got)
					}
				}
			}
		})
	}
}

// The first pass of the culture order is a comparison with the hyphens gone: the
// simple twin. Both orders are total: antisymmetric and sortable to one result.
func TestCultureOrderTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	strip := strings.NewReplacer("-", "", "'", "")
	rank := func(s string) string {
		return strings.Map(func(c rune) rune { return rune(cultureWeight(byte(c))) }, strip.Replace(s))
	}
	name := func() string {
		b := make([]byte, rng.IntN(6))
		for i := range b {
			b[i] = "ab_1-'"[rng.IntN(6)]
		}
		return string(b)
	}
	for range 20000 {
		a, b := name(), name()
		got := sign3(cultureOrder(a, b))
		if got != -sign3(cultureOrder(b, a)) || (got == 0) != (a == b) {
			t.Fatalf("%q against %q: %d, not antisymmetric", a, b, got)
		}
		if want := strings.Compare(rank(a), rank(b)); want != 0 && got != want {
			t.Fatalf("%q against %q: %d, twin says %d", a, b, got, want)
		}
	}
	for range 200 {
		names := []string{name(), name(), name(), name(), name()}
		slices.SortFunc(names, cultureOrder)
		again := slices.Clone(names)
		rng.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		slices.SortFunc(again, cultureOrder)
		if !slices.Equal(names, again) {
			t.Fatalf("not a total order: %q and %q", names, again)
		}
	}
}

func sign3(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
