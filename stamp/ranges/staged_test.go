package ranges

import (
	"fmt"
	"slices"
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
