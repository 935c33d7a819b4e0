package primary

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/lease"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// raised makes a feature level active.
type raised feature.Level

// Evaluate implements ranges.Command.
func (l raised) Evaluate(tx *ranges.Tx) error {
	return tx.RaiseLevels(change.Levels{Floor: feature.Level(l), Active: feature.Level(l)})
}

// What an earlier program could not read is refused before its feature level is active, and changes nothing; what it can read
// is not. Nothing is written for an action that leaves the lease as it is.
func TestLeveledWrites(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Catalog)
	id := geo.FirstRange(geo.Catalog)
	stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: change.Gate{
		Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true,
	}})
	p := New(s)
	require.NoError(t, p.Write(t.Context(), &catalog.Create{Service: geo.Blob, Account: "acct", Name: "things"}))
	do := func(r lease.Request) error {
		return p.Write(t.Context(), &catalog.SetLease{Account: "acct", Name: "things", Request: r, At: 7})
	}
	take := lease.Request{Action: lease.Acquire, ID: lease.ID{1}}
	stamptest.Submit(t, s, id, raised(feature.Blobs-1))
	require.ErrorIs(t, do(take), ranges.ErrLevel)
	require.Error(t, do(lease.Request{Action: lease.Release, ID: lease.ID{1}}), "there is none")
	stamptest.Submit(t, s, id, raised(feature.Blobs))
	require.NoError(t, do(take))

	heads, _ := s.Leader(id).Machine.Heads()
	require.NoError(t, do(lease.Request{Action: lease.Renew, ID: lease.ID{1}}))
	after, _ := s.Leader(id).Machine.Heads()
	require.Equal(t, heads, after)
	require.NoError(t, do(lease.Request{Action: lease.Release, ID: lease.ID{1}}))
	after, _ = s.Leader(id).Machine.Heads()
	require.NotEqual(t, heads, after)
}
