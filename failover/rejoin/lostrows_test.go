package rejoin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// lostPages are the lost changes of streams, each of which has changed some rows.
type lostPages struct {
	of      geo.Stream
	streams []change.LostStream
	rows    int
	reads   int
}

func (l *lostPages) read(key []byte) (change.Lost, error) {
	l.reads++
	out := change.Lost{Partition: []byte("p/")}
	for i := range l.rows {
		out.Ops = append(out.Ops, change.Op{Row: fmt.Appendf(nil, "%x/%d", key, i)})
	}
	return out, nil
}

// page returns a page and how many changes were read for it.
func (l *lostPages) page(t *testing.T, from LostRow) (LostRows, int) {
	t.Helper()
	var out LostRows
	l.reads = 0
	require.NoError(t, out.fill(l.streams, l.of, from, l.read))
	return out, l.reads
}

func (l *lostPages) key(lane geo.Lane, n uint64) []byte {
	of := l.of
	of.Epoch.Number, of.Lane = 1, lane
	return keys.AppendUint64(keys.Lost(geo.Table, of).Append(nil), n)
}

var lostOf = geo.Stream{Account: "acct", Epoch: geo.Epoch{Location: "north"}, Range: geo.FirstRange(geo.Table)}

// R22: pages have each row of all streams once and in order, whatever the sequence of the streams' keys is: lane 10 comes
// after lane 2, and its keys before.
func TestR22LostRowsOfAllStreams(t *testing.T) {
	t.Parallel()
	l := &lostPages{of: lostOf, rows: 5}
	for lane := range geo.Lane(geo.LaneCount) {
		l.streams = append(l.streams, change.LostStream{Number: 1, Lane: lane, After: 7, To: 7 + geo.Seq(lane)*10})
	}
	var want, got []string
	for _, s := range l.streams {
		for n := s.After + 1; n <= s.To; n++ {
			for i := range l.rows {
				want = append(want, fmt.Sprintf("p/%x/%d", l.key(s.Lane, uint64(n)), i))
			}
		}
	}
	pages := 0
	for next := (&LostRow{}); next != nil; pages++ {
		page, reads := l.page(t, *next)
		require.LessOrEqual(t, len(page.Keys), lostRowsMax)
		require.LessOrEqual(t, reads, lostRowsMax/l.rows+2)
		for i, k := range page.Keys {
			got = append(got, string(k))
			if from := page.place(i); i%97 == 0 {
				behind, _ := l.page(t, *from)
				require.Equal(t, k, behind.Keys[0], "the place of row %d", i)
			}
		}
		require.Equal(t, page.Next, page.place(len(page.Keys)))
		next = page.Next
	}
	require.Equal(t, want, got)
	require.Greater(t, pages, 40)
}

// A page deep inside a stream of very many changes reads its own, and walks over no other: that would not end.
func TestR22LostRowsBeginAtTheirPlace(t *testing.T) {
	t.Parallel()
	l := &lostPages{of: lostOf, rows: 1, streams: []change.LostStream{
		{Number: 1, Lane: 2, After: 0, To: 1 << 60}, {Number: 1, Lane: 10, After: 1, To: 1 << 60},
	}}
	page, reads := l.page(t, LostRow{Change: l.key(10, 1<<59)})
	require.Len(t, page.Keys, lostRowsMax)
	require.Equal(t, lostRowsMax+1, reads)
	require.Equal(t, &LostRow{Change: l.key(10, 1<<59+lostRowsMax)}, page.Next)
	page, reads = l.page(t, LostRow{Change: l.key(10, 1<<60)})
	require.Len(t, page.Keys, 1)
	require.Nil(t, page.Next)
	require.Equal(t, 1, reads)

	for _, bad := range [][]byte{{1}, l.key(10, 0), l.key(10, 1), l.key(10, 1<<60+1), l.key(3, 1), append(l.key(10, 2), 0), l.key(10, 2)[:20]} {
		var out LostRows
		require.ErrorIs(t, out.fill(l.streams, l.of, LostRow{Change: bad}, l.read), errLostPlace)
		require.Equal(t, storageerr.InvalidInput.Code, errLostPlace.Code)
	}
}

// R22: behind the lost changes come the generations that are sent whole: each from its first row on, or from a row of it, and
// none that is before. A place outside of them is refused.
//
// Capability: Failover: Lost changes of containers and tables are rewound, too (R22).
func TestR22SweptGenerationsBeginAtTheirPlace(t *testing.T) {
	t.Parallel()
	claim := &change.LostClaim{Swept: []change.LostContainer{{Name: "a", Epoch: 1, Created: 5}, {Name: "b", Epoch: 1, Created: 3}}}
	first := keys.AppendContainer(nil, geo.Table, "acct", "a", keys.Generation{Epoch: 1, Created: 5})
	second := keys.AppendContainer(nil, geo.Table, "acct", "b", keys.Generation{Epoch: 1, Created: 3})
	at := func(key []byte) (out LostRows, err error) {
		return out, out.fillSwept(claim, geo.Table, "acct", LostRow{Change: key})
	}
	for _, c := range []struct {
		from []byte
		want [][]byte
	}{
		{nil, [][]byte{first, second}},
		{keys.AppendUint64(keys.Lost(geo.Table, lostOf).Append(nil), 7), [][]byte{first, second}},
		{first, [][]byte{first, second}},
		{append(first[:len(first):len(first)], "row"...), [][]byte{first, second}},
		{second, [][]byte{second}},
	} {
		out, err := at(c.from)
		require.NoError(t, err)
		require.Equal(t, c.want, out.Swept)
	}
	for _, bad := range [][]byte{
		keys.AppendAccount(nil, geo.Table, "acct"), keys.PrefixEnd(first), keys.PrefixEnd(second),
		keys.AppendContainer(nil, geo.Table, "acct", "a", keys.Generation{Epoch: 1, Created: 4}),
	} {
		_, err := at(bad)
		require.ErrorIs(t, err, errLostPlace)
	}
	require.False(t, (&LostRow{Change: second}).swept(geo.Table, "other"))
}

// R22: where rows were left out of a page, a place in it is that of the row in its change, as it stood in the whole page.
func TestR22PlaceOfAPageWithRowsLeftOut(t *testing.T) {
	t.Parallel()
	a, b := lostOf, lostOf
	a.Lane, b.Lane = 1, 2
	first, second := keys.Lost(geo.Table, a).Append(nil), keys.Lost(geo.Table, b).Append(nil)
	page := LostRows{
		Keys:    [][]byte{{0}, {2}, {5}},
		Next:    &LostRow{Change: second, Row: 9},
		Changes: []LostRowsOf{{LostRow{first, 3}, 0}, {LostRow{second, 0}, 4}},
		stood:   []int{0, 2, 5},
	}
	for i, want := range []*LostRow{{first, 3}, {first, 5}, {second, 1}, page.Next} {
		require.Equal(t, want, page.place(i))
	}
}
