package ranges

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
)

// The order of the overlay has all its keys, whatever is staged, taken back or ended, and never many others (property
// against sorting).
func TestStagedIsTheOrderOfTheOverlay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Range{overlay: map[string]overlayValue{}, staged: newStaged(geo.Queue)}
		tx := &Tx{r: r, g: &group{}}
		key := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("%03d", rapid.IntRange(0, 400).Draw(t, "key")) })
		t.Repeat(map[string]func(*rapid.T){
			"stage": func(t *rapid.T) {
				for _, k := range rapid.SliceOfN(key, 1, 50).Draw(t, "keys") {
					tx.overlay(k, overlayValue{})
				}
			},
			"take back": func(*rapid.T) { tx.undoGroup() },
			"end": func(t *rapid.T) {
				for k := range r.overlay {
					if rapid.Bool().Draw(t, "ended") {
						delete(r.overlay, k)
					}
				}
				tx.saved = nil
				r.staged.prune(r.overlay)
				require.LessOrEqual(t, len(r.staged.keys), 2*len(r.overlay)+stagedSlack)
			},
			"": func(t *rapid.T) {
				from, end := key.Draw(t, "from"), key.Draw(t, "end")
				var want []string
				for k := range r.overlay {
					if k >= from && k < end {
						want = append(want, k)
					}
				}
				slices.Sort(want)
				got := slices.DeleteFunc(slices.Clone(tx.stagedIn([]byte(from), []byte(end))), func(k string) bool {
					_, staged := r.overlay[k]
					return !staged
				})
				require.True(t, slices.Equal(want, got), "want %v, got %v", want, got)
			},
		})
	})
}

// BenchmarkStaged is what a command costs that stages three rows and walks over one, beside others in flight, in a
// range that keeps their order and in one that sorts for each walk.
func BenchmarkStaged(b *testing.B) {
	for _, service := range []geo.Service{geo.Queue, geo.Table} {
		for _, inFlight := range []int{100, 1000, 6000} {
			b.Run(fmt.Sprintf("%s/keys=%d", service, inFlight), func(b *testing.B) {
				r := &Range{overlay: map[string]overlayValue{}, staged: newStaged(service)}
				tx := &Tx{r: r, g: &group{}}
				prefix := strings.Repeat("p", 60)
				n := 0
				for b.Loop() {
					for range 3 {
						n++
						tx.overlay(fmt.Sprintf("%s%020d", prefix, n), overlayValue{})
					}
					tx.stagedIn(fmt.Appendf(nil, "%s%020d", prefix, n), []byte(prefix+"z"))
					if len(r.overlay) > inFlight { // A group ends.
						for _, k := range tx.g.keys[:inFlight/4] {
							delete(r.overlay, k)
						}
						tx.g.keys, tx.saved = tx.g.keys[inFlight/4:], nil
						if r.staged != nil {
							r.staged.prune(r.overlay)
						}
					}
				}
			})
		}
	}
}
