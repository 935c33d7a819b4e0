package stats

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/keys"
	"antipode/stamp/route"
)

const (
	table   = geo.RangeID(geo.Table)
	catalog = geo.RangeID(geo.Catalog)
)

// from is what is known of a source range of north that is closed up to a time.
func from(r geo.RangeID, closed geo.Timestamp, streams ...cursor.StreamProgress) cursor.Progress {
	prefix := keys.AppendService(nil, geo.Service(r))
	return cursor.Progress{
		Source: geo.SourceRange{Origin: "north", Range: r}, Closed: closed, Streams: streams,
		Span: geo.Span{Start: string(prefix), End: string(keys.PrefixEnd(prefix))}, Descriptor: 1,
	}
}

// without is p before the first full closed record that has a span.
func without(p cursor.Progress) cursor.Progress {
	p.Span, p.Descriptor = geo.Span{}, 0
	return p
}

// R13: the known ranges of a service tile it, or its keys are not all accounted for.
//
// Capability: Two locations: Which range holds what is asked of one table (R14).
func TestR13RangesTile(t *testing.T) {
	prefix := string(keys.AppendService(nil, geo.Table))
	end := string(keys.PrefixEnd([]byte(prefix)))
	for _, c := range []struct {
		spans []geo.Span
		want  bool
	}{
		{nil, false},
		{[]geo.Span{{Start: prefix, End: end}}, true},
		{[]geo.Span{{Start: "", End: ""}}, true},
		{[]geo.Span{{Start: prefix, End: prefix + "m"}}, false},
		{[]geo.Span{{Start: prefix + "m", End: end}}, false},
		{[]geo.Span{{Start: prefix + "m", End: end}, {Start: prefix, End: prefix + "m"}}, true},
		{[]geo.Span{{Start: prefix + "n", End: end}, {Start: prefix, End: prefix + "m"}}, false},
		{[]geo.Span{{Start: prefix + "c", End: end}, {Start: prefix, End: prefix + "m"}}, true},
		{[]geo.Span{{Start: prefix, End: prefix + "m"}, {Start: prefix + "c", End: prefix + "d"}, {Start: prefix + "e", End: end}}, true},
	} {
		var known []cursor.Progress
		for _, span := range c.spans {
			p := from(table, 1)
			p.Span = span
			known = append(known, p)
		}
		require.Equal(t, c.want, tiled([]byte(prefix), known), "%q", c.spans)
	}
}

// stopped is p with a stream of an account that may not go on.
func stopped(p cursor.Progress, a geo.Account, why change.StopReason) cursor.Progress {
	p.Stops = append(p.Stops, cursor.StreamStop{Stream: geo.Stream{Account: a, Lane: 9}, Stop: change.Stop{Reason: why}})
	return p
}

// head is a stream that has applied all it has; behind is one below a closed head.
// of is what is known of an account's tables, whatever the clock shows.
func of(sources *route.Table, a geo.Account, known ...cursor.Progress) Replication {
	return Compute(Inputs{Account: a, Service: geo.Table, Primary: "north", From: sources, Known: known})
}

func head(a geo.Account, lane geo.Lane) cursor.StreamProgress {
	return cursor.StreamProgress{Stream: geo.Stream{Account: a, Lane: lane}, Applied: geo.Head{Seq: 7}}
}

func behind(a geo.Account, lane geo.Lane, sync geo.Timestamp) cursor.StreamProgress {
	return cursor.StreamProgress{Stream: geo.Stream{Account: a, Lane: lane}, Applied: geo.Head{Seq: 7}, Behind: 9, Sync: sync}
}

