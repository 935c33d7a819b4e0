package directory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/directory/record"
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
)

// apart is an account of the north that is copied to the south, whose directory has a clock of the test.
type apart struct {
	*both
	name  geo.Account
	clock *clock.Manual
	// fails has the next commit at the south with a count of zero fail; below zero none does.
	south *failing
}

// failing is a stamp that fails a commit.
type failing struct {
	*stamp.Stamp
	// in is how many commits succeed before one fails; done has it fail after it was committed.
	in   int
	done bool
}

func (f *failing) Submit(ctx context.Context, r geo.RangeID, cmd ranges.Command) error {
	f.in--
	if f.in == -1 && !f.done {
		return kv.ErrBusy
	}
	err := f.Stamp.Submit(ctx, r, cmd)
	if f.in == -1 && err == nil {
		return kv.ErrUnknown
	}
	return err
}

func newApart(t *testing.T) *apart { return newApartOf(t, newBoth(t), "acct") }

// newApartOf is newApart with an account of its own in stamps that several share.
func newApartOf(t *testing.T, b *both, name geo.Account) *apart {
	b.cut = false
	a := &apart{both: b, name: name, clock: clock.NewManual(time.Now()), south: &failing{Stamp: b.stamps["south"], in: -2}}
	_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: name, Redundancy: catalog.RAGRS})
	require.NoError(t, err)
	a.restart()
	a.arrive(t)
	return a
}

// restart has a new process go on at the south.
func (a *apart) restart() {
	a.pair.south = directory.NewDirectory(a.south, "north")
	a.pair.south.SetPace(a.clock, 0)
	a.pair.south.NeverWait()
	a.pair.south.SetImages(&images{next: func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Held: true} }})
	a.pair.south.SetPeer(linked{a.pair, a.north})
	a.north.SetPeer(linked{a.pair, a.pair.south})
}

// arrive has what the north has numbered of the account in its catalog arrive at the south.
func (a *apart) arrive(t *testing.T) {
	t.Helper()
	of, err := a.north.Account(t.Context(), a.name)
	require.NoError(t, err)
	id := geo.FirstRange(geo.Catalog)
	st := geo.Stream{Account: a.name, Epoch: of.GeoEpoch(), Range: id, Lane: catalog.AccountPartition(a.name).Lane()}
	records, err := a.stamps["north"].Leader(id).Machine.Outbox(st, 1, 1<<20)
	require.NoError(t, err)
	require.NotEmpty(t, records)
	for _, b := range records {
		rec, err := change.ParseRecord(b)
		require.NoError(t, err)
		require.NoError(t, a.stamps["south"].Submit(t.Context(), id, evaluated(func(tx *ranges.Tx) error { return tx.Received(b, &rec, true) })))
	}
}

// evaluated is a command made of one function.
type evaluated func(tx *ranges.Tx) error

func (c evaluated) Evaluate(tx *ranges.Tx) error { return c(tx) }

// resumed goes on with the operations of the south, steps times, a second apart.
func (a *apart) resumed(t *testing.T, steps int) (err error) {
	t.Helper()
	for range steps {
		_, err = a.pair.south.Resume(t.Context())
		a.clock.Advance(time.Second)
	}
	return err
}

func (a *apart) at(t *testing.T) *catalog.Account {
	t.Helper()
	of, err := a.pair.south.Account(t.Context(), a.name)
	require.NoError(t, err)
	return of
}

func frozenGate(turn uint32) change.Gate {
	return change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RoleSecondary, Open: turn%2 == 0, Turn: turn}
}

// R20: a promotion commits once, at the secondary alone: the primary is not asked. Then all ranges have the gates of the
// new epoch, and the operation waits for the former primary.
func TestR20PromotionAsksNobody(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	a.cut = true
	before, err := a.pair.south.Promoter().Promote(t.Context(), "acct")
	require.NoError(t, err)
	require.Equal(t, geo.Location("north"), before.Primary)
	_, err = a.pair.south.Promoter().Promote(t.Context(), "acct")
	requireCode(t, storageerr.OperationInProgress, err)
	require.ErrorIs(t, a.resumed(t, 6), errLink)
	of := a.at(t)
	require.Equal(t, geo.Epoch{Number: 2, Location: "south"}, of.GeoEpoch())
	require.Equal(t, geo.Location("north"), of.Secondary)
	require.Equal(t, catalog.RAGRS, of.Redundancy)
	require.NotZero(t, of.LastFailover)
	require.True(t, of.Unsure())
	a.requireGates(t, "south", "acct", change.Gate{Epoch: of.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true})
	_, err = a.pair.south.Promoter().Promote(t.Context(), "acct")
	requireCode(t, storageerr.InvalidInput, err)
	p, err := a.pair.south.Promoter().Promotion(t.Context(), "acct")
	require.NoError(t, err)
	require.Nil(t, p)
	ok, err := a.pair.south.Promoter().EndPromotion(t.Context(), "acct")
	require.NoError(t, err)
	require.False(t, ok, "it is committed")
}

