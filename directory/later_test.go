package directory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory/record"
	"antipode/directory/record/recordtest"
	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// An operation of a kind, or a step of one, that a later version began waits for that version: what it is about to do is not
// known here, so it is neither ended nor taken for another one. The reason says so, and it names the account.
//
// Capability: Two locations: An account may slow or refuse its writes while changes are late.
func TestLaterOperationsWait(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Catalog, geo.Blob, geo.Queue, geo.Table)
	d := NewDirectory(s, "south")
	a := catalog.Account{Name: "acct", Primary: "north", Secondary: "south", Redundancy: catalog.RAGRS, Active: true, Epoch: 4, Created: 1}
	for what, op := range map[string]catalog.Operation{
		`operation "of a later version"`: {Kind: "of a later version"},
		`phase "of a later version"`:     {Kind: catalog.OperationMove, Move: catalog.Move{Phase: "of a later version", Until: 1 << 62}},
	} {
		a.Operation = &op
		stamptest.Submit(t, s, geo.FirstRange(geo.Catalog), recordtest.Does(func(tx *ranges.Tx) error { return record.StageLocal(tx, tx.Timestamp(0), &a) }))
		_, err := d.Resume(t.Context())
		require.ErrorIs(t, err, feature.ErrLater, what)
		require.ErrorContains(t, err, what)
		require.ErrorContains(t, err, "account acct")
		now, err := d.Account(t.Context(), "acct")
		require.NoError(t, err)
		require.Equal(t, &op, now.Operation)
	}
	_, err := d.promoter.Resume(t.Context(), unplanned.Promoting{Account: &a, Promotion: &catalog.Promotion{Phase: "of a later version", Until: 1 << 62}})
	require.ErrorIs(t, err, feature.ErrLater)

	a.Operation = nil
	stamptest.Submit(t, s, geo.FirstRange(geo.Catalog), recordtest.Does(func(tx *ranges.Tx) error {
		at := tx.Timestamp(0)
		op, err := catalog.LocationMoveOp(&catalog.LocationMove{From: "north", To: "south", Phase: "of a later version", Round: 1})
		if err != nil {
			return err
		}
		p := catalog.LocationPartition()
		if err := tx.Local(p, change.Record{CommitTime: at, Partition: p.Append(nil), Ops: []change.Op{op}}); err != nil {
			return err
		}
		return record.StageLocal(tx, at, &a)
	}))
	_, err = d.Resume(t.Context())
	require.ErrorIs(t, err, feature.ErrLater)
	now, err := d.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Nil(t, now.Operation, "the failover of the location began none")
}

// The levels of a location are raised by its catalog's leader, and not to what its program does not know.
func TestRaiseLevels(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Catalog)
	d := NewDirectory(s, "south")
	require.NoError(t, d.RaiseLevels(t.Context(), change.Levels{Floor: feature.Base, Active: feature.Base}))
	require.ErrorIs(t, d.RaiseLevels(t.Context(), change.Levels{Floor: feature.Known + 1, Active: feature.Base}), feature.ErrFloor)
	require.ErrorIs(t, d.RaiseLevels(t.Context(), change.Levels{Floor: feature.Base, Active: feature.Known + 1}), record.ErrCommand)

	sent := raiseLevels{Floor: 3, Active: 2}
	decoded, err := Commands()[sent.Kind()](sent.Encode())
	require.NoError(t, err)
	require.Equal(t, sent, decoded)
	_, err = Commands()[sent.Kind()]([]byte("no levels"))
	require.ErrorIs(t, err, record.ErrCommand)
}
