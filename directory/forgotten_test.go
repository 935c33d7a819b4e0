package directory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/primary"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// R17: the image of a range lacks the rows of a container that the catalog has lost, which would wait at the other location for
// ever; so it does those of a later generation than the catalog's. The rows stay here. A living container is not closed.
func TestR17ImageLacksWhatTheCatalogForgot(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.north.NeverWait()
	_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: catalog.LRS})
	require.NoError(t, err)
	writer := primary.New(b.stamps["north"])
	require.NoError(t, writer.Write(t.Context(), &catalog.Create{Service: geo.Table, Account: "acct", Name: "t"}))
	var living keys.Generation
	require.NoError(t, b.stamps["north"].Read(t.Context(), geo.FirstRange(geo.Catalog), func(s ranges.State) error {
		found, err := catalog.Lookup(s, geo.Table, "acct", "t")
		living = found.Generation()
		return err
	}))
	later := living
	later.Created++
	of := func(table string, g keys.Generation) keys.Partition {
		return keys.Partition{Service: geo.Table, Account: "acct", Container: table, Object: "p", Generation: g}
	}
	all := []keys.Partition{of("t", living), of("t", later), of("lost", living)}
	for _, p := range all {
		stamptest.Submit(t, b.stamps["north"], geo.FirstRange(geo.Table), evaluated(func(tx *ranges.Tx) error {
			return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r")}}})
		}))
	}
	b.north.SetImages(writer)
	_, _ = update(t, b.north, "acct", catalog.GRS)
	heads := func() map[geo.Stream]geo.Head { return b.heads(geo.Table) }
	for i := 0; len(heads()) == 0; i++ {
		require.Less(t, i, 20)
		_, err := b.north.Resume(t.Context())
		require.NoError(t, err)
	}
	total := geo.Seq(0)
	for s, h := range heads() {
		require.Equal(t, all[0].Lane(), s.Lane)
		total += h.Seq
	}
	require.EqualValues(t, 1, total, "the row of the living table alone")
	stamptest.Submit(t, b.stamps["north"], geo.FirstRange(geo.Table), evaluated(func(tx *ranges.Tx) error {
		for i, p := range all {
			closed, err := tx.GenerationClosed(keys.ClosedGeneration(tx.Range(), geo.Table, "acct", p.Container, p.Generation))
			require.NoError(t, err)
			require.Equal(t, i > 0, closed, p.Container)
			rows := 0
			prefix := p.Append(nil)
			require.NoError(t, tx.Rows(prefix, keys.PrefixEnd(prefix), func(_, _ []byte) bool { rows++; return true }))
			require.Equal(t, 1, rows, "it stays")
		}
		return nil
	}))
}
