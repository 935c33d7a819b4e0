package directory_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// full is a stamp whose disks are nearly full: it takes what frees room or needs almost none.
type full struct{ *stamp.Stamp }

func (f full) Submit(ctx context.Context, r geo.RangeID, cmd ranges.Command) error {
	if _, accepted := cmd.(ranges.Reclaimer); !accepted {
		return kv.ErrBusy
	}
	return f.Stamp.Submit(ctx, r, cmd)
}

// R2: a change to LRS frees the room of the outbox and of the copy, and a rebuild that of a copy that is of no use: both
// are taken while the disks of both locations are nearly full, to the end of what frees room. A creation is not.
func TestR2LeaveOnFullDisks(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	a, err := b.north.Create(t.Context(), "acct1", nil, nil)
	require.NoError(t, err)
	b.arriveAt(t, "south", a)
	stamptest.Submit(t, b.stamps["north"], geo.FirstRange(geo.Table), insert{"acct1"})
	b.copyAt(t, "south", "acct1")
	north := directory.NewDirectory(full{b.stamps["north"]}, "south")
	south := directory.NewDirectory(full{b.stamps["south"]}, "north")
	north.NeverWait()
	north.SetPeer(linked{b.pair, south})
	north.SetImages(&images{next: func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Held: true} }})

	_, err = north.Create(t.Context(), "other", nil, nil)
	require.ErrorIs(t, err, kv.ErrBusy, "a creation")

	rebuilt, behind, err := north.Rebuild(t.Context(), "acct1", nil)
	require.NoError(t, err)
	require.ErrorContains(t, behind, "(bootstrap)")
	require.True(t, rebuilt.Copying())
	require.Empty(t, b.rowsOf(t, "south", "acct1"))
	b.requireGates(t, "south", "acct1", change.Gate{Epoch: rebuilt.GeoEpoch(), Role: change.RoleSecondary, Open: true})

	left, behind, err := north.Update(t.Context(), "acct1", catalog.LRS, nil)
	require.NoError(t, err)
	require.NoError(t, behind)
	require.Nil(t, left.Operation)
	require.Zero(t, b.outboxOf(t, "north", "acct1"))
	b.requireGates(t, "south", "acct1", change.Gate{Epoch: left.GeoEpoch()})
}

// R13, R17: in every range the account's changes of a new epoch are committed above the record with which its streams of
// the former one end, also where that range's time is behind the catalog's: a Last Sync Time that covers that record would
// cover them too, though they are not copied.
func TestR13LeaveCommitsAbove(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	for name, begin := range map[geo.Account]func() (*catalog.Account, error, error){
		"left":    func() (*catalog.Account, error, error) { return b.north.Update(t.Context(), "left", catalog.LRS, nil) },
		"rebuilt": func() (*catalog.Account, error, error) { return b.north.Rebuild(t.Context(), "rebuilt", nil) },
	} {
		b.cut = false
		_, err := b.north.Create(t.Context(), name, nil, nil)
		require.NoError(t, err)
		var ahead geo.Timestamp
		stamptest.Submit(t, b.stamps["north"], geo.FirstRange(geo.Catalog), does(func(tx *ranges.Tx) error {
			ahead = tx.Timestamp(0) + geo.TimestampOf(time.Unix(3600, 0)) - geo.TimestampOf(time.Unix(0, 0))
			tx.ClosedAfter(ahead)
			return nil
		}))
		b.cut = true
		a, _, err := begin()
		require.NoError(t, err)
		require.Greater(t, a.Operation.After, ahead)
		for _, s := range geo.Services {
			var at geo.Timestamp
			stamptest.Submit(t, b.stamps["north"], geo.FirstRange(s), does(func(tx *ranges.Tx) error {
				at = tx.Timestamp(0)
				return nil
			}))
			require.Greater(t, at, a.Operation.After, "%s: %s", name, s)
		}
	}
}

// R17: a copy that begins has nothing of the former one, its containers in the catalog included: a deleted one that
// the primary has not would have its rows dropped.
func TestR17PrepareDeletesTheCopy(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	a, err := b.north.Create(t.Context(), "acct1", nil, nil)
	require.NoError(t, err)
	b.arriveAt(t, "south", a)
	b.copyAt(t, "south", "acct1")
	next := *a
	next.Epoch, next.Operation = 2, &catalog.Operation{Kind: catalog.OperationBootstrap}
	for range 2 {
		require.NoError(t, b.south.Prepare(t.Context(), next))
		require.Empty(t, b.rowsOf(t, "south", "acct1"))
	}
}
