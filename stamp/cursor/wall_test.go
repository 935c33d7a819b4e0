package cursor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// R13: with which wall a closed record is taken. One whose time is not ahead has none. What was shown by the clock does not
// go back; what was shown by a clock that was ahead counts for nothing.
func TestR13WallOf(t *testing.T) {
	now := time.Unix(2_000_000_000, 0)
	at := func(d time.Duration) geo.Timestamp { return geo.TimestampOf(now.Add(d)) }
	const decades = 20 * 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		known Known
		taken change.Closed
		want  geo.Timestamp
	}{
		"no time is ahead":               {Known{Closed: at(-time.Minute)}, change.Closed{T: at(0)}, 0},
		"the source has reached them":    {Known{Closed: at(-time.Minute), Wall: at(-time.Hour)}, change.Closed{T: at(0)}, 0},
		"it comes as late as it is":      {Known{Closed: at(-time.Minute), Wall: at(-time.Hour)}, change.Closed{T: at(0), Wall: at(-50 * time.Minute)}, at(-50 * time.Minute)},
		"late, after a time of a clock":  {Known{Closed: at(-time.Minute)}, change.Closed{T: at(0), Wall: at(-time.Hour)}, at(-time.Minute)},
		"the first one that is ahead":    {Known{}, change.Closed{T: at(decades), Wall: at(-time.Second)}, at(-time.Second)},
		"none, and none before":          {Known{}, change.Closed{T: at(decades)}, 0},
		"what was shown before it":       {Known{Closed: at(-time.Minute)}, change.Closed{T: at(decades)}, at(-time.Minute)},
		"the next one":                   {Known{Closed: at(decades), Wall: at(-3 * time.Second)}, change.Closed{T: at(decades + 1), Wall: at(-time.Second)}, at(-time.Second)},
		"of a leader without":            {Known{Closed: at(decades), Wall: at(-3 * time.Second)}, change.Closed{T: at(decades + 1)}, at(-3 * time.Second)},
		"of a leader with a slow clock":  {Known{Closed: at(decades), Wall: at(-time.Second)}, change.Closed{T: at(decades + 1), Wall: at(-2 * time.Second)}, at(-time.Second)},
		"after one without a wall":       {Known{Closed: at(decades)}, change.Closed{T: at(decades + 1), Wall: at(-time.Second)}, at(-time.Second)},
		"after one by a clock ahead":     {Known{Closed: at(2 * decades), Wall: at(decades)}, change.Closed{T: at(2*decades + 1), Wall: at(-time.Second)}, at(-time.Second)},
		"the source was recovered since": {Known{Closed: at(decades), Wall: at(-time.Second)}, change.Closed{Incarnation: 7, T: at(decades + 1)}, 0},
	} {
		require.Equal(t, c.want, c.known.WallOf(&c.taken, now), name)
	}
}

// R13: a stream that is behind has the wall of the closed record whose head it has reached, not of a later one; and what is
// known is read back as it is stored.
func TestR13WallsOfAStreamBehind(t *testing.T) {
	st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: 4}
	src, all := st.Source(), cursors{}
	closed := func(seq geo.Seq) *change.Closed {
		return &change.Closed{
			Origin: "north", Range: 4, T0: 0, T: 1000 + geo.Timestamp(seq), Wall: 10 * geo.Timestamp(seq),
			Heads: []change.StreamHead{{Account: "acct", Epoch: st.Epoch, Seq: seq, Hash: geo.Hash(seq)}},
		}
	}
	shown := func(k Known) geo.Timestamp {
		c := all[st]
		return Progress{Closed: k.Closed, Wall: k.Wall}.SyncTime(ProgressOf(st, &c))
	}
	all[st] = change.Cursor{Applied: geo.Head{Seq: 1, Hash: 1}}
	k := Known{}.Take(closed(1), all)
	require.EqualValues(t, 10, shown(k))
	k = k.Take(closed(2), all)
	k = k.Take(closed(3), all)
	require.EqualValues(t, 10, shown(k))
	for seq := geo.Seq(2); seq <= 3; seq++ {
		all[st] = Advance(k, all[st], &change.Record{Seq: seq}, geo.Hash(seq))
		require.EqualValues(t, 10*seq, shown(k), "#%d", seq)
	}
	row := k.row(src)
	read, err := change.ParseClosed(change.AppendClosed(nil, &row))
	require.NoError(t, err)
	require.Equal(t, k, KnownOf(&read))
}

// cursors implements Streams.
type cursors map[geo.Stream]change.Cursor

func (c cursors) Cursor(s geo.Stream) change.Cursor  { return c[s] }
func (c cursors) Set(s geo.Stream, to change.Cursor) { c[s] = to }
func (c cursors) Behind(_ geo.SourceRange, f func(geo.Stream, change.Cursor)) {
	for s, at := range c {
		if len(at.Pairs) > 0 {
			f(s, at)
		}
	}
}
