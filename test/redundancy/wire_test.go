package redundancy

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/load"
)

// What `make redundancy` sets. At the size of the other tests what passes without any change outweighs the change.
var (
	rewound  = flag.Bool("rewound", false, "measure what the return of a former primary moves, of which a hundredth was changed")
	movedMax = flag.Float64("moved", 0, "how many times the change that may be; 1.2 is the aim, and 0 bounds nothing")
)

const (
	// changedShare is how much of the blobs is changed while the link is cut: one in so many.
	changedShare = 100
	// soonerMin is how many times sooner than a copy the former primary is back.
	soonerMin = 10
	// quietFor is for how long the link is measured with nothing to do.
	quietFor = 20 * time.Second
)

// Both locations are written while the link is cut and the secondary is promoted: together a hundredth of the account, half
// of it at either side. Once the link is whole the former primary lists its changes and is rewound (R22), without a copy;
// then the account moves back. What passes over the link for that, all calls and streams counted, is compared with the
// change, and the time with that of a copy.
//
// Capability: Failover: A former primary is rewound (R22).
func TestR22RewindMovesTheChange(t *testing.T) {
	if !*rewound {
		t.Skip("it takes a GiB to measure: make redundancy")
	}
	r := rig.StartTest(t, nil)
	ctx := t.Context()
	a := create(ctx, t, r, "rewound", load.Options{Clients: 1})
	a.Secondary = r.ClientOf(rig.Gateway, a.name, true)
	a.fill(ctx)
	copied := a.lap()
	_, err := r.Admin(rig.Gateway).UpdateAccount(ctx, a.name, wire.UpdateAccount{Redundancy: string(catalog.RAGRS)})
	require.NoError(t, err)
	a.comesTo(ctx, catalog.RAGRS)
	a.live(ctx)
	whole, wholeTook := copied.ended()

	idle := a.lap()
	rig.Pause(ctx, quietFor)
	quiet, quietTook := idle.ended()

	half := *objects / changedShare / 2
	require.NoError(t, r.Cut(proxy.Fault{Refuse: true}, rig.NodesOf(rig.North), rig.NodesOf(rig.South)))
	a.overwrite(ctx, rig.North, 0, half)
	a.promote(ctx, rig.South)
	a.overwrite(ctx, rig.South, half, 2*half) // Not by the gateway: the north goes on, and it may take that for the primary.
	returns := a.lap()
	require.NoError(t, r.Cut(proxy.Fault{}, rig.NodesOf(rig.North), rig.NodesOf(rig.South)))
	a.returns(ctx, rig.North, rig.South)
	a.live(ctx)
	moved, movedTook := returns.ended()

	claims, changes := a.lostChanges(ctx, rig.North)
	listed := map[string]bool{}
	for _, c := range changes {
		listed[c.Object] = listed[c.Object] || c.Container == filled
	}
	for n := range half {
		require.True(t, listed[fmt.Sprint(n)], "blob %d was written at the north alone, and is not in the report", n)
	}
	for _, c := range claims {
		require.True(t, c.Complete, "%+v", c)
	}
	back := a.lap()
	a.failover(ctx, rig.South, rig.North)
	again, againTook := back.ended()
	for n := range 2 * half {
		got, err := a.Primary.GetBlob(ctx, filled, fmt.Sprint(n))
		require.NoError(t, err)
		want := content(n)
		if n >= half {
			want = content(n + *objects)
		}
		require.Equal(t, want, got.Body, "blob %d", n)
	}
	a.agrees(ctx)

	change := float64(2 * half * *objectSize)
	t.Logf("a copy: %d bytes in %v; nothing to do: %.0f bytes/s; the change: %.0f bytes; the return: %d bytes in %v, %.2f times the change; "+
		"the move back: %d bytes in %v, together %.2f times; %.1f times sooner than a copy", whole, wholeTook, float64(quiet)/quietTook.Seconds(),
		change, moved, movedTook, float64(moved)/change, again, againTook, float64(moved+again)/change, wholeTook.Seconds()/(movedTook+againTook).Seconds())
	if *movedMax > 0 {
		require.LessOrEqual(t, float64(moved+again), *movedMax*change)
	}
	require.LessOrEqual(t, (movedTook+againTook).Seconds()*soonerMin, wholeTook.Seconds())
}

// lap is what passes over the link, in both directions, from a moment on.
type lap struct {
	a     *account
	began time.Time
	was   int64
}

func (a *account) carried() int64 {
	return a.r.RateFrom(rig.North).Carried() + a.r.RateFrom(rig.South).Carried()
}

// lap begins one.
func (a *account) lap() lap { return lap{a, time.Now(), a.carried()} }

// ended returns the bytes, and the time.
func (l lap) ended() (bytes int64, took time.Duration) {
	return l.a.carried() - l.was, time.Since(l.began).Round(10 * time.Millisecond)
}

// overwrite writes other content to blobs [from, to), at a location.
func (a *account) overwrite(ctx context.Context, at geo.Location, from, to int) {
	a.t.Helper()
	c := a.r.ClientOf(rig.NodesOf(at)[0], a.name, false)
	g, one := errgroup.WithContext(ctx)
	for f := range fillers {
		g.Go(func() error {
			for n := from + f; n < to; n += fillers {
				got, err := c.PutBlob(one, filled, fmt.Sprint(n), content(n+*objects))
				if err != nil || !got.OK() {
					return fmt.Errorf("blob %d: %v, %w", n, got, err)
				}
			}
			return nil
		})
	}
	require.NoError(a.t, g.Wait())
}

// returns waits until the former primary is the secondary, without a copy.
func (a *account) returns(ctx context.Context, former, now geo.Location) {
	a.t.Helper()
	a.eventually(ctx, "the former primary is rewound", func(ctx context.Context) bool {
		for _, l := range []geo.Location{now, former} {
			got, err := a.r.Admin(rig.NodesOf(l)[0]).Account(ctx, a.name)
			require.NotContains(a.t, got.Operation, "account rebuild", "it is not rewound")
			if err != nil || got.Primary != now || got.Operation != "" {
				return false
			}
		}
		return true
	})
}
