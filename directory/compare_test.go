package directory_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

var table = geo.FirstRange(geo.Table)

// setBack makes the table range of a location one that was recovered with loss: an account has the gate that it had
// before, and the gates are not compared.
func (b *both) setBack(t *testing.T, l geo.Location, name geo.Account, former change.Gate) {
	t.Helper()
	stamptest.Submit(t, b.stamps[l], table, stamptest.Gate{Account: name, Gate: former})
	stamptest.Submit(t, b.stamps[l], table, stamptest.Compared{As: 5})
}

// compare compares the table range of a location, twice, and requires that it takes changes again.
func (b *both) compare(t *testing.T, d *directory.Directory, l geo.Location) {
	t.Helper()
	for range 2 {
		require.NoError(t, d.Rejoiner().Compare(t.Context(), b.stamps[l].Leader(table)))
		require.False(t, b.stamps[l].Leader(table).Machine.Uncompared())
	}
}

// shipped creates an RA-GRS account of the north, which both locations know.
func (b *both) shipped(t *testing.T, name geo.Account) *catalog.Account {
	t.Helper()
	a, err := b.north.Create(t.Context(), name, nil, nil)
	require.NoError(t, err)
	b.arriveAt(t, "south", a)
	return a
}

// R7, R10: where a recovery has lost the gate under which an account is shipped, the range gets it again, and the copy is
// made again in the same epoch: what the range has may be none of the copy. The range commits above the record that says
// so (R13). Before, it takes no gate of an operation. Where no gate is lost nothing begins.
//
// Capability: Two locations: LRS, GRS and RA-GRS accounts.
// Capability: Proofs: Redundancy across recoveries with loss (R7, R10, R17, R19).
func TestR10LostGateIsSetAgain(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.north.SetImages(&images{next: func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Held: true} }})
	b.north.NeverWait()
	lost, kept := b.shipped(t, "lost"), b.shipped(t, "kept")
	shipped := change.Gate{Epoch: lost.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true}
	for name, former := range map[string]change.Gate{
		"of a former epoch": {Role: change.RolePrimary, Open: true, Numbered: true}, "without numbers": {Epoch: lost.GeoEpoch(), Role: change.RolePrimary, Open: true},
	} {
		b.setBack(t, "north", "lost", former)
		before, err := b.north.Account(t.Context(), "lost")
		require.NoError(t, err)
		require.Error(t, b.stamps["north"].Submit(t.Context(), table, insert{"lost"}), name)
		if before.Operation != nil {
			_, err = b.north.Resume(t.Context())
			require.ErrorIs(t, err, kv.ErrBusy)
			require.Equal(t, former, b.stamps["north"].Leader(table).Machine.Gate("lost"), name)
		}
		b.compare(t, b.north, "north")
		b.requireGates(t, "north", "lost", shipped)
		stamptest.Submit(t, b.stamps["north"], table, insert{"lost"})

		a, err := b.north.Account(t.Context(), "lost")
		require.NoError(t, err)
		require.True(t, a.Copying(), name)
		require.Equal(t, lost.GeoEpoch(), a.GeoEpoch(), name)
		if before.Operation != nil {
			require.Greater(t, a.Operation.Again, before.Operation.Again, "another one for what was under way")
		}
		var at geo.Timestamp
		stamptest.Submit(t, b.stamps["north"], table, does(func(tx *ranges.Tx) error {
			at = tx.Timestamp(0)
			return nil
		}))
		require.Greater(t, at, a.Operation.After, name)
	}
	a, err := b.north.Account(t.Context(), "kept")
	require.NoError(t, err)
	require.Nil(t, a.Operation)
	b.requireGates(t, "north", "kept", change.Gate{Epoch: kept.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true})
}

