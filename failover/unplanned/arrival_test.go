package unplanned

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
)

// R20: beside a primary that goes on writing a promotion waits until the copy has everything of before the promotion, in
// every range and stream that may go on, and for no more. The clocks of the locations may be a second apart. A time that is
// ahead of the clock shows nothing of when that was; its wall does (R13).
//
// Capability: Failover: An unplanned failover of an account (R20).
func TestR20WhatWasThereHasArrived(t *testing.T) {
	t.Parallel()
	begun := geo.TimestampOf(time.Unix(1000, 0))
	after := func(d time.Duration) geo.Timestamp { return geo.TimestampOf(begun.Time().Add(geo.ClockOffMax + d)) }
	early, late, ahead := after(-time.Millisecond), after(time.Millisecond), after(20*365*24*time.Hour)
	now := begun.Time().Add(geo.ClockOffMax)
	behind := func(s catalog.ForkStream) []catalog.Fork {
		s.Behind = 9
		return []catalog.Fork{{Closed: late, Streams: []catalog.ForkStream{s}}}
	}
	for name, c := range map[string]struct {
		forks []catalog.Fork
		want  bool
	}{
		"all streams at their heads":             {[]catalog.Fork{{Closed: late, Streams: []catalog.ForkStream{{Seq: 7}}}, {Closed: late}}, true},
		"one range is not closed so far":         {[]catalog.Fork{{Closed: late}, {Closed: early}}, false},
		"nothing came of one":                    {[]catalog.Fork{{Closed: late}, {}}, false},
		"a stream behind, of before":             {[]catalog.Fork{{Closed: late, Streams: []catalog.ForkStream{{Behind: 9, Sync: early}}}}, false},
		"a stream behind, of which nothing came": {[]catalog.Fork{{Closed: late, Streams: []catalog.ForkStream{{Behind: 9}}}}, false},
		"a stream behind, of after":              {[]catalog.Fork{{Closed: late, Streams: []catalog.ForkStream{{Behind: 9, Sync: late}}}}, true},
		"a stream that may not go on":            {[]catalog.Fork{{Closed: late, Streams: []catalog.ForkStream{{Behind: 9, Stopped: change.StopForked}}}}, true},
		"one of two streams is behind yet":       {[]catalog.Fork{{Closed: late, Streams: []catalog.ForkStream{{Seq: 7}, {Behind: 9, Sync: early}}}}, false},
		"a time ahead of the clock":              {[]catalog.Fork{{Closed: ahead}}, false},
		"its wall is of before":                  {[]catalog.Fork{{Closed: ahead, Wall: early}}, false},
		"its wall is of after":                   {[]catalog.Fork{{Closed: ahead, Wall: late}, {Closed: late}}, true},
		"a stream behind one ahead":              {behind(catalog.ForkStream{Sync: ahead}), false},
		"a stream behind, its wall of before":    {behind(catalog.ForkStream{Sync: ahead, SyncWall: early}), false},
		"a stream behind, its wall of after":     {behind(catalog.ForkStream{Sync: ahead, SyncWall: late}), true},
	} {
		require.Equal(t, c.want, arrived(c.forks, begun, now), name)
	}
}
