package dev

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

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
	c.made.Store(false)
	require.NoError(t, c.FinalizeNew(t.Context()))
	levels(feature.Base)
	c.made.Store(true)
	require.NoError(t, c.FinalizeNew(t.Context()))
	levels(feature.Known)
}

// New locations are ready only once their level is active at all nodes, which FinalizeNew waits for: before, what needs
// it is refused. One that is stopped meanwhile keeps the other one from nothing.
func TestNotReadyBelowItsLevel(t *testing.T) {
	t.Parallel()
	c := startAdjusted(t, nil)
	ready := func(base Ports) wire.Readiness {
		t.Helper()
		client, err := wire.New("http://"+base.Admin(), nil)
		require.NoError(t, err)
		r, err := client.Readiness(t.Context())
		require.NoError(t, err)
		return r
	}
	why := fmt.Sprintf("the new location is at feature level 1 until the start, or antipodectl cluster finalize, raises it to %d", feature.Known)
	for _, l := range ready(c.gateway).Locations {
		require.Equal(t, wire.LocationReadiness{Name: l.Name, State: wire.Running, Serving: true, Reason: why}, l)
	}
	require.NoError(t, c.FinalizeNew(t.Context()))
	for _, l := range c.set {
		require.Equal(t, feature.Known, l.LevelActive(), l.Location())
	}
	require.True(t, ready(c.gateway).Ready)

	c.made.Store(true) // As if the start had ended before it was sure.
	require.True(t, ready(c.gateway).Ready, "an operator may have finalized it")
	require.NoError(t, c.servers[South].Stop())
	require.True(t, ready(c.ports[North]).Ready)
	r := ready(c.ports[South])
	require.False(t, r.Ready)
	require.Contains(t, r.Locations[0].Reason, "the location is stopped")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.ErrorContains(t, c.FinalizeNew(ctx), "southcentralus", "it does not wait for it")
	require.NoError(t, ctx.Err())
}

// FinalizeNew waits for a node that has not applied the level yet: it may lead, and would refuse what needs it.
func TestFinalizeNewWaitsForAllNodes(t *testing.T) {
	t.Parallel()
	c := startAdjusted(t, nil)
	late := wire.NodeName(South, 2)
	require.NoError(t, c.stopNode(t.Context(), South, 2))
	_, err := c.admin.Finalize(t.Context(), wire.Finalize{Without: []string{late}})
	require.NoError(t, err)
	eventually(t, "the others have applied it", func() bool { return c.locations[South].LevelActive() == feature.Known })
	require.NoError(t, c.startNode(t.Context(), South, 2))
	require.NoError(t, c.FinalizeNew(t.Context()))
	require.Equal(t, feature.Known, c.locations[South].LevelActive())
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
	require.True(t, c.made.Load())
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
	require.True(t, c.made.Load())
	require.NoError(t, c.EnsureAccount(t.Context(), North, "northacct", key64, key64))
	_, err := c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	require.NoError(t, c.FinalizeNew(t.Context()))
	require.NoError(t, c.Close())
	c = open()
	require.False(t, c.made.Load())
	require.NoError(t, c.Close())
}