// R20: what has arrived and waits for the clock is waited for, however long the cursors rest, but no longer than a
// promotion waits for anything that is here.
func TestR20PromotionWaitsForWhatIsHeldBack(t *testing.T) {
	t.Parallel()
	for name, seconds := range map[string]int{"for a while": 5, "for ever": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApart(t)
			a.cut = true
			a.pair.south.Promoter().SetHeldBack(func(of *catalog.Account) bool {
				require.Equal(t, a.name, of.Name)
				seconds--
				return seconds > 0
			})
			_, err := a.pair.south.Promoter().Promote(t.Context(), "acct")
			require.NoError(t, err)
			applying := 0
			for ; applying < 20; applying++ {
				p, err := a.pair.south.Promoter().Promotion(t.Context(), "acct")
				require.NoError(t, err)
				if p == nil || p.Phase != catalog.PromotionApplying {
					break
				}
				_ = a.resumed(t, 1)
			}
			require.Equal(t, map[string]int{"for a while": 5, "for ever": 11}[name], applying)
		})
	}
}

func requireCode(t *testing.T, want storageerr.Row, err error) {
	t.Helper()
	row, ours := storageerr.Of(err)
	require.True(t, ours, "%v", err)
	require.Equal(t, want.Code, row.Code, "%v", err)
}

// R20: a promotion that a commit of the south fails at, or whose process ends there, goes on where it was: at each of its
// steps, whether the commit took effect or not.
func TestR20PromotionGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	for _, done := range []bool{false, true} {
		steps := 0
		for ; ; steps++ {
			require.Less(t, steps, 40)
			a := newApartOf(t, b, geo.Account(fmt.Sprintf("acct%d%t", steps, done)))
			a.cut = true
			_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
			require.NoError(t, err)
			a.south.in, a.south.done = steps, done
			for range 8 {
				if _, err := a.pair.south.Resume(t.Context()); err != nil && !errors.Is(err, errLink) {
					a.restart()
				}
				a.clock.Advance(time.Second)
			}
			of := a.at(t)
			require.Equal(t, geo.Epoch{Number: 2, Location: "south"}, of.GeoEpoch(), "step %d", steps)
			a.requireGates(t, "south", a.name, change.Gate{Epoch: of.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true})
			passed := a.south.in >= 0
			endPromoted(t, a)
			if passed {
				break
			}
		}
		require.Greater(t, steps, 10)
	}
}

// endPromoted has the operation of a promoted account end, so that nothing goes on with it.
func endPromoted(t *testing.T, a *apart) {
	t.Helper()
	a.cut, a.south.in = false, -2
	require.NoError(t, a.resumed(t, 2))
	require.Nil(t, a.at(t).Operation)
}

// R20: a promotion that is ended before its commit, or whose time is over, opens what it has frozen. What was late of it
// has no effect, and the next one is a new one.
func TestR20PromotionThaws(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, a *apart){
		"ended": func(t *testing.T, a *apart) {
			ok, err := a.pair.south.Promoter().EndPromotion(t.Context(), "acct")
			require.NoError(t, err)
			require.True(t, ok)
		},
		"late": func(_ *testing.T, a *apart) { a.clock.Advance(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newApart(t)
			_, err := a.pair.south.Promoter().Promote(t.Context(), "acct")
			require.NoError(t, err)
			require.NoError(t, a.resumed(t, 2))
			a.south.in = 4 // The four ranges; then the commit fails.
			require.Error(t, a.resumed(t, 1))
			a.requireGates(t, "south", "acct", frozenGate(1))
			end(t, a)
			require.NoError(t, a.resumed(t, 2))
			a.requireGates(t, "south", "acct", frozenGate(2))
			require.Equal(t, geo.Epoch{Number: 1, Location: "north"}, a.at(t).GeoEpoch())
			p, err := a.pair.south.Promoter().Promotion(t.Context(), "acct")
			require.NoError(t, err)
			require.Nil(t, p)
			late, err := directory.Commands()["directory.freeze"]([]byte(`{"account":"acct","epoch":{"Number":1,"Location":"north"},"turn":1}`))
			require.NoError(t, err)
			for _, s := range every {
				require.NoError(t, a.stamps["south"].Submit(t.Context(), geo.FirstRange(s), late))
			}
			a.requireGates(t, "south", "acct", frozenGate(2))

			a.clock = clock.NewManual(time.Now())
			a.restart()
			_, err = a.pair.south.Promoter().Promote(t.Context(), "acct")
			require.NoError(t, err)
			_ = a.resumed(t, 6)
			require.Equal(t, geo.Epoch{Number: 2, Location: "south"}, a.at(t).GeoEpoch())
		})
	}
}

