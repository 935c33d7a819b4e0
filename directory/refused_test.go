package directory_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/directory/record"
	"antipode/failover/planned"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// deaf is a directory that takes no offer, and remembers the last one.
type deaf struct {
	directory.Peer
	offer planned.Offer
}

func (d *deaf) Offer(_ context.Context, o planned.Offer) (*catalog.Account, error) {
	d.offer = o
	return nil, errLink
}

// ship has what the catalog of the north has numbered of an account arrive at the south, and be acknowledged.
func (b *both) ship(t *testing.T, name geo.Account) {
	t.Helper()
	of, err := b.north.Account(t.Context(), name)
	require.NoError(t, err)
	id := geo.FirstRange(geo.Catalog)
	st := geo.Stream{Account: name, Epoch: of.GeoEpoch(), Range: id, Lane: catalog.AccountPartition(name).Lane()}
	m := b.stamps["north"].Leader(id).Machine
	records, err := m.Outbox(st, m.Trimmed(st)+1, 1<<20)
	require.NoError(t, err)
	for _, r := range records {
		rec, err := change.ParseRecord(r)
		require.NoError(t, err)
		stamptest.Submit(t, b.stamps["south"], id, does(func(tx *ranges.Tx) error { return tx.Received(r, &rec, true) }))
		stamptest.Submit(t, b.stamps["north"], id, does(func(tx *ranges.Tx) error { return tx.Trim(st, rec.Seq) }))
	}
}

// R19: an offer that was refused is never taken, however late it comes, also while nothing was written since and all heads are
// as they were. Without the refusal it is taken.
func TestR19RefusedOfferIsNeverTaken(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{true, false} {
		b := newBoth(t)
		_, err := b.north.Create(t.Context(), "acct", nil, nil)
		require.NoError(t, err)
		away := &deaf{Peer: linked{b.pair, b.south}}
		b.north.SetPeer(away)
		_, err = b.north.Mover().Move(t.Context(), "acct", planned.MoveWithinMax)
		require.NoError(t, err)
		for range 6 {
			b.ship(t, "acct")
			_, _ = b.north.Resume(t.Context())
		}
		require.True(t, away.offer.Account.Offered())
		if refused {
			_, err = b.north.Mover().EndMove(t.Context(), "acct")
			require.NoError(t, err)
			_, err = b.north.Resume(t.Context())
			require.NoError(t, err)
		}
		if !refused {
			other := planned.Offer{Account: away.offer.Account, Ends: slices.Clone(away.offer.Ends)}
			other.Ends[0].Hash++
			_, err = b.south.Offer(t.Context(), other)
			requireCode(t, storageerr.ServerBusy, err) // R16: the numbers are the same, and the records are not.
			stamptest.Submit(t, b.stamps["south"], table, stamptest.Compared{As: 5})
			_, err = b.south.Offer(t.Context(), away.offer)
			requireCode(t, storageerr.ServerBusy, err) // R4: the range may have lost what it had.
			b.compare(t, b.south, "south")
		}
		taken, err := b.south.Offer(t.Context(), away.offer)
		if !refused {
			require.NoError(t, err)
			require.Equal(t, geo.Location("south"), taken.Primary)
			for _, s := range every { // R17: the north has all payload, so that no write names it again.
				if s != geo.Catalog {
					id := geo.FirstRange(s)
					image, err := ranges.ImageIn(b.stamps["south"].Leader(id).State(), id, "acct")
					require.NoError(t, err)
					require.Equal(t, change.Image{Epoch: taken.GeoEpoch(), Done: make([]geo.Seq, geo.LaneCount)}, image)
				}
			}
			continue
		}
		var passed *record.PassedError
		require.ErrorAs(t, err, &passed)
		above, err := b.south.Higher(t.Context(), map[geo.Account]geo.Epoch{"acct": away.offer.Account.GeoEpoch()})
		require.NoError(t, err)
		require.Empty(t, above, "an epoch that was refused does not fence the primary (R21)")
		at, err := b.south.Account(t.Context(), "acct")
		require.NoError(t, err)
		require.Equal(t, geo.Location("north"), at.Primary)
	}
}

// R19: an account that was taken with the former primary's consent does not go to a later epoch where that one is in a higher
// one: it has changes that no stream has, and no fork record would show them.
func TestR19PlannedEpochIsNotRaised(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.north.NeverWait()
	_, err := b.north.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	away := &deaf{Peer: linked{b.pair, b.south}}
	b.north.SetPeer(away)
	_, err = b.north.Mover().Move(t.Context(), "acct", planned.MoveWithinMax)
	require.NoError(t, err)
	for range 6 {
		b.ship(t, "acct")
		_, _ = b.north.Resume(t.Context())
	}
	taken, err := b.south.Offer(t.Context(), away.offer)
	require.NoError(t, err)
	_, err = b.north.Mover().EndMoveAlone(t.Context(), "acct") // The operator is wrong.
	require.NoError(t, err)
	_, err = b.north.Resume(t.Context())
	require.NoError(t, err)
	for range 2 {
		_, _, err = b.north.Rebuild(t.Context(), "acct", nil)
		require.NoError(t, err)
	}
	for range 3 {
		_, _ = b.south.Resume(t.Context())
	}
	at, err := b.south.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Equal(t, taken.GeoEpoch(), at.GeoEpoch())
	above, err := b.north.Higher(t.Context(), map[geo.Account]geo.Epoch{"acct": taken.GeoEpoch()})
	require.NoError(t, err)
	require.NotEmpty(t, above, "so the south takes no writes (R21)")
}

