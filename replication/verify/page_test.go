package verify

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/keys"
)

// R17: the rows of a span are read page by page, each once and in order, with sums or with values, those of some lanes alone
// where that is asked for. A span that is not in the account is refused, and an answer that does not go on is malformed.
func TestR17PagesOfRows(t *testing.T) {
	w := newWorld()
	want := map[string]string{}
	for i := range 40 {
		key := rowKey("paged", fmt.Sprint("p", i), "r")
		want[key] = strings.Repeat("v", 60<<10)
		w.far.set(key, want[key])
	}
	prefix := containerPrefix("paged")
	page := Page{Account: testAccount, Range: testRange, Lanes: AllLanes, Start: prefix, End: keys.PrefixEnd(prefix), Values: true}
	got, pages, last := map[string]string{}, 0, ""
	for p := page; p.Start != nil; pages++ {
		rows, encoded, next, err := Rows(context.Background(), w.remote, p)
		require.NoError(t, err)
		require.Empty(t, encoded)
		for _, r := range rows {
			require.Less(t, last, string(r.Key))
			require.Equal(t, RowSum(r.Key, r.Value), r.Sum)
			last, got[string(r.Key)] = string(r.Key), string(r.Value)
		}
		p.Start = next
	}
	require.Equal(t, want, got)
	require.Greater(t, pages, 1)

	lane := partition("paged", "p7").Lane()
	page.Values, page.Lanes = false, Lanes(0).With(lane)
	require.Equal(t, 1, page.Lanes.Count())
	_, encoded, next, err := Rows(context.Background(), w.remote, page)
	require.NoError(t, err)
	require.Nil(t, next)
	sums, err := ParseSums(encoded)
	require.NoError(t, err)
	for key, value := range want {
		p, _, err := keys.ParsePartition([]byte(key))
		require.NoError(t, err)
		sum, ok := sums[key]
		require.Equal(t, p.Lane() == lane, ok)
		require.True(t, !ok || sum == RowSum([]byte(key), []byte(value)))
	}
	require.False(t, AllLanes.Has(geo.LaneCount))

	page.Account = "bcct"
	_, _, _, err = Rows(context.Background(), w.remote, page)
	require.ErrorIs(t, err, errQuestion)
	for _, bad := range [][]byte{{1}, {0, 1}, append([]byte{0}, make([]byte, 17)...)[:17], {255, 255, 255, 255, 255, 255, 255, 255, 255, 1}} {
		_, err := parsePage(bad)
		require.ErrorIs(t, err, errMalformed, "%x", bad)
	}
	still := &answering{Answer{Next: prefix}}
	page.Account = testAccount
	_, _, _, err = Rows(context.Background(), still, page)
	require.ErrorIs(t, err, errMalformed)
}

// answering answers every question alike.
type answering struct{ a Answer }

func (a *answering) Ask(context.Context, geo.RangeID, *Question) (*Answer, error) { return &a.a, nil }