// R20: while a promotion is under way nothing that the primary asks for replaces the record: no deletion or new copy, and
// no planned move.
func TestR20PromotionExcludesThePrimary(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	_, err := a.pair.south.Promoter().Promote(t.Context(), "acct")
	require.NoError(t, err)
	of := *a.at(t)
	of.Epoch = 7
	of.Operation = &catalog.Operation{Kind: catalog.OperationBootstrap}
	requireCode(t, storageerr.ServerBusy, a.pair.south.Prepare(t.Context(), of))
	of.SetRedundancy(catalog.LRS, "south")
	of.Operation = &catalog.Operation{Kind: catalog.OperationLeave}
	requireCode(t, storageerr.ServerBusy, a.pair.south.Announce(t.Context(), of))
	_, err = a.pair.south.Offer(t.Context(), planned.Offer{Account: *a.at(t)})
	requireCode(t, storageerr.ServerBusy, err)
	_ = a.resumed(t, 6)
	require.Equal(t, geo.Epoch{Number: 2, Location: "south"}, a.at(t).GeoEpoch())
}

// R20: a copy that is being made, or of which a range was deleted, is not promoted.
func TestR20UnwholeCopyIsNotPromoted(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	of := *a.at(t)
	of.Epoch = 2
	of.Operation = &catalog.Operation{Kind: catalog.OperationBootstrap}
	require.NoError(t, a.pair.south.Prepare(t.Context(), of))
	_, err := a.pair.south.Promoter().Promote(t.Context(), "acct")
	requireCode(t, storageerr.OperationInProgress, err)

	a = newApart(t)
	_, err = a.pair.south.Promoter().Promote(t.Context(), "acct")
	require.NoError(t, err)
	closed := evaluated(func(tx *ranges.Tx) error {
		g := tx.Gate("acct")
		g.Open = false
		tx.SetGate("acct", g)
		return nil
	})
	require.NoError(t, a.stamps["south"].Submit(t.Context(), geo.FirstRange(geo.Queue), closed))
	require.NoError(t, a.resumed(t, 4))
	require.Equal(t, geo.Epoch{Number: 1, Location: "north"}, a.at(t).GeoEpoch())
	g := a.stamps["south"].Leader(geo.FirstRange(geo.Queue)).Machine.Gate("acct")
	require.False(t, g.Open, "what was closed for another reason stays closed")
}