// R10: of an account that has become LRS the range drops what came back of its former streams: nobody acknowledges it.
//
// Capability: Two locations: LRS, GRS and RA-GRS accounts.
// Capability: Proofs: Redundancy across recoveries with loss (R7, R10, R17, R19).
func TestR10LostGateOfALRSAccount(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	first := b.shipped(t, "acct1")
	left, behind, err := b.north.Update(t.Context(), "acct1", catalog.LRS, nil)
	require.NoError(t, err)
	require.NoError(t, behind)
	former := change.Gate{Epoch: first.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true}
	stamptest.Submit(t, b.stamps["north"], table, stamptest.Gate{Account: "acct1", Gate: former})
	stamptest.Submit(t, b.stamps["north"], table, insert{"acct1"})
	b.setBack(t, "north", "acct1", former)
	require.NotZero(t, b.outboxOf(t, "north", "acct1"))
	b.compare(t, b.north, "north")
	require.Zero(t, b.outboxOf(t, "north", "acct1"))
	b.requireGates(t, "north", "acct1", change.Gate{Epoch: left.GeoEpoch(), Role: change.RolePrimary, Open: true})
	a, err := b.north.Account(t.Context(), "acct1")
	require.NoError(t, err)
	require.Nil(t, a.Operation)
}

// R19: what a recovery brings back of a copy that was deleted, or that began again, is deleted again, and the gate is
// that of the copy's epoch. A copy whose gate is not lost stays.
// It holds R7.
//
// Capability: Proofs: Redundancy across recoveries with loss (R7, R10, R17, R19).
func TestR19RevivedCopyIsDeleted(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.north.NeverWait()
	b.north.SetImages(&images{next: func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Held: true} }})
	former := b.shipped(t, "acct1").GeoEpoch()
	left, _, err := b.north.Update(t.Context(), "acct1", catalog.LRS, nil)
	require.NoError(t, err)
	again := func(want change.Gate) {
		b.copyAt(t, "south", "acct1")
		b.setBack(t, "south", "acct1", change.Gate{Epoch: former, Role: change.RoleSecondary, Open: true})
		b.compare(t, b.south, "south")
		require.Equal(t, want, b.stamps["south"].Leader(table).Machine.Gate("acct1"))
		require.Len(t, b.rowsOf(t, "south", "acct1"), copied-1, "those of the other ranges stay")
		for _, s := range every {
			stamptest.Submit(t, b.stamps["south"], geo.FirstRange(s), stamptest.Gate{Account: "acct1", Gate: want})
		}
	}
	again(change.Gate{Epoch: left.GeoEpoch()})

	begun, _, err := b.north.Update(t.Context(), "acct1", catalog.RAGRS, nil)
	require.NoError(t, err)
	require.True(t, begun.Copying())
	again(change.Gate{Epoch: begun.GeoEpoch(), Role: change.RoleSecondary, Open: true})

	stamptest.Submit(t, b.stamps["south"], table, stamptest.Compared{As: 5})
	b.compare(t, b.south, "south")
	require.Len(t, b.rowsOf(t, "south", "acct1"), copied-1, "its gate was not lost")
}

// R17: a pass over the images of a bootstrap does not end it, if a range that it has seen done was recovered
// with loss meanwhile: the image there is made again.
// It holds R7.
func TestR17RecoveryVoidsAPass(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.north.NeverWait()
	_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: catalog.LRS})
	require.NoError(t, err)
	whole := ranges.ImageStep{Image: change.Image{Done: make([]geo.Seq, geo.LaneCount)}, Applied: true}
	recovered := false
	b.north.SetImages(&images{next: func(s geo.Service, _ int) ranges.ImageStep {
		if s == geo.Queue && !recovered { // The last one; the table's is done.
			recovered = true
			b.setBack(t, "north", "acct", change.Gate{})
			b.compare(t, b.north, "north")
		}
		return whole
	}})
	_, behind := update(t, b.north, "acct", catalog.GRS)
	require.True(t, recovered)
	require.Error(t, behind)
	a, err := b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.True(t, a.Copying(), "the pass did not end it")
	require.False(t, a.Operation.Imaged)

	goesOn := func() bool {
		again, err := b.north.Resume(t.Context())
		require.NoError(t, err)
		return again > 0
	}
	require.True(t, goesOn())
	a, err = b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.True(t, a.Operation.Imaged)
	b.setBack(t, "north", "acct", change.Gate{})
	b.compare(t, b.north, "north")
	a, err = b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.False(t, a.Operation.Imaged, "an image is made again")
	require.True(t, goesOn())
	require.False(t, goesOn())
	a, err = b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Nil(t, a.Operation)
	require.Equal(t, change.Gate{Epoch: a.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true},
		b.stamps["north"].Leader(table).Machine.Gate("acct"))
}

