package directory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/primary"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// R17: before an image makes a step, the account's rows are counted in every range, in short turns, and the catalog's
// image begins last. A failure repeats a step, and counts nothing twice. A new epoch counts again.
func TestR17RowsAreCounted(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.north.NeverWait()
	_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: catalog.LRS})
	require.NoError(t, err)
	fake := &images{
		refuse: errors.New("no leader"), next: func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Uncounted: true} },
		rows: map[geo.Service]int{geo.Table: 140, geo.Blob: 1, geo.Catalog: 2},
	}
	b.north.SetImages(fake)
	_, behind := update(t, b.north, "acct", catalog.GRS)
	require.ErrorContains(t, behind, "no leader")
	fake.refuse = nil
	turn := func() time.Duration {
		again, err := b.north.Resume(t.Context())
		require.NoError(t, err)
		return again
	}
	fake.countSteps = 0
	require.Equal(t, 20*time.Millisecond, turn())
	require.Equal(t, 64, fake.countSteps, "a turn")
	require.Equal(t, []geo.Service{geo.Queue, geo.Blob}, fake.begun)
	require.Equal(t, 20*time.Millisecond, turn())
	fake.refuse = errors.New("no leader")
	_, err = b.north.Resume(t.Context())
	require.ErrorContains(t, err, "no leader")
	fake.refuse = nil
	require.Equal(t, []time.Duration{20 * time.Millisecond, 20 * time.Millisecond, 10 * time.Millisecond}, []time.Duration{turn(), turn(), turn()})
	require.Equal(t, []geo.Service{geo.Queue, geo.Blob, geo.Table, geo.Catalog}, fake.begun)
	of := func(n uint64) change.ImageSize { return change.ImageSize{Rows: n, Bytes: 2 * n, Payload: 3 * n} }
	require.Equal(t, map[geo.Service]change.ImageSize{geo.Queue: {}, geo.Blob: of(1), geo.Table: of(140), geo.Catalog: of(2)}, fake.counted)

	require.Equal(t, 20*time.Millisecond, turn(), "half a count")
	fake.rows[geo.Blob] = 2
	_, _, err = b.north.Rebuild(t.Context(), "acct", nil)
	require.NoError(t, err)
	for len(fake.begun) < 10 {
		turn()
	}
	require.Equal(t, [2]change.ImageSize{of(2), of(140)}, [2]change.ImageSize{fake.counted[geo.Blob], fake.counted[geo.Table]})
}

// catalogOnly is a stamp of which this node has the catalog alone.
type catalogOnly struct{ *stamp.Stamp }

// Read implements directory.Stamp.
func (s catalogOnly) Read(ctx context.Context, id geo.RangeID, f func(ranges.State) error) error {
	if id != geo.FirstRange(geo.Catalog) {
		return kv.ErrBusy
	}
	return s.Stamp.Read(ctx, id, f)
}

// R17: in a stamp of more than three nodes the one that leads the catalog may have no replica of a range. Its rows are
// counted where it is led.
func TestR17RowsAreCountedElsewhere(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	north := catalogOnly{b.stamps["north"]}
	b.north = directory.NewDirectory(north, "south")
	b.north.NeverWait()
	b.north.SetPeer(linked{b.pair, b.south})
	b.north.SetImages(primary.New(north))
	_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: catalog.LRS})
	require.NoError(t, err)
	for n := range 3 {
		p := keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: fmt.Sprint("p", n)}
		stamptest.Submit(t, north.Stamp, geo.FirstRange(geo.Table), stamptest.Change{Partition: p, Record: change.Record{
			Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: []byte("value")}},
		}})
	}
	_, behind := update(t, b.north, "acct", catalog.GRS)
	require.ErrorContains(t, behind, "(bootstrap)", "it waits for the other location")
	for s, rows := range map[geo.Service]uint64{geo.Catalog: 2, geo.Table: 3, geo.Blob: 0} {
		m, err := ranges.ImageIn(north.Leader(geo.FirstRange(s)).State(), geo.FirstRange(s), "acct")
		require.NoError(t, err)
		require.Equal(t, geo.EpochNumber(2), m.Epoch.Number, "%s: the image has begun", s)
		require.Equal(t, rows, m.Total.Rows, "%s", s)
	}
}

// R17: why an operation cannot go on is known until it goes on, and only of the epoch that it was found in.
func TestR17WaitsAreKnown(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.north.NeverWait()
	_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: catalog.LRS})
	require.NoError(t, err)
	fake := &images{
		refuse: errors.New("row 01 of container c"), next: func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Uncounted: true} },
	}
	b.north.SetImages(fake)
	a, _ := update(t, b.north, "acct", catalog.GRS)
	_, err = b.north.Resume(t.Context())
	require.Error(t, err)
	require.Contains(t, b.north.Waits(a), "row 01 of container c")
	next := *a
	next.Epoch++
	require.Empty(t, b.north.Waits(&next))
	fake.refuse = nil
	_, err = b.north.Resume(t.Context())
	require.NoError(t, err)
	require.Empty(t, b.north.Waits(a))
	fake.refuse, fake.begun = errors.New("again"), nil
	_, _, err = b.north.Rebuild(t.Context(), "acct", nil)
	require.NoError(t, err)
	_, err = b.north.Resume(t.Context())
	require.Error(t, err)
	left, _ := update(t, b.north, "acct", catalog.LRS)
	_, err = b.north.Resume(t.Context())
	require.NoError(t, err)
	left.Epoch--
	require.Empty(t, b.north.Waits(left), "nothing is under way")
}