// R22: a former primary that has exactly what the south had is its secondary at once. One that has more opens no gate of rows
// before it was rewound: a south of a former version, which does not rewind the catalog, has to make its copy again. That may
// be done instead in any case.
func TestR22FormerPrimaryIsCompared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		there    evaluated
		diverged bool
	}{
		"equal": {evaluated(func(*ranges.Tx) error { return nil }), false},
		"more": {evaluated(func(tx *ranges.Tx) error {
			p := catalog.AccountPartition("acct")
			return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("more"), Value: []byte("v")}}})
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApart(t)
			_, err := a.pair.south.Promoter().Promote(t.Context(), "acct")
			require.NoError(t, err)
			require.NoError(t, a.stamps["north"].Submit(t.Context(), geo.FirstRange(geo.Catalog), c.there))
			err = a.resumed(t, 6)
			of := a.at(t)
			require.Equal(t, geo.Location("south"), of.Primary)
			there, errThere := a.north.Account(t.Context(), "acct")
			require.NoError(t, errThere)
			require.Equal(t, of.GeoEpoch(), there.GeoEpoch())
			if !c.diverged {
				require.NoError(t, err)
				require.Nil(t, of.Operation)
				a.requireGates(t, "north", "acct", change.Gate{Epoch: of.GeoEpoch(), Role: change.RoleSecondary, Open: true})
				return
			}
			require.ErrorIs(t, err, kv.ErrBusy, "its record says nothing of it yet")
			require.True(t, of.Operation.Rewinding)
			require.False(t, of.Operation.Joined)
			require.True(t, a.stamps["north"].Leader(geo.FirstRange(geo.Catalog)).Machine.Gate("acct").Open)
			for _, s := range geo.Services {
				require.False(t, a.stamps["north"].Leader(geo.FirstRange(s)).Machine.Gate("acct").Open, s)
			}
			former := rejoin.Taken{Account: *of, Opened: true, Forks: a.forks(t)}
			require.ErrorIs(t, a.north.Adopt(t.Context(), former), rejoin.ErrDiverged)
			_, _, err = a.pair.south.Update(t.Context(), "acct", catalog.LRS, nil)
			requireCode(t, storageerr.OperationInProgress, err)
			_, _, err = a.pair.south.Rebuild(t.Context(), "acct", nil)
			require.NoError(t, err)
			require.True(t, a.at(t).Copying(), "the copy begins empty")
		})
	}
}

// R19, R20: a former primary that has begun a later epoch of its own meanwhile does not keep the account: the south goes on
// above that epoch.
func TestR20EpochIsRaisedAboveTheFormerPrimarys(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	a.cut = true
	_, err := a.pair.south.Promoter().Promote(t.Context(), "acct")
	require.NoError(t, err)
	for range 4 {
		_, _, err := a.north.Rebuild(t.Context(), "acct", nil)
		require.NoError(t, err)
	}
	_ = a.resumed(t, 5)
	require.Equal(t, geo.EpochNumber(2), a.at(t).Epoch)
	a.cut = false
	err = a.resumed(t, 3)
	require.ErrorIs(t, err, rejoin.ErrDiverged)
	require.Equal(t, geo.Epoch{Number: 6, Location: "south"}, a.at(t).GeoEpoch())
	there, err := a.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Equal(t, geo.Epoch{Number: 6, Location: "south"}, there.GeoEpoch())
}

// R20: an Adopt that is late, since this location was promoted out of its epoch meanwhile, does not name the epoch of that:
// the caller, which knows nothing of it yet, would go on above it.
func TestR20EpochIsNotRaisedAboveAPromotion(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	_, err := a.pair.south.Promoter().Promote(t.Context(), "acct")
	require.NoError(t, err)
	for range 20 {
		_ = a.resumed(t, 1)
		if there, err := a.north.Account(t.Context(), "acct"); err == nil && there.Primary == "south" {
			break
		}
	}
	taken := *a.at(t)
	taken.Operation = &catalog.Operation{Kind: catalog.OperationTaken, Unplanned: true}
	forks, err := a.pair.south.Promoter().Losses(t.Context(), "acct")
	require.NoError(t, err)

	a.cut = true
	north := directory.NewDirectory(a.stamps["north"], "south")
	north.SetPace(a.clock, 0)
	north.SetPeer(linked{a.pair, a.pair.south})
	_, err = north.Promoter().Promote(t.Context(), "acct")
	require.NoError(t, err)
	for range 8 {
		_, _ = north.Resume(t.Context())
		a.clock.Advance(time.Second)
	}
	there, err := north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Equal(t, geo.Epoch{Number: 3, Location: "north"}, there.GeoEpoch())

	requireCode(t, storageerr.ServerBusy, a.north.Adopt(t.Context(), rejoin.Taken{Account: taken, Opened: true, Forks: forks}))
	var passed *record.PassedError
	older := taken
	older.Epoch, older.Primary, older.Secondary = 1, "south", "north"
	require.NotErrorAs(t, a.north.Adopt(t.Context(), rejoin.Taken{Account: older, Opened: true}), &passed)
}

// R2: where nobody knows whether a promotion was ended, it is not said to be.
func TestR2EndOfAPromotionInDoubt(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	_, err := a.pair.south.Promoter().Promote(t.Context(), "acct")
	require.NoError(t, err)
	a.south.in, a.south.done = 0, true
	ok, err := a.pair.south.Promoter().EndPromotion(t.Context(), "acct")
	require.ErrorIs(t, err, kv.ErrUnknown)
	require.False(t, ok)
}
