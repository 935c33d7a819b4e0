package directory_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/failover/planned"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// acknowledged has the south acknowledge all that the north has numbered.
func (b *both) acknowledged(t *testing.T) {
	t.Helper()
	for _, s := range every {
		m := b.stamps["north"].Leader(geo.FirstRange(s)).Machine
		heads, _ := m.Heads()
		for st, head := range heads {
			stamptest.Submit(t, b.stamps["north"], st.Range, does(func(tx *ranges.Tx) error { return tx.Trim(st, head.Seq) }))
		}
	}
}

// offered has the north offer an account to the south, which takes it and cannot say so. It returns the record there.
func (b *both) offered(t *testing.T, name geo.Account) catalog.Account {
	t.Helper()
	_, err := b.north.Mover().Move(t.Context(), name, planned.MoveWithinMax)
	require.NoError(t, err)
	b.cut = true
	for range 6 {
		b.acknowledged(t)
		_, _ = b.north.Resume(t.Context())
	}
	b.cut = false
	a, err := b.north.Account(t.Context(), name)
	require.NoError(t, err)
	require.True(t, a.Offered())
	taken := *a
	taken.Primary, taken.Secondary, taken.Epoch, taken.Turn, taken.LastFailover = "south", "north", a.Operation.Move.Claim, 0, a.Operation.Move.Until
	taken.Operation = &catalog.Operation{Kind: catalog.OperationTaken, After: taken.LastFailover}
	return taken
}

// R4, R19: between the offer and the answer that it was taken, a range of the former primary is recovered with loss. What it
// lost was acknowledged, so no cursor and no outbox shows it. It is not the whole copy of the account, and nobody reads it
// before it is made again.
//
// Capability: Failover: Failovers beside recoveries with loss, and lost locations (R4, R19).
func TestR19RangeLostAfterTheOfferIsNoCopy(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, b *both){
		"nothing": func(*testing.T, *both) {},
		"rows": func(t *testing.T, b *both) {
			stamptest.Submit(t, b.stamps["north"], table, stamptest.Compared{As: 5})
			b.compare(t, b.north, "north")
		},
		"all": func(t *testing.T, b *both) {
			b.setBack(t, "north", "acct", change.Gate{})
			b.compare(t, b.north, "north")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoth(t)
			b.shipped(t, "acct")
			taken := b.offered(t, "acct")
			lose(t, b)
			for range 2 {
				err := b.north.Adopt(t.Context(), rejoin.Taken{Account: taken, Opened: true})
				if name == "nothing" {
					require.NoError(t, err)
					b.requireGates(t, "north", "acct", change.Gate{Epoch: taken.GeoEpoch(), Role: change.RoleSecondary, Open: true})
					continue
				}
				require.ErrorIs(t, err, rejoin.ErrDiverged)
				require.False(t, b.stamps["north"].Leader(geo.FirstRange(geo.Catalog)).Machine.Gate("acct").Open)
			}
		})
	}
}

// A recovery before the offer is found by the offer, which compares all heads: the move that follows loses nothing.
//
// Capability: Failover: Failovers beside recoveries with loss, and lost locations (R4, R19).
func TestR19RangeLostBeforeTheOfferIsCompared(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.shipped(t, "acct")
	_, err := b.north.Mover().Move(t.Context(), "acct", planned.MoveWithinMax)
	require.NoError(t, err)
	stamptest.Submit(t, b.stamps["north"], table, stamptest.Compared{As: 5})
	b.compare(t, b.north, "north")
	a, err := b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Positive(t, a.Operation.Again)
	b.cut = true
	for range 6 {
		b.acknowledged(t)
		_, _ = b.north.Resume(t.Context())
	}
	a, err = b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.True(t, a.Offered())
	taken := *a
	taken.Primary, taken.Secondary, taken.Epoch, taken.Turn = "south", "north", a.Operation.Move.Claim, 0
	taken.Operation = &catalog.Operation{Kind: catalog.OperationTaken}
	require.NoError(t, b.north.Adopt(t.Context(), rejoin.Taken{Account: taken}))
}

// beforeAgain is a stamp that does something before the first catalog command that begins an operation again.
type beforeAgain struct {
	*stamp.Stamp
	do func()
}

func (s *beforeAgain) Submit(ctx context.Context, r geo.RangeID, cmd ranges.Command) error {
	if p, ok := cmd.(ranges.Portable); ok && p.Kind() == "directory.again" && s.do != nil {
		do := s.do
		s.do = nil
		do()
	}
	return s.Stamp.Submit(ctx, r, cmd)
}

