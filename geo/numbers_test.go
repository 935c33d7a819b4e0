package geo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The number of lanes is fixed when a stamp is made: another one would send a
// partition's changes down two lanes at once and break their order (R10).
func TestLaneCount(t *testing.T) { require.EqualValues(t, 32, LaneCount) }

// Epochs are totally ordered, by number and then by location, so that two locations that assigned
// the same number agree on the winner (R19; property against a plain comparison).
func TestEpochOrder(t *testing.T) {
	epoch := rapid.Custom(func(t *rapid.T) Epoch {
		return Epoch{
			Number:   EpochNumber(rapid.Uint64Range(0, 3).Draw(t, "number")),
			Location: Location(rapid.StringMatching(`[ab]{0,2}`).Draw(t, "location")),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := epoch.Draw(t, "a"), epoch.Draw(t, "b"), epoch.Draw(t, "c")
		less := a.Number < b.Number || a.Number == b.Number && a.Location < b.Location
		require.Equal(t, less, a.Compare(b) < 0)
		require.Equal(t, a == b, a.Compare(b) == 0)
		require.Equal(t, a.Compare(b), -b.Compare(a))
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 {
			require.LessOrEqual(t, a.Compare(c), 0)
		}
		require.Equal(t, a.Number == 0, a.IsZero())
	})
	require.Equal(t, "7@north", Epoch{7, "north"}.String())
	e, ok := ParseEpoch("7@north")
	require.True(t, ok)
	require.Equal(t, Epoch{7, "north"}, e)
	for _, bad := range []string{"", "7", "@north", "0@north", "7@", "07@north", "+7@north", "-7@north", "18446744073709551616@north", "x@north"} {
		_, ok := ParseEpoch(bad)
		require.False(t, ok, bad)
	}
}

// A timestamp keeps every tick of a clock reading between 1970 and 9999 and only
// cuts below 100 ns; a reading before 1970 gives zero (R6; property). The years 1601
// and 2300 are where time.Time.UnixNano wraps.
func TestTimestampOf(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want Timestamp
	}{
		{time.Unix(0, 0), 0},
		{time.Unix(0, 99), 0},
		{time.Unix(0, 100), 1},
		{time.Unix(1, 199), 10_000_001},
		{time.Unix(0, -1), 0},
		{time.Time{}, 0},
		{time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC), 0},
		{time.Date(1677, 9, 21, 0, 0, 0, 0, time.UTC), 0},
		{time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC), 104_137_920_000_000_000},
		{time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), 2_534_023_007_999_999_999},
	} {
		require.Equal(t, c.want, TimestampOf(c.at), "%s", c.at)
	}
	rapid.Check(t, func(t *rapid.T) {
		ts := Timestamp(rapid.Uint64Range(0, 2_534_023_007_999_999_999).Draw(t, "ticks"))
		below := time.Duration(rapid.IntRange(0, 99).Draw(t, "ns"))
		require.Equal(t, ts, TimestampOf(ts.Time().Add(below)))
		require.Equal(t, ts, TimestampOf(ts.Time().In(time.FixedZone("west", -8*3600))))
	})
}

// Timestamps print with all seven digits and count ticks from year 1 the way ETags
// do, equal in both locations (R6; frozen values).
func TestTimestampForms(t *testing.T) {
	ts := TimestampOf(time.Date(2026, 7, 9, 11, 22, 33, 123_456_789, time.UTC))
	require.Equal(t, "2026-07-09T11:22:33.1234567Z", ts.String())
	require.Equal(t, uint64(639_191_929_531_234_567), ts.Ticks())
	require.Equal(t, "1970-01-01T00:00:00.0000000Z", Timestamp(0).String())
	require.Equal(t, uint64(621_355_968_000_000_000), Timestamp(0).Ticks())
}

// R6: a time is ahead of a clock once it is more than a second ahead of it, whatever the clock's zone, and a time that
// nothing gave is ahead of none, however far in the past.
func TestTimestampAheadOf(t *testing.T) {
	now := time.Date(2026, 7, 9, 11, 22, 33, 0, time.FixedZone("west", -8*3600))
	for by, ahead := range map[time.Duration]bool{
		-100 * 365 * 24 * time.Hour: false, 0: false, time.Second: false,
		time.Second + 100: true, 100 * 365 * 24 * time.Hour: true,
	} {
		require.Equal(t, ahead, TimestampOf(now.Add(by)).AheadOf(now), by.String())
	}
	require.False(t, Timestamp(0).AheadOf(now))
	require.True(t, (^Timestamp(0)).AheadOf(now))
}

// A stream prints with all four parts that make it one (R10; frozen value).
func TestStreamString(t *testing.T) {
	s := Stream{Account: "acct", Epoch: Epoch{3, "north"}, Range: 4, Lane: 17}
	require.Equal(t, "acct/3@north/r4/l17", s.String())
}

// The part of a span within another has the keys of both, and an end that is not above its start if there are none.
func TestSpanWithin(t *testing.T) {
	for _, c := range []struct{ a, b, want Span }{
		{Span{"b", "d"}, Span{"a", "e"}, Span{"b", "d"}},
		{Span{"b", "d"}, Span{"c", "e"}, Span{"c", "d"}},
		{Span{"b", "d"}, Span{"c", ""}, Span{"c", "d"}},
		{Span{"b", ""}, Span{"a", "c"}, Span{"b", "c"}},
		{Span{"b", ""}, Span{}, Span{"b", ""}},
		{Span{"b", "d"}, Span{"d", "e"}, Span{"d", "d"}},
		{Span{"b", "c"}, Span{"x", "y"}, Span{"x", "c"}},
	} {
		require.Equal(t, c.want, c.a.Within(c.b))
		require.Equal(t, c.want, c.b.Within(c.a))
	}
}
