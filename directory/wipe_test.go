package directory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// copyRow is a row of the copy that wipes are tried on.
var copyRow = keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Generation: keys.Generation{Epoch: 1, Created: 7}, Object: "p"}

func holdsCopy(t *testing.T, s *stamp.Stamp) bool {
	t.Helper()
	_, ok, err := s.Leader(geo.FirstRange(geo.Table)).State().Get(append(copyRow.Append(nil), 'r'))
	require.NoError(t, err)
	return ok
}

// A copy is deleted under a later epoch than its own, or again while the gate of that epoch is closed: never where a
// later one has come, where the copy of that very epoch has begun, or where the location is the account's primary, or
// was. What is not deleted keeps its gate (R7, R8, R19; table).
func TestR19WipeCopy(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "south", geo.Catalog, geo.Blob, geo.Queue, geo.Table)
	d, table := NewDirectory(s, "north"), geo.FirstRange(geo.Table)
	epoch := func(n geo.EpochNumber, l geo.Location) geo.Epoch { return geo.Epoch{Number: n, Location: l} }
	passed := &record.PassedError{Seen: epoch(6, "north")}
	closed := change.Gate{Epoch: epoch(5, "north")}
	opened := change.Gate{Epoch: epoch(5, "north"), Role: change.RoleSecondary, Open: true}
	gate := func(n geo.EpochNumber, l geo.Location, r change.Role, open bool) change.Gate {
		return change.Gate{Epoch: epoch(n, l), Role: r, Open: open}
	}
	for name, c := range map[string]struct {
		have, gate change.Gate
		// want is the gate afterwards where the copy is deleted.
		want change.Gate
		err  error
	}{
		"no gate":                       {change.Gate{}, closed, closed, nil},
		"copy of a former epoch":        {gate(4, "north", change.RoleSecondary, true), closed, closed, nil},
		"closed copy of a former epoch": {gate(4, "north", change.RoleSecondary, false), closed, closed, nil},
		"no copy any more":              {gate(4, "north", change.RoleNone, false), closed, closed, nil},
		"again":                         {closed, closed, closed, nil},
		"again, as a secondary": {
			gate(5, "north", change.RoleSecondary, false), closed, gate(5, "north", change.RoleSecondary, false), nil,
		},
		"a copy begins":              {gate(4, "north", change.RoleSecondary, true), opened, opened, nil},
		"a copy begins after an end": {closed, opened, opened, nil},
		"the copy has begun":         {opened, opened, change.Gate{}, nil},
		"it ends, late":              {opened, closed, change.Gate{}, nil},
		"a later copy":               {gate(6, "north", change.RoleSecondary, true), opened, change.Gate{}, passed},
		"a later epoch, closed":      {gate(6, "north", change.RoleNone, false), closed, change.Gate{}, passed},
		"its primary is here":        {gate(4, "south", change.RolePrimary, true), opened, change.Gate{}, record.ErrHolder},
		"its primary was here":       {gate(4, "south", change.RolePrimary, false), closed, change.Gate{}, record.ErrHolder},
		"an epoch of this location": {
			gate(4, "north", change.RoleSecondary, false), gate(5, "south", change.RoleNone, false), change.Gate{}, record.ErrHolder,
		},
	} {
		stamptest.Submit(t, s, table, stamptest.Gate{Account: "acct", Gate: c.have})
		stamptest.Submit(t, s, geo.FirstRange(geo.Catalog), stamptest.Gate{Account: "acct"})
		row := change.Record{Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}}}
		stamptest.Submit(t, s, table, stamptest.Change{Partition: copyRow, Record: row})
		err := d.stamp.WipeCopy(t.Context(), "acct", c.gate)
		if c.err == nil {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.err.Error(), name)
		}
		wiped := c.want != change.Gate{}
		require.Equal(t, !wiped, holdsCopy(t, s), name)
		if !wiped {
			c.want = c.have
		}
		require.Equal(t, c.want, s.Leader(table).Machine.Gate("acct"), name)
	}
}

// closes commits that the range closes the generation of a row.
type closes struct{ of keys.Partition }

func (c closes) key(r geo.RangeID) []byte {
	return keys.ClosedGeneration(r, c.of.Service, c.of.Account, c.of.Container, c.of.Generation)
}

func (c closes) Evaluate(tx *ranges.Tx) error {
	tx.CloseGeneration(c.key(tx.Range()))
	return nil
}

