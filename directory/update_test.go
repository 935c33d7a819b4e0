package directory_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// insert writes one row of an account.
type insert struct{ account geo.Account }

func (c insert) Evaluate(tx *ranges.Tx) error {
	p := keys.Partition{Service: geo.Table, Account: c.account, Object: "p"}
	return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}}})
}

// outboxOf counts the records in the outboxes of a location that are of an account.
func (b *both) outboxOf(t *testing.T, l geo.Location, name geo.Account) (n int) {
	t.Helper()
	for _, s := range every {
		m := b.stamps[l].Leader(geo.FirstRange(s)).Machine
		heads, _ := m.Heads()
		for st := range heads {
			if st.Account != name {
				continue
			}
			rows, err := m.Outbox(st, m.Trimmed(st)+1, 1<<20)
			require.NoError(t, err)
			n += len(rows)
		}
	}
	return n
}

// arriveAt stores the record of an account at its secondary as the catalog's stream brings it.
func (b *both) arriveAt(t *testing.T, l geo.Location, a *catalog.Account) {
	t.Helper()
	stamptest.Submit(t, b.stamps[l], geo.FirstRange(geo.Catalog), &arrive{a: *a})
}

// update changes a redundancy; behind is why the other location does not have it yet.
func update(t *testing.T, d *directory.Directory, name geo.Account, to catalog.Redundancy) (a *catalog.Account, behind error) {
	t.Helper()
	a, behind, err := d.Update(t.Context(), name, to, nil)
	require.NoError(t, err)
	return a, behind
}

// GRS and RA-GRS follow each other at any time, in the account's epoch, as a change that is shipped. The
// answer waits until the secondary has it, for a while.
func TestR10GRSAndRAGRS(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	made, err := b.north.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	a, behind := update(t, b.north, "acct", catalog.GRS)
	require.Error(t, behind)
	require.Equal(t, made.GeoEpoch(), a.GeoEpoch())
	require.Equal(t, catalog.GRS, a.Redundancy)
	require.Equal(t, 2, b.outboxOf(t, "north", "acct"), "the creation and the change are shipped")
	b.arriveAt(t, "south", a)
	for range 2 {
		_, behind = update(t, b.north, "acct", catalog.GRS) // It is asked for again: nothing changes.
		require.NoError(t, behind)
	}
	a, behind = update(t, b.north, "acct", catalog.RAGRS)
	require.ErrorContains(t, behind, "has not arrived at south yet")
	b.arriveAt(t, "south", a)
	got, err := b.south.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Equal(t, catalog.RAGRS, got.Redundancy)
	require.Equal(t, 3, b.outboxOf(t, "north", "acct"))
}

// What is refused changes nothing: an unknown account, a primary elsewhere, a second
// operation, whose error names the first.
func TestR19UpdateRefused(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	for name, r := range map[geo.Account]catalog.Redundancy{"alone": catalog.LRS, "leaves": catalog.RAGRS} {
		_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: name, Redundancy: r})
		require.NoError(t, err)
	}
	b.cut = true
	left, behind := update(t, b.north, "leaves", catalog.LRS)
	require.ErrorIs(t, behind, errLink)
	before := b.rows(t)
	for _, c := range []struct {
		d    *directory.Directory
		name geo.Account
		to   catalog.Redundancy
		want storageerr.Row
		says string
	}{
		{b.north, "nobody", catalog.GRS, storageerr.AccountNotFound, ""},
		{b.south, "alone", catalog.GRS, storageerr.InvalidInput, "the primary of account alone is north"},
		{b.north, "leaves", catalog.GRS, storageerr.OperationInProgress, "the change to LRS"},
	} {
		_, _, err := c.d.Update(t.Context(), c.name, c.to, nil)
		row, ours := storageerr.Of(err)
		require.True(t, ours, "%v", err)
		require.Equal(t, c.want.Code, row.Code)
		require.ErrorContains(t, err, c.says)
	}
	require.Equal(t, before, b.rows(t))
	again, behind := update(t, b.north, "leaves", catalog.LRS)
	require.ErrorIs(t, behind, errLink)
	require.Equal(t, left.GeoEpoch(), again.GeoEpoch())
}

// rows are the records of all accounts at both locations.
func (b *both) rows(t *testing.T) (out []catalog.Account) {
	t.Helper()
	for _, d := range []*directory.Directory{b.north, b.south} {
		list, err := d.Accounts(t.Context())
		require.NoError(t, err)
		for _, a := range list {
			out = append(out, *a)
		}
	}
	return out
}

// stumbling is a stamp at whose commits a leader may die: the left-th fails, done or not, and what
// follows too.
type stumbling struct {
	*stamp.Stamp
	left int
	done bool
}

