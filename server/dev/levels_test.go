package dev

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/stamp/feature"
)

// A cluster that this program has made begins at the level that it knows; one that was there before stays as it is until
// an operator finalizes it.
func TestFinalizeNew(t *testing.T) {
	t.Parallel()
	c := startAdjusted(t, nil)
	levels := func(want feature.Level) {
		t.Helper()
		eventually(t, "the node that answers has applied them", func() bool {
			s, err := c.admin.Status(t.Context())
			require.NoError(t, err)
			return !slices.ContainsFunc(s.Locations, func(l wire.Location) bool {
				return l.Levels == nil || *l.Levels != wire.Levels{Floor: uint32(want), Active: uint32(want)}
			})
		})
	}
	c.made = false
	require.NoError(t, c.FinalizeNew(t.Context()))
	levels(feature.Base)
	c.made = true
	require.NoError(t, c.FinalizeNew(t.Context()))
	levels(feature.Known)
}

// A folder is new while it has neither location.
func TestIsNew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, sub := range []string{"", "other", string(South), string(North)} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, sub), 0o700))
		got, err := isNew(dir)
		require.NoError(t, err)
		require.Equal(t, sub == "" || sub == "other", got, sub)
	}
	c := startAdjusted(t, nil)
	require.True(t, c.made)
	got, err := isNew(c.o.Dir)
	require.NoError(t, err)
	require.False(t, got)
}

// What a start made that ended before it finalized is finalized by the next one, and no other.
func TestFinalizedByALaterStart(t *testing.T) {
	t.Parallel()
	o := ClusterOptions{Dir: t.TempDir(), Host: "127.0.0.1", PortBase: freeBase(t), Tick: testTick, Logger: slog.New(slog.DiscardHandler)}
	open := func() *Cluster {
		c, err := Open(o)
		require.NoError(t, err)
		require.NoError(t, c.Start(t.Context()))
		return c
	}
	c := open()
	require.NoError(t, c.Close())
	c = open()
	require.True(t, c.made)
	require.NoError(t, c.EnsureAccount(t.Context(), North, "northacct", key64, key64))
	_, err := c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	require.NoError(t, c.FinalizeNew(t.Context()))
	require.NoError(t, c.Close())
	c = open()
	require.False(t, c.made)
	require.NoError(t, c.Close())
}