// The command that begins an operation again travels between nodes with its result.
func TestAgainTravels(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	a := b.shipped(t, "acct")
	decode := directory.Commands()["directory.again"]
	cmd, err := decode([]byte(`{"Account":"acct","Epoch":{"Number":1,"Location":"north"},"Lost":true,"Rate":7}`))
	require.NoError(t, err)
	require.NoError(t, b.stamps["north"].Submit(t.Context(), geo.FirstRange(geo.Catalog), cmd))
	a, err = b.north.Account(t.Context(), a.Name)
	require.NoError(t, err)
	require.EqualValues(t, 7, a.Operation.Rate)
	other, err := decode(cmd.Encode())
	require.NoError(t, err)
	require.NoError(t, other.DecodeResult(cmd.EncodeResult()))
	require.Equal(t, cmd, other)
	for _, bad := range []string{"", "{", `{"Account":"!"}`} {
		_, err := decode([]byte(bad))
		require.Error(t, err, "%q", bad)
	}
}

// alone is a stamp one range of which takes nothing: its other replicas are away.
type alone struct {
	*stamp.Stamp
	id geo.RangeID
}

func (a alone) Submit(ctx context.Context, r geo.RangeID, cmd ranges.Command) error {
	if r == a.id {
		return kv.ErrBusy
	}
	return a.Stamp.Submit(ctx, r, cmd)
}

// R2, R7: while a range takes nothing, as before the second replica is back, no attempt to compare it changes the catalog,
// and the probe finds that the range takes no writes.
//
// Capability: Proofs: Redundancy across recoveries with loss (R7, R10, R17, R19).
func TestR7ComparisonWaitsForItsRange(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.shipped(t, "acct")
	b.setBack(t, "north", "acct", change.Gate{Role: change.RolePrimary})
	waits := directory.NewDirectory(alone{b.stamps["north"], table}, "south")
	for range 2 {
		require.ErrorIs(t, waits.Rejoiner().Compare(t.Context(), b.stamps["north"].Leader(table)), kv.ErrBusy)
	}
	a, err := b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Nil(t, a.Operation)
	require.ErrorIs(t, directory.Writable(t.Context(), b.stamps["north"], table), kv.ErrBusy)
	b.compare(t, b.north, "north")
	require.NoError(t, directory.Writable(t.Context(), b.stamps["north"], table))
}

// R16: the copy that such a bootstrap makes again may have what the primary has lost, so its forks may be settled
// meanwhile, however often it begins again: the bootstrap waits for them. Those of a copy that was not whole may not.
func TestR16ForksOfAWholeCopyMayBeSettled(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.north.NeverWait()
	b.north.SetImages(&images{next: func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Held: true} }})
	b.shipped(t, "acct")
	compared := func() *catalog.Account {
		b.setBack(t, "north", "acct", change.Gate{Role: change.RolePrimary})
		b.compare(t, b.north, "north")
		a, err := b.north.Account(t.Context(), "acct")
		require.NoError(t, err)
		require.True(t, a.Copying())
		return a
	}
	for range 2 {
		require.True(t, compared().MaySettle())
	}
	a, _, err := b.north.Rebuild(t.Context(), "acct", nil)
	require.NoError(t, err)
	require.True(t, a.Copying())
	require.False(t, a.MaySettle())
	require.False(t, compared().MaySettle())
}

// R8, R19: a range at the secondary that comes back with the gate of a creation of its own location, which never
// completed, gets the gate of the account that the other location has made of the name.
//
// Capability: Two locations: A name created at both locations is not burnt; its highest epoch outlives it (R8).
// Capability: Two locations: LRS, GRS and RA-GRS accounts.
func TestR8LostGateBehindACreation(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.cut = true
	_, err := b.south.Create(t.Context(), "acct", nil, nil)
	require.Error(t, err)
	b.cut = false
	a := b.shipped(t, "acct")
	former := geo.Epoch{Number: 1, Location: "south"}
	require.Positive(t, a.GeoEpoch().Compare(former))
	b.setBack(t, "south", "acct", change.Gate{Epoch: former, Role: change.RolePrimary, Open: true, Numbered: true})
	b.compare(t, b.south, "south")
	b.requireGates(t, "south", "acct", change.Gate{Epoch: a.GeoEpoch(), Role: change.RoleSecondary, Open: true})
}

// reserved is the other location, which does something more after a reservation.
type reserved struct {
	linked
	then func()
}