// R19, R20: the location that is offered an account has become its primary by an unplanned failover meanwhile. The former
// primary waits for the call that says where the copy ended, and has nothing that is not there: no copy is made again.
func TestR20OfferFindsAPromotion(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	a.acknowledged(t)
	away := &deaf{Peer: linked{a.pair, a.pair.south}}
	a.north.SetPeer(away)
	_, err := a.north.Mover().Move(t.Context(), "acct", planned.MoveWithinMax)
	require.NoError(t, err)
	for range 6 {
		a.ship(t, "acct")
		_, _ = a.north.Resume(t.Context())
	}
	require.True(t, away.offer.Account.Offered())
	a.cut = true
	_, err = a.pair.south.Promoter().Promote(t.Context(), "acct")
	require.NoError(t, err)
	require.ErrorIs(t, a.resumed(t, 6), errLink)
	taken := a.at(t)
	require.True(t, taken.Operation.Unplanned)
	a.cut = false
	a.north.SetPeer(linked{a.pair, a.pair.south})
	_, err = a.north.Resume(t.Context())
	require.NoError(t, err)
	there, err := a.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.True(t, there.Offered(), "it waits")
	require.NoError(t, a.resumed(t, 2))
	require.Nil(t, a.at(t).Operation)
	a.requireGates(t, "north", "acct", change.Gate{Epoch: taken.GeoEpoch(), Role: change.RoleSecondary, Open: true})
}

// forgetful is a directory that follows, and has forgotten it: its disks are older ones.
type forgetful struct{ directory.Peer }

func (forgetful) Adopt(context.Context, rejoin.Taken) error { return nil }

// R4, R19: a former primary that knew of a failover and has lost that is called when it asks for higher epochs (R21). It serves
// nothing of the account, and its copy can be made again, also where that was asked for before. One that follows already, and
// whose question was late, notices nothing.
func TestR19FormerPrimaryIsReminded(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"lost", "rebuilt before", "late"} {
		t.Run(name, func(t *testing.T) {
			b := newBoth(t)
			b.south.NeverWait()
			b.south.SetImages(&images{next: func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Held: true} }})
			at := func(d *directory.Directory) *catalog.Account {
				a, err := d.Account(t.Context(), "acct")
				require.NoError(t, err)
				return a
			}
			above := b.takenFrom(t)
			if name != "late" {
				b.south.SetPeer(forgetful{linked{b.pair, b.north}})
			}
			require.NoError(t, b.south.Rejoiner().Remind(t.Context(), above))
			require.NotNil(t, at(b.south).Operation, "the failover goes on, and calls the north itself")
			_, err := b.south.Resume(t.Context())
			require.NoError(t, err)
			require.Nil(t, at(b.south).Operation)
			b.south.SetPeer(linked{b.pair, b.north})
			if name == "rebuilt before" {
				_, behind, err := b.south.Rebuild(t.Context(), "acct", nil)
				require.NoError(t, err)
				requireCode(t, storageerr.AccountAlreadyExists, behind)
				require.False(t, at(b.south).Copying())
				above["acct"] = at(b.south).GeoEpoch()
			}

			require.NoError(t, b.south.Rejoiner().Remind(t.Context(), above))
			there := at(b.north)
			require.Equal(t, geo.Location("south"), there.Primary)
			if name == "late" {
				require.False(t, there.Unsure())
				b.requireGates(t, "north", "acct", change.Gate{Epoch: there.GeoEpoch(), Role: change.RoleSecondary, Open: true})
				return
			}
			require.True(t, there.Unsure(), "nobody reads it")
			for _, s := range every {
				require.False(t, b.stamps["north"].Leader(geo.FirstRange(s)).Machine.Gate("acct").Open)
			}
			if name == "lost" {
				_, _, err = b.south.Rebuild(t.Context(), "acct", nil)
			} else {
				_, err = b.south.Resume(t.Context())
			}
			require.NoError(t, err)
			require.True(t, at(b.south).Copying())
		})
	}
}

// takenFrom has the south take an account that the north offers, and returns what the south answers when the north asks for
// higher epochs.
func (b *both) takenFrom(t *testing.T) map[geo.Account]geo.Epoch {
	t.Helper()
	_, err := b.north.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	away := &deaf{Peer: linked{b.pair, b.south}}
	b.north.SetPeer(away)
	_, err = b.north.Mover().Move(t.Context(), "acct", planned.MoveWithinMax)
	require.NoError(t, err)
	for range 6 {
		b.ship(t, "acct")
		_, _ = b.north.Resume(t.Context())
	}
	_, err = b.south.Offer(t.Context(), away.offer)
	require.NoError(t, err)
	own, err := b.north.Own(t.Context())
	require.NoError(t, err)
	above, err := b.south.Higher(t.Context(), own)
	require.NoError(t, err)
	require.Len(t, above, 1)
	return above
}

// during is a directory that follows, while something happens.
type during struct {
	directory.Peer
	do func()
}

func (d during) Adopt(ctx context.Context, t rejoin.Taken) error {
	err := d.Peer.Adopt(ctx, t)
	d.do()
	return err
}

// R4, R19: a range of the new primary is recovered with loss while the former one follows. The operation does not end with the
// steps of before, which that range may have lost: they are made again.
func TestR19RecoveredFailoverDoesNotEnd(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.takenFrom(t)
	b.south.SetPeer(during{linked{b.pair, b.north}, func() {
		stamptest.Submit(t, b.stamps["south"], table, stamptest.Compared{As: 5})
		b.compare(t, b.south, "south")
	}})
	_, err := b.south.Resume(t.Context())
	require.NoError(t, err)
	a, err := b.south.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.NotNil(t, a.Operation)
	b.south.SetPeer(linked{b.pair, b.north})
	_, err = b.south.Resume(t.Context())
	require.NoError(t, err)
	a, err = b.south.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Nil(t, a.Operation)
}