func (s *stumbling) Submit(ctx context.Context, r geo.RangeID, cmd ranges.Command) error {
	s.left--
	if s.left < 0 && (s.left < -1 || !s.done) {
		return storageerr.ServerBusy
	}
	err := s.Stamp.Submit(ctx, r, cmd)
	if s.left < 0 {
		return storageerr.OperationTimedOut
	}
	return err
}

// A change to LRS goes on after a leader died at any of its commits, before or after it, at either location,
// and ends in one state: the next epoch, gates without numbers at the primary and closed ones at the other
// location, empty outboxes, no copy there, one record at both locations and no operation (R10, R13, R19).
func TestR19LeaveIsResumed(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	failed, runs := 0, 0
	for _, there := range []bool{false, true} {
		for _, done := range []bool{false, true} {
			for step, whole := 0, false; !whole; step++ {
				runs++
				name := geo.Account(fmt.Sprintf("acct%d", runs))
				a, err := b.north.Create(t.Context(), name, nil, nil)
				require.NoError(t, err)
				b.arriveAt(t, "south", a)
				stamptest.Submit(t, b.stamps["north"], geo.FirstRange(geo.Table), insert{name})
				require.Equal(t, 2, b.outboxOf(t, "north", name))
				b.copyAt(t, "south", name)

				dies := &stumbling{Stamp: b.stamps["north"], left: step, done: done}
				near, far := directory.NewDirectory(dies, "south"), b.south
				if there {
					dies.Stamp = b.stamps["south"]
					near, far = b.north, directory.NewDirectory(dies, "north")
				}
				near.SetPeer(linked{b.pair, far})
				_, behind, err := near.Update(t.Context(), name, catalog.LRS, nil)
				if whole = err == nil && behind == nil; !whole {
					failed++
				}
				b.north.SetPeer(linked{b.pair, b.south})
				if err != nil { // Nothing, or the first commit alone.
					_, behind = update(t, b.north, name, catalog.LRS)
					require.NoError(t, behind)
				}
				requireResumed(t, b.north)
				b.requireLeft(t, name)
			}
		}
	}
	require.Greater(t, failed, 20)
}

// copied is how many rows copyAt stores of each account.
const copied = 6

// copyAt stores rows of an account and of its neighbours by name at a location as its streams bring them.
func (b *both) copyAt(t *testing.T, l geo.Location, name geo.Account) {
	t.Helper()
	for _, a := range []geo.Account{name, name + "0", name[:len(name)-1]} {
		p := keys.Partition{Account: a, Container: "t", Generation: keys.Generation{Epoch: 1, Created: 7}}
		for _, s := range geo.Services {
			p.Service, p.Object = s, "p"
			row := change.Record{Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}}}
			stamptest.Submit(t, b.stamps[l], geo.FirstRange(s), stamptest.Change{Partition: p, Record: row})
			made := catalog.ContainerPartition(s, a, "t")
			stamptest.Submit(t, b.stamps[l], geo.FirstRange(geo.Catalog), stamptest.Change{Partition: made, Record: row})
		}
	}
	require.Len(t, b.rowsOf(t, l, name), copied)
}

// rowsOf are the keys that the leaders of a location hold of an account, its own record excepted.
func (b *both) rowsOf(t *testing.T, l geo.Location, name geo.Account) (out []string) {
	t.Helper()
	for _, s := range every {
		snap := b.stamps[l].Leader(geo.FirstRange(s)).State().Snapshot()
		require.NoError(t, keys.Each(snap, keys.AppendAccount(nil, s, name), func(key, _ []byte) error {
			if !bytes.HasPrefix(key, catalog.AccountPartition(name).Append(nil)) {
				out = append(out, string(key))
			}
			return nil
		}))
		require.NoError(t, snap.Close())
	}
	return out
}

// requireLeft checks what is left of an account of the north that became LRS.
func (b *both) requireLeft(t *testing.T, name geo.Account) {
	t.Helper()
	epoch := geo.Epoch{Number: 2, Location: "north"}
	b.requireGates(t, "north", name, change.Gate{Epoch: epoch, Role: change.RolePrimary, Open: true})
	b.requireGates(t, "south", name, change.Gate{Epoch: epoch})
	require.Zero(t, b.outboxOf(t, "north", name))
	b.requireNothingShipped(t, "north", name)
	require.Empty(t, b.rowsOf(t, "south", name), "the copy is deleted")
	require.NotEmpty(t, b.rowsOf(t, "north", name))
	require.Len(t, b.rowsOf(t, "south", name+"0"), copied, "those of another account stay")
	var found []catalog.Account
	for _, d := range []*directory.Directory{b.north, b.south} {
		a, err := d.Account(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, epoch, a.GeoEpoch())
		require.Equal(t, catalog.LRS, a.Redundancy)
		require.Empty(t, a.Secondary)
		require.Nil(t, a.Operation)
		found = append(found, *a)
	}
	require.Equal(t, found[0], found[1])
	heads := func() int {
		h, _ := b.stamps["north"].Leader(geo.FirstRange(geo.Table)).Machine.Heads()
		return len(h)
	}
	before := heads()
	stamptest.Submit(t, b.stamps["north"], geo.FirstRange(geo.Table), insert{name})
	require.Equal(t, before, heads(), "no stream begins")
	require.Zero(t, b.outboxOf(t, "north", name))
}

