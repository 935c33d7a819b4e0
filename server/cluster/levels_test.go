package cluster

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// A cluster is new while there is nothing of its nodes.
func TestIsNew(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "cluster")}
	require.True(t, o.isNew(), "no folder")
	require.NoError(t, o.prepare(nil)) // Certificates of all nodes.
	require.False(t, o.isNew())
}

// A start that made the nodes and ended early leaves them to be finalized by the one that comes through, once.
func TestFinalizedByALaterStart(t *testing.T) {
	asked := 0
	answer := func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			fails(http.StatusServiceUnavailable, "a node is away")(w, r)
			return
		}
		says(http.StatusOK, wire.Finalized{Level: 3, Raised: true})(w, r)
	}
	admin := gateway(t, "/v1/cluster/finalize", answer)
	o := Options{Dir: t.TempDir(), PortBase: freeBase(t), Binary: filepath.Join(t.TempDir(), "missing")}
	finalize := func() error { return FinalizeNew(t.Context(), Options{Dir: o.Dir, PortBase: admin.PortBase}) }

	other, err := net.Listen("tcp", o.Gateway().Admin())
	require.NoError(t, err)
	require.ErrorContains(t, o.launchMissing(t.Context()), "another process does")
	require.NoError(t, other.Close())
	require.NoError(t, finalize(), "nothing was made")
	require.Zero(t, asked)

	require.ErrorIs(t, o.launchMissing(t.Context()), os.ErrNotExist, "nodes are made, and cannot be started")
	require.False(t, o.isNew())
	o.Binary = filepath.Join(t.TempDir(), "antipode")
	require.NoError(t, os.WriteFile(o.Binary, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700))
	t.Cleanup(func() { require.NoError(t, Stop(context.Background(), o)) })
	require.NoError(t, o.launchMissing(t.Context()))
	require.ErrorContains(t, finalize(), "a node is away")
	require.NoError(t, finalize())
	require.Equal(t, 2, asked)
	require.NoError(t, finalize())
	require.Equal(t, 2, asked, "an operator finalizes the next upgrade")
}

// An operator finalizes what was there before: nodes without the mark, or with that of a program that knew another level.
func TestOthersAreNotFinalized(t *testing.T) {
	o := gateway(t, "/v1/none", fails(http.StatusNotFound, "nothing is asked"))
	require.NoError(t, o.prepare(o.plan()))
	require.NoError(t, FinalizeNew(t.Context(), o))
	require.NoError(t, o.justMade().Set())
	require.Error(t, FinalizeNew(t.Context(), o))
	files, err := filepath.Glob(filepath.Join(o.Dir, "not-finalized"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte("made at feature level 2\n"), 0o600))
	require.NoError(t, FinalizeNew(t.Context(), o))
}