// R6: what is further ahead of the clock of the node that serves it than 1 s is not served, in the
// year 2100 neither.
func TestR6TimesAheadAreNotServed(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, ahead := range []time.Duration{-time.Hour, 0, geo.ClockOffMax} {
		shown := live(geo.TimestampOf(now.Add(ahead)), 0)
		require.Equal(t, shown, shown.at(now))
	}
	for _, ahead := range []time.Duration{geo.ClockOffMax + time.Microsecond, 10 * time.Minute, 100 * 365 * 24 * time.Hour} {
		require.Equal(t, UnavailableFor(Clock), live(geo.TimestampOf(now.Add(ahead)), 0).at(now))
	}
	require.Equal(t, UnavailableFor(Forked), UnavailableFor(Forked).at(now))
	kept := UnavailableFor(BehindOutbox)
	kept.Kept = geo.TimestampOf(now)
	require.Equal(t, kept, kept.at(now))
	require.Equal(t, UnavailableFor(BehindOutbox), kept.at(now.Add(-time.Minute)))
}

func live(at geo.Timestamp, behind int) Replication {
	return Replication{Status: Live, LastSync: at, Behind: behind}
}

// A service without a Last Sync Time has a reason, and one with a time has none: what begins and ends an event.
func TestNoTime(t *testing.T) {
	require.Empty(t, Replication{Status: Live}.NoTime())
	require.Equal(t, Bootstrapping, Replication{Status: Bootstrap}.NoTime())
	require.Equal(t, Lost, UnavailableFor(Lost).NoTime())
}

// Each reason for which a stream may be stopped is a reason of its account's status, by the same word. A fork that
// is being settled is one still.
func TestReasonOfStop(t *testing.T) {
	for why := change.StopForked; why.String() != fmt.Sprintf("reason-%d", byte(why)); why++ {
		if !why.Settles() {
			require.Equal(t, Reason(why.String()), ReasonOf(why))
		}
	}
	require.Equal(t, Forked, ReasonOf(change.StopSettling))
	require.Equal(t, Forked, ReasonOf(200))
}