// The last record of the catalog's stream is the account that has left, and stays in the outbox until the
// other location has closed its copy: with calls cut and the stream flowing it is not readable there, and
// no time shown for it covers a write that was not copied (R13).
func TestR13LeaveIsShipped(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	a, err := b.north.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	b.arriveAt(t, "south", a)
	stamptest.Submit(t, b.stamps["north"], geo.FirstRange(geo.Table), insert{"acct"})
	b.copyAt(t, "south", "acct")
	b.cut = true
	left, behind := update(t, b.north, "acct", catalog.LRS)
	require.ErrorIs(t, behind, errLink)
	require.Equal(t, catalog.OperationLeave, left.Operation.Kind)
	m := b.stamps["north"].Leader(geo.FirstRange(geo.Catalog)).Machine
	st := geo.Stream{Account: "acct", Epoch: a.GeoEpoch(), Range: geo.FirstRange(geo.Catalog), Lane: catalog.AccountPartition("acct").Lane()}
	rows, err := m.Outbox(st, 1, 1<<20)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	last, err := change.ParseRecord(rows[1])
	require.NoError(t, err)
	require.Equal(t, a.GeoEpoch(), last.Epoch)
	shipped, err := catalog.ParseAccount(last.Ops[0].Value)
	require.NoError(t, err)
	require.Equal(t, catalog.LRS, shipped.Redundancy)
	require.Equal(t, left.GeoEpoch(), shipped.GeoEpoch())
	require.Equal(t, 2, b.outboxOf(t, "north", "acct"), "the other ranges have dropped theirs")
	stops := b.stamps["north"].Leader(geo.FirstRange(geo.Table)).Machine.Stops()
	require.Len(t, stops, 1, "what was dropped and not copied is named as long as the south does not know")
	for st, why := range stops {
		require.Equal(t, change.StopBudget, why.Reason)
		require.Equal(t, a.GeoEpoch(), st.Epoch)
	}

	b.arriveAt(t, "south", shipped)
	b.cut = false
	requireResumed(t, b.north)
	b.requireLeft(t, "acct")
	for _, s := range every {
		require.Empty(t, b.stamps["north"].Leader(geo.FirstRange(s)).Machine.Stops(), "%s", s)
	}
	require.NoError(t, b.south.Announce(t.Context(), *left), "a late call")
	b.requireLeft(t, "acct")
}

// The policy for late changes is a change of the account's row, shipped like every other. An account without a
// secondary has none, and loses the one that it had.
//
// Capability: Two locations: An account may slow or refuse its writes while changes are late.
func TestWhenLate(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	made, err := b.north.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	set := func(d *directory.Directory, to catalog.WhenLate) (*catalog.Account, error, error) {
		return d.SetWhenLate(t.Context(), "acct", to)
	}
	a, behind, err := set(b.north, catalog.LateRefuse)
	require.NoError(t, err)
	require.Error(t, behind)
	require.Equal(t, catalog.LateRefuse, a.WhenLate)
	require.Equal(t, made.GeoEpoch(), a.GeoEpoch())
	require.Equal(t, catalog.RAGRS, a.Redundancy)
	b.arriveAt(t, "south", a)
	for range 2 { // The second call changes nothing.
		_, behind, err = set(b.north, catalog.LateRefuse)
		require.NoError(t, err)
		require.NoError(t, behind)
	}
	require.Equal(t, 2, b.outboxOf(t, "north", "acct"))
	_, _, err = set(b.south, catalog.LateSlow)
	require.ErrorContains(t, err, "the primary of account acct is north")
	a, _ = update(t, b.north, "acct", catalog.GRS)
	require.Equal(t, catalog.LateRefuse, a.WhenLate)
	b.cut = true
	_, _, err = b.north.Rebuild(t.Context(), "acct", nil)
	require.NoError(t, err)
	// What a bootstrap has numbered may be late, too: so the policy is changed while it is under way.
	a, behind, err = set(b.north, catalog.LateSlow)
	require.NoError(t, err)
	require.Error(t, behind)
	require.Equal(t, catalog.LateSlow, a.WhenLate)
	require.True(t, a.Bootstraps())
	a, _ = update(t, b.north, "acct", catalog.LRS)
	require.Equal(t, catalog.LateAlert, a.WhenLate)
	_, _, err = set(b.north, catalog.LateSlow)
	require.ErrorContains(t, err, "account acct is LRS: it has no copy")
}
