package location

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/stamp/change"
)

// R19: the location that an account has left describes the failover by a copy of the record, which does not show that it is over while
// the new primary is away: it does not claim that it does not know of it.
func TestR19AFollowedFailoverIsDescribedAsSuch(t *testing.T) {
	t.Parallel()
	a := &catalog.Account{Name: "acct", Primary: "south", Secondary: "north", Active: true, Operation: &catalog.Operation{Kind: catalog.OperationTaken}}
	described := func(at geo.Location) string {
		out := DescribeAccount(a)
		New(Options{Name: at, Clock: clock.NewManual(time.Unix(1e9, 0))}).DescribeOperation(a, &out)
		require.Equal(t, wire.FailoverTaken, out.FailoverPhase)
		return out.Operation
	}
	require.Equal(t, "the failover to south: north has followed, and does not know whether it is over", described("north"))
	a.Operation.Rewinding = true
	require.Equal(t, a.Operation.Describe(), described("north"))
	a.Operation.Rewinding, a.Operation.Diverged = false, true
	require.Equal(t, a.Operation.Describe(), described("north"))
}

// What is shown of a bootstrap was measured: no total before all ranges are counted, none that is less than what was
// copied, 100 percent only when all is numbered, no rate before it was watched, and no time left without a rate.
func TestR17CopiedIsMeasured(t *testing.T) {
	t.Parallel()
	epoch := geo.Epoch{Number: 2, Location: "north"}
	image := func(copied, total uint64, done bool) change.Image {
		m := change.Image{Epoch: epoch, Copied: change.ImageSize{Rows: copied, Bytes: 10 * copied, Payload: 90 * copied}}
		m.Total = change.ImageSize{Rows: total, Bytes: 10 * total, Payload: 90 * total}
		if done {
			m.Done = make([]geo.Seq, geo.LaneCount)
		}
		return m
	}
	size := func(rows uint64) wire.CopySize {
		return wire.CopySize{Rows: rows, Bytes: 10 * rows, PayloadBytes: 90 * rows}
	}
	f := func(v float64) *float64 { return &v }
	total := func(rows uint64) *wire.CopySize { s := size(rows); return &s }
	waiting := change.Volume{Bytes: 1, Payload: 2}
	for name, c := range map[string]struct {
		images []change.Image
		speed  *float64
		want   wire.Copied
	}{
		"not begun":            {[]change.Image{{}, {}}, nil, wire.Copied{}},
		"of a former epoch":    {[]change.Image{{Copied: change.ImageSize{Rows: 5}}, {}}, f(7), wire.Copied{BytesPerSecond: f(7)}},
		"one is counted":       {[]change.Image{image(0, 10, false), {}}, nil, wire.Copied{}},
		"counted":              {[]change.Image{image(0, 10, false), image(0, 20, false)}, nil, wire.Copied{Total: total(30), Percent: f(0)}},
		"on the way":           {[]change.Image{image(10, 10, true), image(5, 20, false)}, f(100), wire.Copied{CopySize: size(15), Total: total(30), Percent: f(50), BytesPerSecond: f(100), SecondsLeft: f(15)}},
		"above its bound":      {[]change.Image{image(10, 10, true), image(5, 20, false)}, f(100), wire.Copied{CopySize: size(15), Total: total(30), Percent: f(50), BytesPerSecond: f(100), BytesPerSecondMax: 10, SecondsLeft: f(150)}},
		"below its bound":      {[]change.Image{image(10, 10, true), image(5, 20, false)}, f(100), wire.Copied{CopySize: size(15), Total: total(30), Percent: f(50), BytesPerSecond: f(100), BytesPerSecondMax: 1000, SecondsLeft: f(15)}},
		"rounded down":         {[]change.Image{image(1, 3, false), image(1, 3, false)}, nil, wire.Copied{CopySize: size(2), Total: total(6), Percent: f(33.3)}},
		"it stands":            {[]change.Image{image(10, 10, true), image(5, 20, false)}, f(0), wire.Copied{CopySize: size(15), Total: total(30), Percent: f(50), BytesPerSecond: f(0)}},
		"clients wrote more":   {[]change.Image{image(10, 10, true), image(25, 20, false)}, nil, wire.Copied{CopySize: size(35), Total: total(35), Percent: f(99.9)}},
		"nothing but not done": {[]change.Image{image(0, 0, true), image(0, 0, false)}, nil, wire.Copied{Total: total(0), Percent: f(99.9)}},
		"all numbered":         {[]change.Image{image(10, 10, true), image(20, 20, true)}, f(100), wire.Copied{CopySize: size(30), Total: total(30), Percent: f(100), BytesPerSecond: f(100), SecondsLeft: f(0)}},
		"there is nothing":     {[]change.Image{image(0, 0, true), image(0, 0, true)}, nil, wire.Copied{Total: total(0), Percent: f(100)}},
	} {
		got := copied{counted: true, numbered: true}
		for _, m := range c.images {
			got.add(m, epoch, waiting)
		}
		c.want.WaitingBytes = 6
		speed := 0.
		if c.speed != nil {
			speed = *c.speed
		}
		require.Equal(t, &c.want, got.describe(speed, c.speed != nil, c.want.BytesPerSecondMax), name)
	}
}