func (r reserved) Reserve(ctx context.Context, a catalog.Account) error {
	err := r.linked.Reserve(ctx, a)
	r.then()
	return err
}

// R7, R8: the gate of a creation that has not completed is not set by a comparison: the other location, whose reservation
// it replaces, may complete its own, whose records a higher gate would refuse for ever. The creation goes on in a later
// epoch, in which it sets all its gates.
//
// Capability: Two locations: A name created at both locations is not burnt; its highest epoch outlives it (R8).
func TestR8ComparisonSetsNoGateOfACreation(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.north.SetLife(time.Nanosecond)
	compared := func() {
		stamptest.Submit(t, b.stamps["north"], table, stamptest.Compared{As: 5})
		b.compare(t, b.north, "north")
	}
	b.south.SetPeer(reserved{linked{b.pair, b.north}, func() {
		b.cut = true
		_, err := b.north.Create(t.Context(), "acct", nil, nil)
		require.True(t, record.Passing(err), err)
		compared()
		b.cut = false
	}})
	a, err := b.south.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	require.Equal(t, change.Gate{Epoch: a.GeoEpoch(), Role: change.RoleSecondary, Open: true}, b.stamps["north"].Leader(table).Machine.Gate("acct"))

	b.cut = true
	_, err = b.north.Create(t.Context(), "other", nil, nil)
	require.True(t, record.Passing(err), err)
	compared()
	b.cut = false
	other := b.shipped(t, "other")
	require.EqualValues(t, 2, other.Epoch)
	b.requireGates(t, "north", "other", change.Gate{Epoch: other.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true})
}

// observed is a stamp that calls a function after each command.
type observed struct {
	*stamp.Stamp
	then func()
}

func (o observed) Submit(ctx context.Context, r geo.RangeID, cmd ranges.Command) error {
	err := o.Stamp.Submit(ctx, r, cmd)
	o.then()
	return err
}

// R13: of several accounts whose gates are lost, the copies of all begin again before the range gets the first gate. With
// that it promises a time for the streams of all of them, and of none may it cover what came back before the other location
// knows that its copy is not whole.
func TestR13CopiesBeginAgainBeforeTheRangePromisesATime(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	names := []geo.Account{"acct1", "acct2", "acct3"}
	for _, name := range names {
		b.shipped(t, name)
	}
	for _, name := range names {
		b.setBack(t, "north", name, change.Gate{Role: change.RolePrimary})
	}
	stamptest.Submit(t, b.stamps["north"], geo.FirstRange(geo.Catalog), does(func(tx *ranges.Tx) error {
		tx.ClosedAfter(geo.TimestampOf(time.Now().Add(time.Hour))) // The times of the range are not late by the machine's clock alone.
		return nil
	}))
	first := geo.Timestamp(0)
	d := directory.NewDirectory(observed{b.stamps["north"], func() {
		m := b.stamps["north"].Leader(table).Machine
		for _, name := range names {
			if first == 0 && m.Gate(name).Numbered {
				first = m.AppliedState().Last
			}
		}
	}}, "south")
	require.NoError(t, d.Rejoiner().Compare(t.Context(), b.stamps["north"].Leader(table)))
	for _, name := range names {
		a, err := b.north.Account(t.Context(), name)
		require.NoError(t, err)
		require.NotZero(t, a.Operation.After)
		require.Greater(t, first, a.Operation.After, "%s", name)
	}
}

// R13: what the outbox has of the epoch of the catalog stays where the range has the gate of a later one, which the catalog
// has lost: the other location may not know that epoch, and still counts what it has not acknowledged of the former one.
func TestR13EpochThatTheCatalogLostEndsNoStreams(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	a := b.shipped(t, "acct")
	stamptest.Submit(t, b.stamps["north"], table, insert{"acct"})
	later := change.Gate{Epoch: geo.Epoch{Number: a.Epoch + 1, Location: "north"}, Role: change.RolePrimary, Open: true}
	b.setBack(t, "north", "acct", later)
	before := b.outboxOf(t, "north", "acct")
	require.NotZero(t, before)
	b.compare(t, b.north, "north")
	require.Equal(t, before, b.outboxOf(t, "north", "acct"))
	require.Equal(t, later, b.stamps["north"].Leader(table).Machine.Gate("acct"))
	now, err := b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Nil(t, now.Operation)
}