// Last Sync Time of a service is the least sync time over the account's streams of the
// service's range and of the catalog's; it is absent, with the worst reason, unless each of them is
// known (R13) and none of the account's streams is stopped (R16).
func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		inputs []cursor.Progress
		want   Replication
	}{
		"all at their heads: the lesser closed time": {
			[]cursor.Progress{from(table, 100, head("acct", 1)), from(catalog, 90)}, live(90, 0),
		},
		"no stream yet: closed times alone": {
			[]cursor.Progress{from(table, 80), from(catalog, 90)}, live(80, 0),
		},
		"a stream behind holds it back": {
			[]cursor.Progress{from(table, 100, head("acct", 1), behind("acct", 2, 40)), from(catalog, 90)}, live(40, 1),
		},
		"the stream furthest behind counts": {
			[]cursor.Progress{from(table, 100, behind("acct", 1, 30), behind("acct", 2, 40), behind("acct", 3, 50)), from(catalog, 90)}, live(30, 3),
		},
		"so does a stream of the catalog": {
			[]cursor.Progress{from(table, 100, behind("acct", 1, 30)), from(catalog, 90, behind("acct", 0, 20))}, live(20, 2),
		},
		"other accounts do not": {
			[]cursor.Progress{from(table, 100, behind("other", 1, 30)), from(catalog, 90, behind("other", 0, 20))}, live(90, 0),
		},
		"nothing known of the service's range": {
			[]cursor.Progress{from(catalog, 90)}, UnavailableFor(NotHeard),
		},
		"nothing known of the catalog": {
			[]cursor.Progress{from(table, 90)}, UnavailableFor(NotHeard),
		},
		"no closed record of the catalog yet": {
			[]cursor.Progress{from(table, 100), from(catalog, 0, head("acct", 1))}, UnavailableFor(NotHeard),
		},
		"a stream that has not reached the first closed head has no time (R13)": {
			[]cursor.Progress{from(table, 100, head("acct", 1), behind("acct", 2, 0)), from(catalog, 90)}, UnavailableFor(NotHeard),
		},
		"nor has one of the catalog": {
			[]cursor.Progress{from(table, 100), from(catalog, 90, behind("acct", 0, 0))}, UnavailableFor(NotHeard),
		},
		"another account's does not matter": {
			[]cursor.Progress{from(table, 100, behind("other", 2, 0)), from(catalog, 90)}, live(90, 0),
		},
		"another range does not stand in": {
			[]cursor.Progress{from(geo.RangeID(geo.Blob), 100), from(catalog, 90)}, UnavailableFor(NotHeard),
		},
		"another origin does not stand in": {
			[]cursor.Progress{{Source: geo.SourceRange{Origin: "east", Range: table}, Closed: 100}, from(catalog, 90)}, UnavailableFor(NotHeard),
		},
		"a range whose span is not known (R13)": {
			[]cursor.Progress{without(from(table, 100)), from(catalog, 90)}, UnavailableFor(NotHeard),
		},
		"a catalog whose span is not known": {
			[]cursor.Progress{from(table, 100), without(from(catalog, 90))}, UnavailableFor(NotHeard),
		},
		"a stopped stream in the service's range (R16)": {
			[]cursor.Progress{stopped(from(table, 100), "acct", change.StopForked), from(catalog, 90)}, UnavailableFor(Forked),
		},
		"a stopped stream in the catalog": {
			[]cursor.Progress{from(table, 100), stopped(from(catalog, 90), "acct", change.StopVersion)}, UnavailableFor(Version),
		},
		"the worst of several reasons": {
			[]cursor.Progress{stopped(stopped(from(table, 100), "acct", change.StopPoison), "acct", change.StopLost), from(catalog, 0)}, UnavailableFor(Lost),
		},
		"a fork is worse, wherever it is": {
			[]cursor.Progress{stopped(from(table, 100), "acct", change.StopLost), stopped(from(catalog, 90), "acct", change.StopForked)}, UnavailableFor(Forked),
		},
		"a copy that fell out of the outbox keeps its last value (R18)": {
			[]cursor.Progress{stopped(from(table, 100, behind("acct", 3, 60)), "acct", change.StopBudget), from(catalog, 90)},
			Replication{Status: Unavailable, Reason: BehindOutbox, Kept: 60},
		},
		"but none that was never known": {
			[]cursor.Progress{stopped(from(table, 0), "acct", change.StopBudget), from(catalog, 90)}, UnavailableFor(BehindOutbox),
		},
		"nor one of a part of the service": {
			[]cursor.Progress{stopped(without(from(table, 100)), "acct", change.StopBudget), from(catalog, 90)}, UnavailableFor(BehindOutbox),
		},
		"nor where a stream forked": {
			[]cursor.Progress{stopped(from(table, 100), "acct", change.StopBudget), stopped(from(catalog, 90), "acct", change.StopForked)}, UnavailableFor(Forked),
		},
		"another account's stopped stream does not matter": {
			[]cursor.Progress{stopped(from(table, 100), "other", change.StopForked), from(catalog, 90)}, live(90, 0),
		},
		"nor one in a range that does not count": {
			[]cursor.Progress{from(table, 100), stopped(from(geo.RangeID(geo.Blob), 50), "acct", change.StopForked), from(catalog, 90)}, live(90, 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := of(route.First(), "acct", c.inputs...)
			require.Equal(t, c.want, got)
			require.Equal(t, c.want.Status == Live, got.Known())
		})
	}
}

// Last Sync Time is never above the sync time of any stream of the account, for each way
// in which streams may stand, and it is one of them or a closed time.
func TestOfIsMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var inputs []cursor.Progress
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
		got := of(route.First(), "acct", inputs...)
		require.True(t, got.Known())
		for _, at := range times {
			require.LessOrEqual(t, got.LastSync, at)
		}
		require.Contains(t, times, got.LastSync)
		require.Equal(t, len(times)-2, got.Behind)
	})
}

