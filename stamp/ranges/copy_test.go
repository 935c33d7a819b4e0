package ranges_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// meanwhile reads a stamp, and does something after the read and before its end.
type meanwhile struct {
	ranges.Reader
	do func()
}

func (m meanwhile) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	return m.Reader.Read(ctx, r, func(s ranges.State) error {
		err := f(s)
		m.do()
		return err
	})
}

// R17: a read of a copy that ends in a range with the gate of a later epoch has no result, whatever it found, and neither
// has a snapshot; one that ends before has.
//
// Capability: Two locations: The copy of an account is made while clients write, from LRS, and again (R17).
func TestR17ReadOfAReplacedCopy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "south", geo.Table)
		id := geo.FirstRange(geo.Table)
		gate := func(n geo.EpochNumber) {
			g := change.Gate{Epoch: geo.Epoch{Number: n, Location: "north"}, Role: change.RoleSecondary, Open: true}
			stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: g})
		}
		gate(1)
		of := ranges.OfCopy{Reader: s, Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}}
		began := 0
		read := func(do func()) error {
			return of.Read(t.Context(), id, func(ranges.State) error {
				began++
				do()
				return nil
			})
		}
		require.NoError(t, read(func() {}))
		snap, err := ranges.Snapshot(t.Context(), of, id)
		require.NoError(t, err)
		require.NoError(t, snap.Close())

		require.ErrorIs(t, read(func() { gate(2) }), ranges.ErrLeft)
		require.Equal(t, 2, began)
		_, err = ranges.Snapshot(t.Context(), of, id)
		require.ErrorIs(t, err, ranges.ErrLeft)
		of.Epoch.Number = 2
		require.NoError(t, read(func() {}))
		of.Reader = meanwhile{s, func() { gate(3) }}
		require.NoError(t, read(func() {}), "it had ended")
	})
}

// R19: the range of a former primary that does not have the gate of a secondary yet is about to get it; a copy of a former
// epoch is not.
//
// Capability: Proofs: Redundancy across recoveries with loss (R7, R10, R17, R19).
func TestR19FormerPrimaryIsComing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for role, coming := range map[change.Role]bool{change.RolePrimary: true, change.RoleSecondary: false} {
			s := stamptest.New(t, "south", geo.Table)
			id := geo.FirstRange(geo.Table)
			g := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "south"}, Role: role, Open: true}
			stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: g})
			of := ranges.OfCopy{Reader: s, Account: "acct", Epoch: geo.Epoch{Number: 2, Location: "north"}}
			err := of.Read(t.Context(), id, func(ranges.State) error { return nil })
			require.ErrorIs(t, err, kv.ErrBusy)
			require.Equal(t, coming, errors.Is(err, ranges.ErrComing), "%v", role)
			require.NotErrorIs(t, err, ranges.ErrLeft)
		}
	})
}

// R19: a read of the secondary that comes to its range after that has become one of the primary may look again where the
// account is.
//
// Capability: Proofs: Redundancy across recoveries with loss (R7, R10, R17, R19).
func TestR19ReadOfAFormerSecondary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "south", geo.Table)
		id := geo.FirstRange(geo.Table)
		g := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "south"}, Role: change.RolePrimary, Open: true}
		stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: g})
		of := ranges.OfAccount(s, "acct", geo.Epoch{Number: 1, Location: "north"}, true)
		require.ErrorIs(t, of.Read(t.Context(), id, func(ranges.State) error { return nil }), ranges.ErrLeft)
	})
}

// R7: what a range has of an account under the gate of a former epoch, or under none, is not read as a copy of the
// present one: the range was recovered with loss, and its gates are not compared yet.
func TestR7FormerCopyIsNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "south", geo.Table)
		id, epoch := geo.FirstRange(geo.Table), geo.Epoch{Number: 2, Location: "north"}
		of := ranges.OfCopy{Reader: s, Account: "acct", Epoch: epoch}
		read := func() error { return of.Read(t.Context(), id, func(ranges.State) error { return nil }) }
		require.ErrorIs(t, read(), kv.ErrBusy, "no gate")
		for _, g := range []change.Gate{
			{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RoleSecondary, Open: true},
			{Epoch: epoch},
			{Epoch: epoch, Role: change.RoleSecondary},
		} {
			stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: g})
			require.ErrorIs(t, read(), kv.ErrBusy, "%+v", g)
		}
		stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: change.Gate{Epoch: epoch, Role: change.RoleSecondary, Open: true}})
		require.NoError(t, read())
	})
}

// R17: a read of a primary that ends in a range which has become part of a copy meanwhile has no result: the copy may be
// being made again. A later epoch that the range itself began, or a former copy, is read.
//
// Capability: Two locations: The copy of an account is made while clients write, from LRS, and again (R17).
func TestR17ReadOfAFormerPrimary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "south", geo.Table)
		id := geo.FirstRange(geo.Table)
		gate := func(n geo.EpochNumber, l geo.Location, r change.Role) {
			g := change.Gate{Epoch: geo.Epoch{Number: n, Location: l}, Role: r, Open: true}
			stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: g})
		}
		of := ranges.OfAccount(s, "acct", geo.Epoch{Number: 2, Location: "south"}, false)
		read := func(do func()) error {
			return of.Read(t.Context(), id, func(ranges.State) error {
				do()
				return nil
			})
		}
		require.NoError(t, read(func() {}), "no gate")
		gate(1, "north", change.RoleSecondary)
		require.NoError(t, read(func() {}), "it becomes the primary")
		require.NoError(t, read(func() { gate(2, "south", change.RolePrimary) }))
		require.NoError(t, read(func() { gate(3, "south", change.RolePrimary) }))
		require.ErrorIs(t, read(func() { gate(4, "north", change.RoleSecondary) }), ranges.ErrLeft)
		require.ErrorIs(t, ranges.ErrLeft, kv.ErrBusy)
		_, err := ranges.Snapshot(t.Context(), of, id)
		require.ErrorIs(t, err, ranges.ErrLeft)
	})
}
