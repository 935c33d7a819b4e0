package snapshot

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

var testRange = geo.FirstRange(geo.Table)

// rowsOf is all that a store holds of a range.
func rowsOf(t require.TestingT, s *state.Store, id geo.RangeID) (out []string) {
	for _, span := range ranges.Spans(id) {
		it, err := s.Scan(span.Lower, span.Upper)
		require.NoError(t, err)
		for it.Next() {
			out = append(out, fmt.Sprintf("%x=%x", it.Key(), it.Value()))
		}
		require.NoError(t, it.Close())
	}
	return out
}

// Whatever the two stores held, fragments carry a range over whole: the receiver's spans
// equal the sender's at that moment, byte by byte, also if the sender changes meanwhile,
// and nothing else changes there.
func TestSnapshotEquivalence(t *testing.T) {
	spans := ranges.Spans(testRange)
	row := rapid.Custom(func(rt *rapid.T) []byte {
		prefix := spans[rapid.IntRange(0, 1).Draw(rt, "span")].Lower
		if rapid.IntRange(0, 9).Draw(rt, "elsewhere") == 0 {
			prefix = ranges.Spans(geo.FirstRange(geo.Blob))[0].Lower
		}
		return append(append([]byte(nil), prefix...), rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(rt, "rest")...)
	})
	type pair struct {
		key  []byte
		size int
	}
	pairs := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) pair {
		return pair{row.Draw(rt, "key"), rapid.SampledFrom([]int{0, 1, 100, 5000, fragmentBytesMax/2 + 1, fragmentBytesMax + 1}).Draw(rt, "size")}
	}))
	put := func(rt *rapid.T, s *state.Store, seed byte, all []pair) {
		b := s.NewBatch()
		for _, p := range all {
			require.NoError(rt, b.Set(p.key, []byte(strings.Repeat(string('a'+seed), p.size))))
		}
		require.NoError(rt, s.Commit(b))
		require.NoError(rt, b.Close())
	}
	rapid.Check(t, func(rt *rapid.T) {
		theirs, later, ours := pairs.Draw(rt, "theirs"), pairs.Draw(rt, "later"), pairs.Draw(rt, "ours")
		fs := vfs.NewMem()
		open := func(dir string) *state.Store {
			s, err := state.Open(dir, state.Options{FS: fs})
			require.NoError(rt, err)
			return s
		}
		from, to := open("from"), open("to")
		defer func() { require.NoError(rt, errors.Join(from.Close(), to.Close())) }()
		put(rt, from, 0, theirs)
		put(rt, to, 1, ours)
		want := rowsOf(rt, from, testRange)
		outside := rowsOf(rt, to, geo.FirstRange(geo.Blob))

		src := &source{snap: from.NewSnapshot(), spans: ranges.Spans(testRange), bytesMax: fragmentBytesMax}
		put(rt, from, 2, later)
		require.NoError(rt, fs.MkdirAll("staged", 0o755))
		g, err := to.NewStaging("staged", ranges.Spans(testRange))
		require.NoError(rt, err)
		for last, next := false, uint32(0); !last; next++ {
			p, err := src.next()
			require.NoError(rt, err)
			require.NoError(rt, p.check(next))
			require.Less(rt, len(p.Rows), 2*fragmentBytesMax)
			require.NoError(rt, eachRow(p.Rows, g.Add))
			last = p.Last
		}
		require.NoError(rt, src.close())
		require.NoError(rt, g.Finish())
		require.NoError(rt, to.Ingest(g))
		require.Equal(rt, want, rowsOf(rt, to, testRange))
		require.Equal(rt, outside, rowsOf(rt, to, geo.FirstRange(geo.Blob)))
	})
}