// R4, R19: the account goes to the other location while the gates of a recovered range are compared. The range is compared
// again, as one of the secondary: it has lost what the new primary has.
//
// Capability: Failover: Failovers beside recoveries with loss, and lost locations (R4, R19).
func TestR19AccountTakenWhileARangeIsCompared(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.shipped(t, "acct")
	taken := b.offered(t, "acct")
	stamptest.Submit(t, b.stamps["north"], table, stamptest.Compared{As: 5})
	racing := &beforeAgain{Stamp: b.stamps["north"], do: func() {
		require.Error(t, b.north.Adopt(t.Context(), rejoin.Taken{Account: taken}), "the table range is not compared")
	}}
	north := directory.NewDirectory(racing, "south")
	north.SetPeer(linked{b.pair, b.south})
	require.Error(t, north.Rejoiner().Compare(t.Context(), b.stamps["north"].Leader(table)))
	machine := b.stamps["north"].Leader(table).Machine
	require.True(t, machine.Uncompared())
	b.compare(t, b.north, "north")
	require.NoError(t, b.north.Adopt(t.Context(), rejoin.Taken{Account: taken}))
	require.Len(t, machine.Stops(), geo.LaneCount)
}

// R16, R19: a range of a secondary is recovered to an epoch in which it was a secondary, too, before two failovers. The
// streams of the present epoch begin with what both locations had, so an empty copy would look whole to them: they are stopped
// as lost.
func TestR19CopyOfAnEarlierEpochIsLost(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	first := b.shipped(t, "acct1")
	back := *first
	back.Epoch, back.LastFailover = first.Epoch+2, first.Created+2
	back.Operation = &catalog.Operation{Kind: catalog.OperationTaken, After: back.LastFailover}
	require.NoError(t, b.south.Adopt(t.Context(), rejoin.Taken{Account: back}))
	b.copyAt(t, "south", "acct1")
	b.setBack(t, "south", "acct1", change.Gate{Epoch: first.GeoEpoch(), Role: change.RoleSecondary, Open: true})
	b.compare(t, b.south, "south")
	machine := b.stamps["south"].Leader(table).Machine
	require.Equal(t, change.Gate{Epoch: back.GeoEpoch(), Role: change.RoleSecondary, Open: true}, machine.Gate("acct1"))
	require.Len(t, machine.Stops(), geo.LaneCount)
	for st, why := range machine.Stops() {
		require.Equal(t, back.GeoEpoch(), st.Epoch)
		require.Equal(t, change.StopLost, why.Reason)
	}
}

// R19, R20: the former primary's location was made again from nothing. It follows as one that has diverged, so that an
// operator can have the copy made there.
func TestR20FormerPrimaryThatIsEmptyFollows(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	a.cut = true
	_, err := a.pair.south.Promoter().Promote(t.Context(), "acct")
	require.NoError(t, err)
	_ = a.resumed(t, 6)
	require.Equal(t, geo.Location("south"), a.at(t).Primary)
	a.cut = false
	a.north = directory.NewDirectory(stamptest.New(t, "north", every...), "south")
	a.north.SetPeer(linked{a.pair, a.pair.south})
	a.pair.south.SetPeer(linked{a.pair, a.north})
	require.ErrorIs(t, a.resumed(t, 2), rejoin.ErrDiverged)
	require.True(t, a.at(t).Operation.Diverged)
	_, _, err = a.pair.south.Rebuild(t.Context(), "acct", nil)
	require.NoError(t, err)
	require.True(t, a.at(t).Copying())
	there, err := a.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Equal(t, a.at(t).GeoEpoch(), there.GeoEpoch())
}

