package secondary

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/stamp/cursor"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// routed is a stamp with nothing but a table of ranges.
type routed struct {
	Stamp
	t *route.Table
}

func (r routed) Route() *route.Table { return r.t }

func (routed) Go(f func(context.Context)) { f(context.Background()) }

func (routed) Replica(geo.RangeID) *ranges.Range { return nil }

// R14: the records of a source range go to the range here that holds its keys, whatever its id. If there is no such
// range, because several hold parts of them, nothing is applied.
func TestR14SourceRangeIsRouted(t *testing.T) {
	t.Parallel()
	whole := route.First().Service(geo.Table)[0]
	at := string(keys.AppendAccount(nil, geo.Table, "m"))
	left, right := whole, whole
	left.ID, left.Span.End, right.ID, right.Span.Start = 10, at, 11, at
	split, err := route.New(append(route.First().Ranges()[:3:3], left, right)...)
	require.NoError(t, err)
	for _, c := range []struct {
		here, there *route.Table
		from, to    geo.RangeID
	}{
		{route.First(), route.First(), whole.ID, whole.ID},
		{route.First(), split, 10, whole.ID},
		{route.First(), split, 11, whole.ID},
		{split, split, 11, 11},
		{split, route.First(), 1, 1},
		{split, route.First(), whole.ID, 0},
		{split, split, whole.ID, 0}, // Of before its split: it is in the table no more.
	} {
		a := NewApplier(routed{t: c.here}, c.there)
		src := geo.SourceRange{Origin: "north", Range: c.from}
		got, err := a.local(src)
		require.Equal(t, c.to, got)
		if c.to != 0 {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, errRouted)
		require.ErrorContains(t, err, "range 4 of north")
		a.Apply(&receive.Batch{Source: src}, func(err error) { require.ErrorIs(t, err, errRouted) })
		a.Progress(src, func(p cursor.Progress, err error) {
			require.ErrorIs(t, err, errRouted)
			require.Zero(t, p)
		})
	}
}
