package state

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/stamp/kv"
)

type scanner interface {
	Scan(lower, upper []byte) (kv.Iterator, error)
}

// rowsOf reads all rows of g in [lower, upper).
func rowsOf(t require.TestingT, g scanner, lower, upper string) []string {
	it, err := g.Scan([]byte(lower), []byte(upper))
	require.NoError(t, err)
	var out []string
	for it.Next() {
		out = append(out, fmt.Sprintf("%s=%s", it.Key(), it.Value()))
	}
	require.NoError(t, it.Close())
	return out
}

// A finished staging replaces exactly its spans, whatever was there and wherever it lay
// (memtable or tables), is durable when Ingest returns, and survives compactions; a
// snapshot opened before goes on to see what was there. It may be cut and gone on with anywhere.
func TestIngestReplacesSpans(t *testing.T) {
	spans := func() []Span {
		return []Span{{[]byte("b"), []byte("c")}, {[]byte("e"), []byte("g")}}
	}
	begins := func(with ...string) *rapid.Generator[string] {
		return rapid.Custom(func(rt *rapid.T) string {
			return rapid.SampledFrom(with).Draw(rt, "first") + rapid.StringN(0, 3, 6).Draw(rt, "rest")
		})
	}
	inside := func(k string) bool { return k >= "b" && k < "c" || k >= "e" && k < "g" }
	rapid.Check(t, func(rt *rapid.T) {
		// All is drawn before a store is open: rapid may give up at any draw.
		olds := rapid.SliceOfN(rapid.MapOf(begins("a", "b", "c", "e", "f", "g"), rapid.String()), 0, 3).Draw(rt, "old")
		flushes := rapid.SliceOfN(rapid.Bool(), len(olds), len(olds)).Draw(rt, "flush")
		staged := rapid.MapOf(begins("b", "e", "f"), rapid.String()).Draw(rt, "new")
		tableBytes := rapid.SampledFrom([]uint64{1, stagedTableBytes}).Draw(rt, "table") // With 1 a table for each row.
		cuts := rapid.SliceOfN(rapid.Bool(), 1, 5).Draw(rt, "cuts")

		fs := vfs.NewCrashableMem()
		s, err := Open("state", Options{FS: fs})
		require.NoError(rt, err)
		want := map[string]string{}
		for i, old := range olds {
			b := s.NewBatch()
			for k, v := range old {
				require.NoError(rt, b.Set([]byte(k), []byte(v)))
				want[k] = v
			}
			require.NoError(rt, s.Commit(b))
			require.NoError(rt, b.Close())
			if flushes[i] {
				require.NoError(rt, s.Flush())
			}
		}
		before := s.NewSnapshot()
		old := rowsOf(rt, before, "a", "z")

		require.NoError(rt, fs.MkdirAll("staged", 0o755))
		g, err := s.NewStaging("staged", spans())
		require.NoError(rt, err)
		g.bytes = tableBytes
		for i, k := range sorted(staged) {
			require.NoError(rt, g.Add([]byte(k), []byte(staged[k])))
			if cuts[i%len(cuts)] {
				require.NoError(rt, g.Cut())
				require.Equal(rt, k, string(g.Position().Last))
				total := g.Bytes()
				g, err = s.ResumeStaging("staged", spans(), g.Position())
				require.NoError(rt, err)
				require.Equal(rt, total, g.Bytes())
				require.ErrorIs(rt, g.Add([]byte(k), nil), ErrNotStaged, "it has that row")
				g.bytes = tableBytes
			}
		}
		require.NoError(rt, g.Finish())
		require.NoError(rt, s.Ingest(g))

		for k := range want {
			if inside(k) {
				delete(want, k)
			}
		}
		var inSpans []string
		for _, k := range sorted(staged) {
			want[k] = staged[k]
			inSpans = append(inSpans, fmt.Sprintf("%s=%s", k, staged[k]))
		}
		var all []string
		for _, k := range sorted(want) {
			all = append(all, fmt.Sprintf("%s=%s", k, want[k]))
		}
		require.Equal(rt, all, rowsOf(rt, s, "a", "z"))
		require.Equal(rt, old, rowsOf(rt, before, "a", "z"), "the snapshot opened before")
		require.NoError(rt, before.Close())
		require.NoError(rt, s.db.Compact(context.Background(), []byte("a"), []byte("z"), false))
		require.Equal(rt, all, rowsOf(rt, s, "a", "z"), "compacted")

		clone := fs.CrashClone(vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(1, 1))})
		require.NoError(rt, s.Close())
		s, err = Open("state", Options{FS: clone})
		require.NoError(rt, err)
		require.Equal(rt, inSpans, append(rowsOf(rt, s, "b", "c"), rowsOf(rt, s, "e", "g")...), "after a crash")
		require.NoError(rt, s.Close())
	})
}

// A row out of order or outside the spans is refused: it would end in another range. So is going on without the tables
// that there were, which would lose their rows.
func TestStagingRefuses(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open("state", Options{FS: fs})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for _, keys := range [][]string{{"a"}, {"c"}, {"bb", "ba"}, {"bb", "bb"}, {"e", "g"}, {"e", "b"}} {
		require.NoError(t, fs.RemoveAll("staged"))
		require.NoError(t, fs.MkdirAll("staged", 0o755))
		g, err := s.NewStaging("staged", []Span{{[]byte("b"), []byte("c")}, {[]byte("e"), []byte("g")}})
		require.NoError(t, err)
		for _, k := range keys {
			err = g.Add([]byte(k), nil)
		}
		require.ErrorIs(t, err, ErrNotStaged, "%v", keys)
		require.NoError(t, g.Close())
	}
	for _, at := range []Position{{Tables: 100, Spans: 1}, {Spans: 3}} {
		_, err := s.ResumeStaging("staged", []Span{{[]byte("b"), []byte("c")}, {[]byte("e"), []byte("g")}}, at)
		require.ErrorIs(t, err, ErrNotStaged)
	}
}

// Reset leaves a log that begins behind the index, durably, with its hard state and

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