// R20: a location that had closed a generation of an account as its primary, and lost that to a promotion, takes the
// generation's rows once its copy was deleted: else it would skip them silently. Other accounts keep what is closed, and
// so does the account's primary.
func TestR20WipedCopyHasNothingClosed(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "south", geo.Catalog, geo.Blob, geo.Queue, geo.Table)
	d, table := NewDirectory(s, "north"), geo.FirstRange(geo.Table)
	other := copyRow
	other.Account = "acct2"
	stamptest.Submit(t, s, table, closes{copyRow})
	stamptest.Submit(t, s, table, closes{other})
	closed := func(of keys.Partition) bool {
		_, ok, err := s.Leader(table).State().Get(closes{of}.key(table))
		require.NoError(t, err)
		return ok
	}
	next := change.Gate{Epoch: geo.Epoch{Number: 5, Location: "north"}, Role: change.RoleSecondary, Open: true}
	stamptest.Submit(t, s, table, stamptest.Gate{Account: "acct", Gate: change.Gate{Epoch: geo.Epoch{Number: 4, Location: "south"}, Role: change.RolePrimary, Open: true}})
	require.ErrorIs(t, d.stamp.WipeCopy(t.Context(), "acct", next), record.ErrHolder)
	require.True(t, closed(copyRow))
	require.ErrorIs(t, s.Submit(t.Context(), table, reopens{copyRow}), ranges.ErrWipeRefused)
	require.True(t, closed(copyRow))

	stamptest.Submit(t, s, table, stamptest.Gate{Account: "acct", Gate: change.Gate{Epoch: geo.Epoch{Number: 4, Location: "south"}, Role: change.RoleSecondary}})
	require.NoError(t, d.stamp.WipeCopy(t.Context(), "acct", next))
	require.False(t, closed(copyRow))
	require.True(t, closed(other))
}

// reopens is what a wipe does to the generations of a row's account.
type reopens struct{ of keys.Partition }

func (c reopens) Evaluate(tx *ranges.Tx) error {
	return tx.ReopenGenerations(c.of.Service, c.of.Account)
}

// A wipe keeps the account's record and the highest epoch of its name, and deletes its containers from the
// catalog (R8).
func TestR8WipeKeepsTheRecord(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "south", geo.Catalog, geo.Blob, geo.Queue, geo.Table)
	d := NewDirectory(s, "north")
	catalogRange := geo.FirstRange(geo.Catalog)
	a := catalog.Account{Name: "acct", Redundancy: catalog.LRS, Primary: "north", Epoch: 4, Created: 2, Active: true}
	require.NoError(t, d.Announce(t.Context(), a))
	made := catalog.ContainerPartition(geo.Blob, "acct", "c")
	stamptest.Submit(t, s, catalogRange, stamptest.Change{Partition: made, Record: change.Record{Ops: []change.Op{{Value: []byte("v")}}}})
	require.NoError(t, d.stamp.WipeCopy(t.Context(), "acct", change.Gate{Epoch: geo.Epoch{Number: 5, Location: "north"}}))
	state := s.Leader(catalogRange).State()
	_, ok, err := state.Get(made.Append(nil))
	require.NoError(t, err)
	require.False(t, ok)
	seen, err := catalog.SeenEpoch(state, "acct")
	require.NoError(t, err)
	require.Equal(t, a.GeoEpoch(), seen)
	got, err := d.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.True(t, got.SameCreation(&a))
}

// A wipe that another node's leader evaluates is the one that was sent, and the sender learns which gate was there.
func TestWipeTravels(t *testing.T) {
	t.Parallel()
	sent := &record.Wipe{Account: "acct", Gate: change.Gate{Epoch: geo.Epoch{Number: 5, Location: "north"}, Role: change.RoleSecondary, Open: true}}
	decoded, err := Commands()[sent.Kind()](sent.Encode())
	require.NoError(t, err)
	there := decoded.(*record.Wipe)
	require.Equal(t, sent, there)
	there.Found = change.Gate{Epoch: geo.Epoch{Number: 6, Location: "north"}, Role: change.RoleSecondary, Open: true}
	require.NoError(t, sent.DecodeResult(there.EncodeResult()))
	require.Equal(t, there.Found, sent.Found)
	require.Error(t, sent.DecodeResult([]byte{9}))
	for _, g := range []change.Gate{{}, {Epoch: sent.Gate.Epoch, Numbered: true}, {Epoch: sent.Gate.Epoch, Role: change.RolePrimary}} {
		_, err := record.ParseWipe((&record.SetGate{Account: "acct", Gate: g}).Encode())
		require.ErrorIs(t, err, record.ErrCommand)
	}
	var _ ranges.Reclaimer = sent // A copy is deleted while the disk is nearly full, too.
}

// The record of an account that its primary still holds is never taken for a copy, whatever is announced.
func TestR19LeaveIsNotForThePrimary(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "south", geo.Catalog, geo.Blob, geo.Queue, geo.Table)
	d := NewDirectory(s, "north")
	here := catalog.Account{Name: "acct", Redundancy: catalog.LRS, Primary: "south", Epoch: 1, Created: 2, Active: true}
	v, err := here.Encode()
	require.NoError(t, err)
	own := change.Record{Ops: []change.Op{{Value: v}}}
	stamptest.Submit(t, s, geo.FirstRange(geo.Catalog), stamptest.Change{Partition: catalog.AccountPartition("acct"), Record: own})
	row := change.Record{Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}}}
	stamptest.Submit(t, s, geo.FirstRange(geo.Table), stamptest.Change{Partition: copyRow, Record: row})
	announced := catalog.Account{
		Name: "acct", Redundancy: catalog.LRS, Primary: "north", Epoch: 9, Created: 2, Active: true,
		Operation: &catalog.Operation{Kind: catalog.OperationLeave},
	}
	require.ErrorContains(t, d.Announce(t.Context(), announced), storageerr.AccountAlreadyExists.Message)
	require.True(t, holdsCopy(t, s))
}
