package tables

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/api/protocol"
	"antipode/api/tables/filter"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/services/tables"
	"antipode/stamp/keys"
)

// Rows come and go between the pages of a query: those that stay are answered once, in order, none twice, and paging
// ends.
func TestPagesWhileRowsChange(t *testing.T) {
	t.Parallel()
	g := keys.Generation{Epoch: 1, Created: 5}
	rapid.Check(t, func(t *rapid.T) {
		stored, all := drawRows(t, g)
		text := drawCondition(t, 3)
		wanted, err := filter.Parse(protocol.Newest, text)
		require.NoError(t, err, text)
		p := newPage(t, wanted, g, rapid.IntRange(1, 4).Draw(t, "top"))
		work := rapid.SampledFrom([]int{1, rowWork + 5, 1 << 20}).Draw(t, "work")
		var value []byte
		if len(all) > 0 {
			value = stored.values[0]
		}
		stay, got := map[filter.Key]bool{}, []filter.Key{}
		for _, e := range all {
			ok, _, err := wanted.Matcher().Match(&e)
			require.NoError(t, err)
			stay[filter.Key{PK: e.PK, RK: e.RK}] = ok
		}
		token := filter.Key{}
		for more, pages := true, 0; more; more, pages = p.next != nil, pages+1 {
			require.Less(t, pages, 300)
			p.budget = services.NewWorkBudget(context.Background(), clock.System{}, work)
			p.fillRange(t, stored, token, nil)
			for _, row := range keysOf(t, documentOf(p.doc)) {
				pk, rk, _ := strings.Cut(row, "/")
				got = append(got, filter.Key{PK: pk, RK: rk})
			}
			p.doc = newDocument(t)
			if p.next != nil {
				require.Positive(t, p.next.Compare(token))
				token = *p.next
			}
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				pk, rk := rapid.SampledFrom(oddKeys()).Draw(t, "pk"), rapid.SampledFrom(oddKeys()).Draw(t, "rk")
				key := tables.Bound("acct", "tbl", g, pk, rk)
				i, found := slices.BinarySearchFunc(stored.keys, key, bytes.Compare)
				delete(stay, filter.Key{PK: pk, RK: rk})
				if found {
					stored.keys, stored.values = slices.Delete(stored.keys, i, i+1), slices.Delete(stored.values, i, i+1)
				} else if value != nil {
					stored.keys, stored.values = slices.Insert(stored.keys, i, key), slices.Insert(stored.values, i, value)
				}
			}
		}
		for i := 1; i < len(got); i++ {
			require.Negative(t, got[i-1].Compare(got[i]), "%q", got)
		}
		for key, matches := range stay {
			require.Equal(t, matches, slices.Contains(got, key), "%q of %q by %s", key, got, text)
		}
	})
}
