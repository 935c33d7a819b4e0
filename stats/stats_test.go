package stats

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/stamp/cursor"
)

const (
	table   = geo.RangeID(geo.Table)
	catalog = geo.RangeID(geo.Catalog)
)

// from is what is known of a source range of north that is closed up to a time.
func from(r geo.RangeID, closed geo.Timestamp, streams ...cursor.StreamProgress) Input {
	return Input{Progress: cursor.Progress{Source: geo.SourceRange{Origin: "north", Range: r}, Closed: closed, Streams: streams}}
}

func forked(in Input) Input {
	in.Forked = true
	return in
}

// head is a stream that has applied all it has; behind is one below a closed head.
func head(a geo.Account, lane geo.Lane) cursor.StreamProgress {
	return cursor.StreamProgress{Stream: geo.Stream{Account: a, Lane: lane}, Applied: geo.Head{Seq: 7}}
}

func behind(a geo.Account, lane geo.Lane, sync geo.Timestamp) cursor.StreamProgress {
	return cursor.StreamProgress{Stream: geo.Stream{Account: a, Lane: lane}, Applied: geo.Head{Seq: 7}, Behind: 9, Sync: sync}
}

// Last Sync Time of a service is the least sync time over the account's streams of the
// service's range and of the catalog's; it is absent unless each of them is known (R13) and
// none has forked (R16).
func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		inputs []Input
		want   Replication
	}{
		"all at their heads: the lesser closed time": {
			[]Input{from(table, 100, head("acct", 1)), from(catalog, 90)}, Replication{Live, 90, 0},
		},
		"no stream yet: closed times alone": {
			[]Input{from(table, 80), from(catalog, 90)}, Replication{Live, 80, 0},
		},
		"a stream behind holds it back": {
			[]Input{from(table, 100, head("acct", 1), behind("acct", 2, 40)), from(catalog, 90)}, Replication{Live, 40, 1},
		},
		"the stream furthest behind counts": {
			[]Input{from(table, 100, behind("acct", 1, 30), behind("acct", 2, 40), behind("acct", 3, 50)), from(catalog, 90)}, Replication{Live, 30, 3},
		},
		"so does a stream of the catalog": {
			[]Input{from(table, 100, behind("acct", 1, 30)), from(catalog, 90, behind("acct", 0, 20))}, Replication{Live, 20, 2},
		},
		"other accounts do not": {
			[]Input{from(table, 100, behind("other", 1, 30)), from(catalog, 90, behind("other", 0, 20))}, Replication{Live, 90, 0},
		},
		"nothing known of the service's range": {
			[]Input{from(catalog, 90)}, Replication{Status: Unavailable},
		},
		"nothing known of the catalog": {
			[]Input{from(table, 90)}, Replication{Status: Unavailable},
		},
		"no closed record of the catalog yet": {
			[]Input{from(table, 100), from(catalog, 0, head("acct", 1))}, Replication{Status: Unavailable},
		},
		"a stream that has not reached the first closed head has no time (R13)": {
			[]Input{from(table, 100, head("acct", 1), behind("acct", 2, 0)), from(catalog, 90)}, Replication{Status: Unavailable},
		},
		"nor has one of the catalog": {
			[]Input{from(table, 100), from(catalog, 90, behind("acct", 0, 0))}, Replication{Status: Unavailable},
		},
		"another account's does not matter": {
			[]Input{from(table, 100, behind("other", 2, 0)), from(catalog, 90)}, Replication{Live, 90, 0},
		},
		"another range does not stand in": {
			[]Input{from(geo.RangeID(geo.Blob), 100), from(catalog, 90)}, Replication{Status: Unavailable},
		},
		"another origin does not stand in": {
			[]Input{{Progress: cursor.Progress{Source: geo.SourceRange{Origin: "east", Range: table}, Closed: 100}}, from(catalog, 90)}, Replication{Status: Unavailable},
		},
		"a fork in the service's range": {
			[]Input{forked(from(table, 100)), from(catalog, 90)}, Replication{Status: Unavailable},
		},
		"a fork in the catalog": {
			[]Input{from(table, 100), forked(from(catalog, 90))}, Replication{Status: Unavailable},
		},
		"a fork in a range that does not count": {
			[]Input{from(table, 100), forked(from(geo.RangeID(geo.Blob), 50)), from(catalog, 90)}, Replication{Live, 90, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of("north", "acct", geo.Table, c.inputs...)
			require.Equal(t, c.want, got)
			require.Equal(t, c.want.Status == Live, got.Known())
		})
	}
}

// Last Sync Time is never above the sync time of any stream of the account, for each way
// in which streams may stand, and it is one of them or a closed time.
func TestOfIsMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var inputs []Input
		var times []geo.Timestamp
		for _, r := range []geo.RangeID{table, catalog} {
			closed := geo.Timestamp(rapid.Uint64Range(100, 200).Draw(t, "closed"))
			times = append(times, closed)
			var streams []cursor.StreamProgress
			for lane := range rapid.IntRange(0, 5).Draw(t, "streams") {
				a := geo.Account(rapid.SampledFrom([]string{"acct", "other"}).Draw(t, "account"))
				s := head(a, geo.Lane(lane))
				if rapid.Bool().Draw(t, "behind") {
					s = behind(a, geo.Lane(lane), geo.Timestamp(rapid.Uint64Range(1, 100).Draw(t, "sync")))
					if a == "acct" {
						times = append(times, s.Sync)
					}
				}
				streams = append(streams, s)
			}
			inputs = append(inputs, from(r, closed, streams...))
		}
		got := Of("north", "acct", geo.Table, inputs...)
		require.True(t, got.Known())
		for _, at := range times {
			require.LessOrEqual(t, got.LastSync, at)
		}
		require.Contains(t, times, got.LastSync)
		require.Equal(t, len(times)-2, got.Behind)
	})
}
