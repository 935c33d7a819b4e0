package ranges

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/stamp/change"
)

// What a node is told of a range says the same as the range's own machine, of any source
// and account, after its way as JSON.
func TestProgress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &Machine{
			cursors: map[geo.Stream]*change.Cursor{}, behind: map[geo.Stream]struct{}{}, received: map[Source]geo.Timestamp{},
		}
		origin := rapid.SampledFrom([]geo.Location{"north", "south"})
		number := rapid.Uint64Range(1, 1<<63)
		for range rapid.IntRange(0, 2).Draw(t, "sources") {
			m.received[Source{origin.Draw(t, "origin"), geo.RangeID(rapid.IntRange(1, 2).Draw(t, "range"))}] = geo.Timestamp(number.Draw(t, "closed"))
		}
		for range rapid.IntRange(0, 20).Draw(t, "streams") {
			st := geo.Stream{
				Account: geo.Account(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "account")), Lane: geo.Lane(rapid.IntRange(0, 31).Draw(t, "lane")),
				Epoch: geo.Epoch{Number: 1, Location: origin.Draw(t, "of")}, Range: geo.RangeID(rapid.IntRange(1, 2).Draw(t, "in")),
			}
			c := &change.Cursor{Applied: geo.Head{Seq: geo.Seq(rapid.Uint64Range(0, 3).Draw(t, "seq")), Hash: geo.Hash(number.Draw(t, "hash"))}}
			delete(m.behind, st)
			if rapid.Bool().Draw(t, "behind") {
				c.Sync = geo.Timestamp(number.Draw(t, "sync"))
				c.Pairs = []change.Pair{{T: 1, Head: 1}, {T: 2, Head: geo.Seq(number.Draw(t, "head"))}}
				m.behind[st] = struct{}{}
			}
			m.cursors[st] = c
		}
		for _, of := range []geo.Location{"north", "south"} {
			src := Source{of, 1}
			b, err := json.Marshal(m.Progress(src))
			require.NoError(t, err)
			var p Progress
			require.NoError(t, json.Unmarshal(b, &p))
			require.Equal(t, m.Cursors(src), p.Cursors(src))
			require.Len(t, p.BehindOf(src), len(m.BehindOf(src)))
			for st, head := range m.BehindOf(src) {
				require.Equal(t, head, p.BehindOf(src)[st])
			}
			for _, a := range []geo.Account{"a", "b", "c"} {
				want, known := m.SyncTimes(src, a)
				got, ok := p.SyncTimes(src, a)
				require.Equal(t, fmt.Sprint(want, known), fmt.Sprint(got, ok))
			}
			other := Source{of, 2}
			_, ok := p.SyncTimes(other, "a")
			require.False(t, ok || len(p.Cursors(other)) > 0 || len(p.BehindOf(other)) > 0)
		}
	})
}