// R19, R21: where the other location is lost for good after an offer, the account takes writes again by the word of an operator.
// If that was false, what was written since diverges, and is found as such.
func TestR19OfferEndsByAnOperatorsWord(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]bool{"true": false, "false": true} {
		t.Run(name, func(t *testing.T) {
			b := newBoth(t)
			b.north.NeverWait()
			b.shipped(t, "acct")
			_, err := b.north.Mover().EndMoveAlone(t.Context(), "acct")
			requireCode(t, storageerr.InvalidInput, err)
			taken := b.offered(t, "acct")
			_, err = b.south.Mover().EndMoveAlone(t.Context(), "acct")
			requireCode(t, storageerr.InvalidInput, err)
			b.cut = true
			ended, err := b.north.Mover().EndMoveAlone(t.Context(), "acct")
			require.NoError(t, err)
			require.Equal(t, catalog.MoveEnding, ended.Operation.Move.Phase)
			_, err = b.north.Resume(t.Context())
			require.NoError(t, err)
			a, err := b.north.Account(t.Context(), "acct")
			require.NoError(t, err)
			require.Nil(t, a.Operation)
			b.requireGates(t, "north", "acct", change.Gate{Epoch: a.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true, Turn: 2})
			b.cut = false

			b.acknowledged(t)
			if written {
				stamptest.Submit(t, b.stamps["north"], table, insert{"acct"})
			}
			err = b.north.Adopt(t.Context(), rejoin.Taken{Account: taken})
			if written {
				require.ErrorIs(t, err, rejoin.ErrDiverged)
				return
			}
			require.NoError(t, err)
		})
	}
}

// R18, R19: a stream that fell out of the outbox's budget has left the outbox, and the other location does not have it: it is
// not drained, so the account is not offered, and stays where it is.
func TestR19StoppedStreamIsNotDrained(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	_, err := b.north.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	b.ship(t, "acct")
	a, err := b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	stamptest.Submit(t, b.stamps["north"], table, insert{"acct"})
	b.acknowledged(t)
	heads, _ := b.stamps["north"].Leader(table).Machine.Heads()
	stopped := 0
	for st := range heads {
		if st.Account == "acct" && st.Epoch == a.GeoEpoch() {
			stopped++
			stamptest.Submit(t, b.stamps["north"], table, does(func(tx *ranges.Tx) error {
				tx.Stop(st, change.Stop{Reason: change.StopBudget, Here: tx.Head(st)})
				return nil
			}))
		}
	}
	require.Equal(t, 1, stopped)
	now := clock.NewManual(time.Now())
	b.north.SetPace(now, 0)
	_, err = b.north.Mover().Move(t.Context(), "acct", planned.MoveWithin)
	require.NoError(t, err)
	for range 8 {
		b.ship(t, "acct")
		_, err = b.north.Resume(t.Context())
		require.NoError(t, err)
		a, err = b.north.Account(t.Context(), "acct")
		require.NoError(t, err)
		require.False(t, a.Offered())
	}
	now.Advance(time.Hour)
	for range 3 {
		_, err = b.north.Resume(t.Context())
		require.NoError(t, err)
	}
	a, err = b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Nil(t, a.Operation)
	require.Equal(t, geo.Location("north"), a.Primary)
}

// R16, R20: where the copy was stopped as lost before the failover, equal heads say nothing: the former primary has more.
func TestR20StoppedCopyIsNotEqual(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	lost := evaluated(func(tx *ranges.Tx) error {
		st := geo.Stream{Account: "acct", Epoch: a.at(t).GeoEpoch(), Range: tx.Range(), Lane: 3}
		tx.Stop(st, change.Stop{Reason: change.StopLost, Here: tx.Cursor(st).Applied})
		return nil
	})
	require.NoError(t, a.stamps["south"].Submit(t.Context(), table, lost))
	_, err := a.pair.south.Promoter().Promote(t.Context(), "acct")
	require.NoError(t, err)
	require.ErrorIs(t, a.resumed(t, 6), rejoin.ErrDiverged)
	require.Equal(t, geo.Location("south"), a.at(t).Primary)
	require.True(t, a.at(t).Operation.Diverged)
	require.False(t, a.stamps["north"].Leader(table).Machine.Gate("acct").Open)
}

// R4, R20: a range that was recovered with loss, and whose gates are not compared since, freezes nothing: it may show a copy
// that is deleted. The promotion waits.
func TestR20UncomparedRangeIsNotFrozen(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	_, err := a.pair.south.Promoter().Promote(t.Context(), "acct")
	require.NoError(t, err)
	stamptest.Submit(t, a.stamps["south"], table, stamptest.Compared{As: 5})
	require.ErrorIs(t, a.resumed(t, 6), kv.ErrBusy)
	require.Equal(t, geo.Location("north"), a.at(t).Primary)
	a.compare(t, a.pair.south, "south")
	require.NoError(t, a.resumed(t, 6))
	require.Equal(t, geo.Location("south"), a.at(t).Primary)
}