// R13: after a split of the table range at the primary, each source range that holds keys of the account counts, no
// other does, and all ranges here that take records of one.
//
// Capability: Two locations: Which range holds what is asked of one table (R14).
func TestR13OfSplitRanges(t *testing.T) {
	whole := route.First().Service(geo.Table)[0]
	at := string(keys.AppendAccount(nil, geo.Table, "m"))
	left, right := whole, whole
	left.ID, left.Span.End, right.ID, right.Span.Start = 10, at, 11, at
	sources, err := route.New(append(route.First().Ranges()[:3:3], left, right)...)
	require.NoError(t, err)
	closed := func(d route.Range, at geo.Timestamp) cursor.Progress {
		return cursor.Progress{Source: geo.SourceRange{Origin: "north", Range: d.ID}, Closed: at, Span: d.Span, Descriptor: d.Version}
	}
	state := func(known ...cursor.Progress) Replication { return of(sources, "acct", known...) }
	require.Equal(t, live(50, 0), state(closed(left, 50), from(catalog, 90)), "the other child holds nothing of it")
	require.Equal(t, live(40, 0), state(closed(left, 50), closed(left, 40), from(catalog, 90)), "two ranges here take its records")
	silent := cursor.Progress{Source: geo.SourceRange{Origin: "north", Range: left.ID}}
	require.Equal(t, UnavailableFor(NotHeard), state(closed(left, 50), silent, from(catalog, 90)), "one of them does not answer")
	require.Equal(t, UnavailableFor(NotHeard), state(closed(right, 50), from(catalog, 90)))
	require.Equal(t, UnavailableFor(NotHeard), state(from(table, 50), from(catalog, 90)), "the parent is no source any more")
	require.Equal(t, live(50, 0), of(sources, "zebra", closed(right, 50), from(catalog, 90)))
}

// R6, R13: closed times that are ahead of the clock show their walls, and what that is the least of. While a range, or a
// stream, has one without a wall, there is none: when it was given is not known. Of a copy that was set aside the same holds.
//
// Capability: Two locations: Which range holds what is asked of one table (R14).
func TestR13TimesAheadShowTheirWalls(t *testing.T) {
	now := time.Unix(2_000_000_000, 0)
	at := func(d time.Duration) geo.Timestamp { return geo.TimestampOf(now.Add(d)) }
	ahead := at(20 * 365 * 24 * time.Hour)
	walled := func(r geo.RangeID, wall geo.Timestamp, streams ...cursor.StreamProgress) cursor.Progress {
		p := from(r, ahead, streams...)
		p.Wall = wall
		return p
	}
	shown := func(known ...cursor.Progress) Replication {
		return of(route.First(), "acct", known...).at(now)
	}
	got := shown(walled(table, at(-time.Second)), walled(catalog, at(-2*time.Second)))
	require.Equal(t, Replication{Status: Live, LastSync: at(-2 * time.Second), UpTo: ahead}, got)
	require.Equal(t, ahead, got.Committed())

	late := behind("acct", 3, ahead-7)
	late.SyncWall = at(-time.Minute)
	got = shown(walled(table, at(-time.Second), late), walled(catalog, at(-2*time.Second)))
	require.Equal(t, at(-time.Minute), got.LastSync)
	require.Equal(t, ahead-7, got.Committed())

	require.Equal(t, UnavailableFor(Clock), shown(walled(table, 0), walled(catalog, at(-time.Second))), "a range without a wall")
	require.Equal(t, UnavailableFor(Clock), shown(walled(table, at(-time.Second), behind("acct", 3, ahead-7)), walled(catalog, at(-time.Second))), "a stream without one")
	require.Equal(t, at(-time.Second), shown(walled(table, at(-time.Second), behind("other", 3, ahead-7)), walled(catalog, at(0))).LastSync, "of another account")

	budget := stopped(walled(table, at(-time.Hour)), "acct", change.StopBudget)
	require.Equal(t, at(-time.Hour), shown(budget, walled(catalog, at(0))).Kept)
	require.Zero(t, shown(budget, walled(catalog, 0)).Kept)

	moved := live(at(-time.Minute), 0)
	failedOver := func(wall geo.Timestamp) Inputs { return Inputs{LastFailover: ahead, LastFailoverWall: wall, Now: now} }
	require.Equal(t, at(-time.Second), moved.from(failedOver(at(-time.Second))).LastSync)
	require.Equal(t, ahead, moved.from(failedOver(at(-time.Second))).Committed())
	require.Equal(t, at(-time.Minute), moved.from(failedOver(0)).LastSync, "its wall is not known")
}
