package directory_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/primary"
	"antipode/replication/bootstrap"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// meanwhile is an Images that lets something happen before the first step in the range of tables.
type meanwhile struct {
	bootstrap.Images
	happens func()
}

func (m *meanwhile) StepImage(ctx context.Context, r route.Range, a geo.Account, e geo.Epoch, bytesMax uint64) (ranges.ImageStep, error) {
	if r.Service == geo.Table && m.happens != nil {
		m.happens()
		m.happens = nil
	}
	return m.Images.StepImage(ctx, r, a, e, bytesMax)
}

// heads are those of the streams of account acct in a range of the north.
func (b *both) heads(s geo.Service) map[geo.Stream]geo.Head {
	heads, _ := b.stamps["north"].Leader(geo.FirstRange(s)).Machine.Heads()
	return heads
}

// appliedUpTo has the other location have applied the records of the north in a range up to some heads.
func (b *both) appliedUpTo(t *testing.T, s geo.Service, heads map[geo.Stream]geo.Head) {
	t.Helper()
	stamptest.Submit(t, b.stamps["north"], geo.FirstRange(s), evaluated(func(tx *ranges.Tx) error {
		for st, at := range heads {
			if err := tx.Trim(st, at.Seq); err != nil {
				return err
			}
		}
		return nil
	}))
}

// R17, R20: the image of a range lacks the rows of a table that was deleted while the image was made, behind the catalog's.
// The copy is not whole before the other location knows of the deletion: without it a failover would find the table there, and
// nothing in it.
func TestR17CopyIsNotWholeBeforeADeletionArrives(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.north.NeverWait()
	_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: catalog.LRS})
	require.NoError(t, err)
	writer := primary.New(b.stamps["north"])
	require.NoError(t, writer.Write(t.Context(), &catalog.Create{Service: geo.Table, Account: "acct", Name: "t"}))
	var p keys.Partition
	require.NoError(t, b.stamps["north"].Read(t.Context(), geo.FirstRange(geo.Catalog), func(s ranges.State) error {
		found, err := catalog.Lookup(s, geo.Table, "acct", "t")
		p = keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: "p", Generation: found.Generation()}
		return err
	}))
	stamptest.Submit(t, b.stamps["north"], geo.FirstRange(geo.Table), evaluated(func(tx *ranges.Tx) error {
		return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r")}}})
	}))
	var before map[geo.Stream]geo.Head
	b.north.SetImages(&meanwhile{Images: writer, happens: func() {
		before = b.heads(geo.Catalog)
		require.NoError(t, writer.Write(t.Context(), &catalog.Delete{Service: geo.Table, Account: "acct", Name: "t"}))
		require.NoError(t, writer.CloseGeneration(t.Context(), geo.Table, "acct", "t", p.Generation))
	}})
	_, _ = update(t, b.north, "acct", catalog.GRS)
	operation := func() *catalog.Operation {
		_, err := b.north.Resume(t.Context())
		require.NoError(t, err)
		a, err := b.north.Account(t.Context(), "acct")
		require.NoError(t, err)
		return a.Operation
	}
	for i := 0; !operation().Imaged; i++ {
		require.Less(t, i, 20)
	}
	require.NotNil(t, before)
	require.Empty(t, b.heads(geo.Table), "the row is left out")
	b.appliedUpTo(t, geo.Catalog, before)
	for range 3 {
		require.NotNil(t, operation())
	}
	b.appliedUpTo(t, geo.Catalog, b.heads(geo.Catalog))
	require.Nil(t, operation())
}

// R22: nor is a former primary rewound before it has applied what the catalog had committed when the last rows were
// numbered: those of a table that was deleted meanwhile were not. Where a node of a former version has numbered the last ones,
// that is what it has committed since.
//
// Capability: Failover: An unplanned failover of an account (R20).
// Capability: Failover: A former primary is rewound (R22).
// Capability: Failover: What the other location cannot take does not cross the link (R22).
// Capability: Failover: The lost-change report (R22).
func TestR22RewindWaitsForDeletions(t *testing.T) {
	t.Parallel()
	for _, former := range []bool{false, true} {
		r := newRewinds(t, 1)
		id := geo.FirstRange(geo.Catalog)
		require.NoError(t, primary.New(r.stamps["south"]).Write(t.Context(), &catalog.Create{Service: geo.Table, Account: "acct", Name: "t"}))
		lane := catalog.ContainerPartition(geo.Table, "acct", "t").Lane()
		at := r.stamps["south"].Leader(id).Machine.Head(geo.Stream{Account: "acct", Epoch: r.at(t).GeoEpoch(), Range: id, Lane: lane})
		require.NotZero(t, at.Seq)
		image := func() change.Image {
			m, err := ranges.ImageIn(r.stamps["south"].Leader(id).State(), id, "acct")
			require.NoError(t, err)
			return m
		}
		r.fake.next = func(s geo.Service, _ int) ranges.ImageStep {
			if former && s == geo.Catalog && image().Done == nil {
				return ranges.ImageStep{Uncounted: true}
			}
			return ranges.ImageStep{Applied: r.applied || s != geo.Catalog}
		}
		r.applied = false
		waits := 0
		for range 10 {
			require.NoError(t, r.resumed(t, 1))
			if r.at(t).Operation.Rewound < len(every)-1 {
				continue
			}
			if waits++; former && waits == 1 {
				stamptest.Submit(t, r.stamps["south"], id, evaluated(func(tx *ranges.Tx) error { tx.SetImage("acct", change.Image{}); return nil }))
			}
		}
		require.Greater(t, waits, 2)
		require.Equal(t, 1500, r.numbered())
		require.NotNil(t, r.at(t).Operation)
		require.GreaterOrEqual(t, image().Done[lane], at.Seq)
		r.applied = true
		require.NoError(t, r.resumed(t, 1))
		require.Nil(t, r.at(t).Operation)
	}
}
