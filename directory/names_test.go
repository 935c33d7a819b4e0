package directory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/primary"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// putAccounts stores rows of accounts as they are.
type putAccounts []catalog.Account

func (c putAccounts) Evaluate(tx *ranges.Tx) error {
	for _, a := range c {
		v, err := a.Encode()
		if err != nil {
			return err
		}
		p := catalog.AccountPartition(a.Name)
		if err := tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Value: v}}}); err != nil {
			return err
		}
	}
	return nil
}

// Names lists an account when it is complete, and again when its epoch or redundancy has changed, and for no other
// change of the catalog. Versions of another process are not taken for its own.
func TestNames(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Catalog, geo.Blob, geo.Queue, geo.Table)
	d, away := directory.NewDirectory(s, "south"), &peer{away: true}
	d.SetPeer(away)
	names := directory.NewNames(d, 7)
	since := func(version string) (list []directory.Name, next string) {
		list, next, after, err := names.Since(t.Context(), version, "")
		require.NoError(t, err)
		require.Empty(t, after)
		return list, next
	}
	list, first := since("")
	require.Empty(t, list)
	_, err := d.Create(t.Context(), "acct", nil, nil)
	require.Error(t, err)
	list, same := since(first)
	require.Empty(t, list, "its creation has not ended")
	require.Equal(t, first, same)

	away.away = false
	a, err := d.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	list, second := since(first)
	want := directory.Name{Account: "acct", Epoch: a.GeoEpoch(), Secondary: "south", Redundancy: catalog.RAGRS}
	require.Equal(t, []directory.Name{want}, list)

	// A container is none of its business, nor is a change of the account that moves no name.
	require.NoError(t, primary.New(s).Write(t.Context(), &catalog.Create{Service: geo.Table, Account: "acct", Name: "table"}))
	require.NoError(t, func() error { _, _, err := d.SetWhenLate(t.Context(), "acct", catalog.LateSlow); return err }())
	list, same = since(second)
	require.Empty(t, list)
	require.Equal(t, second, same)

	_, behind, err := d.Update(t.Context(), "acct", catalog.GRS, nil)
	require.NoError(t, err)
	require.NoError(t, behind)
	list, third := since(second)
	want.Redundancy = catalog.GRS
	require.Equal(t, []directory.Name{want}, list)

	moved := *a
	moved.Redundancy, moved.Primary, moved.Secondary, moved.Epoch = catalog.GRS, "south", "north", 5
	stamptest.Submit(t, s, s.Route().Catalog(), putAccounts{moved})
	want.Epoch, want.Secondary = geo.Epoch{Number: 5, Location: "south"}, "north"
	list, last := since(third)
	require.Equal(t, []directory.Name{want}, list)

	for _, unknown := range []string{"", first + "9", "0000000000000008" + last[16:], "x", "-", last + "0"} {
		list, version := since(unknown)
		require.Equal(t, []directory.Name{want}, list, unknown)
		require.Equal(t, last, version)
	}
	list, _ = since(second)
	require.Equal(t, []directory.Name{want}, list, "an older version has what changed since")

	// Another process begins with all.
	list, other, _, err := directory.NewNames(d, 8).Since(t.Context(), last, "")
	require.NoError(t, err)
	require.Equal(t, []directory.Name{want}, list)
	require.NotEqual(t, last, other)
}

// Pages of a list are in the sequence of names and have each account once, also of those that changed.
func TestNamesPages(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Catalog)
	names := directory.NewNames(directory.NewDirectory(s, "south"), 7)
	var rows putAccounts
	for i := range 2500 {
		rows = append(rows, catalog.Account{Name: geo.Account(fmt.Sprintf("acct%04d", i)), Redundancy: catalog.LRS, Primary: "north", Epoch: 1, Active: true})
	}
	all := func(since string) (list []directory.Name, version string, pages int) {
		for after := geo.Account(""); ; pages++ {
			page, v, next, err := names.Since(t.Context(), since, after)
			require.NoError(t, err)
			if list = append(list, page...); pages == 0 {
				version = v
			}
			if after = next; next == "" {
				return list, version, pages + 1
			}
		}
	}
	for at := 0; at < len(rows); at += 500 {
		stamptest.Submit(t, s, s.Route().Catalog(), rows[at:at+500])
	}
	list, version, pages := all("")
	require.Equal(t, 3, pages)
	require.Len(t, list, 2500)
	for i, n := range list {
		require.Equal(t, rows[i].Name, n.Account)
	}
	list, version, _ = all(version)
	require.Empty(t, list)
	for i := range rows[:1000] {
		rows[i].Epoch = 2
	}
	stamptest.Submit(t, s, s.Route().Catalog(), rows[:500])
	stamptest.Submit(t, s, s.Route().Catalog(), rows[500:1000])
	list, _, pages = all(version)
	require.Equal(t, 1, pages)
	require.Len(t, list, 1000)
}

// A call that waits for another one, or for the catalog, ends with its context.
func TestNamesEnds(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Catalog)
	stuck := make(chan struct{})
	blocked := &blockedStamp{Stamp: s, free: stuck, here: make(chan struct{})}
	names := directory.NewNames(directory.NewDirectory(blocked, "south"), 7)
	first := make(chan error, 1)
	go func() {
		_, _, _, err := names.Since(t.Context(), "", "")
		first <- err
	}()
	<-blocked.here
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, _, err := names.Since(ctx, "", "")
	require.ErrorIs(t, err, context.Canceled)
	close(stuck)
	require.NoError(t, <-first)
}

// blockedStamp reads once free is closed; it closes here when it begins.
type blockedStamp struct {
	*stamp.Stamp
	free, here chan struct{}
}

func (s *blockedStamp) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	close(s.here)
	<-s.free
	return s.Stamp.Read(ctx, r, f)
}
