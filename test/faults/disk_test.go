package faults

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/config"
	"antipode/services/storageerr"
	"antipode/test/faults/rig"
	"antipode/test/load"
	"antipode/test/rest"
)

// Of the disk that the test shares with the whole machine: what the nodes are configured to leave free is diskAbove less than
// there is, and the file that fills it leaves them diskBelow less than that. Both are far above what the tests of other
// packages write, or delete, meanwhile: uploads of 6 GiB, with their copies. On a small disk they are a quarter of it.
const (
	diskAbove = 12 << 30
	diskBelow = 8 << 30
	diskLeast = 8 << 30
)

// free is how much room the disk of a folder has, in bytes.
func free(t *testing.T, dir string) uint64 {
	t.Helper()
	var s syscall.Statfs_t
	require.NoError(t, syscall.Statfs(dir, &s))
	return s.Bavail * uint64(s.Bsize)
}

// When the disk of the primary's nodes has less than their reserve left, under load, writes
// are refused as busy, reads go on and each node says so; when there is room again writes go
// on by themselves, and all that was acknowledged is at both locations.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	room := free(t, dir)
	require.Greater(t, room, uint64(diskLeast), "bytes free for temporary files; TMPDIR says where they are")
	reserve := room - min(diskAbove, room/4)
	below := min(diskBelow, room/4)
	r := rig.StartTest(t, func(c *config.Node) {
		if c.Location == rig.North {
			c.ReserveBytes = reserve
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), resolveWait+2*readyWait)
	defer cancel()
	gateway := r.Client(rig.Gateway, false)
	setup(ctx, t, gateway)
	l := load.New(gateway, r.Client(rig.Gateway, true), load.Options{Clients: 8, EntitiesEach: 8, BigClients: 1, BigWritesMax: 2, Seed: *seed})
	require.NoError(t, l.Setup(ctx))
	running, halt := context.WithCancel(ctx)
	defer halt()
	loaded := make(chan error, 1)
	go func() { loaded <- l.Run(running) }()

	write := func() rest.Answer {
		a, err := gateway.Replace(ctx, table, "", rest.Entity{"PartitionKey": "p", "RowKey": "r", "V": "kept"})
		require.NoError(t, err)
		return a
	}
	require.True(t, write().OK())
	fill := filepath.Join(dir, "fill")
	f, err := os.Create(fill)
	require.NoError(t, err)
	require.NoError(t, syscall.Fallocate(int(f.Fd()), 0, 0, int64(free(t, dir)-reserve+below)))
	require.NoError(t, f.Close())
	began := time.Now()
	for a := write(); a.Code != storageerr.ServerBusy.Code; a = write() {
		require.Less(t, time.Since(began), readyWait, "writes go on on a full disk: %v", a)
		rig.Pause(ctx, poll)
	}
	t.Logf("writes refused %v after the disk was full", time.Since(began).Round(time.Millisecond))
	a, err := gateway.PutBlob(ctx, container, "big", make([]byte, 1<<20))
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, a.Status, "%v", a)
	e, a, err := gateway.GetEntity(ctx, table, "p", "r")
	require.NoError(t, err)
	require.True(t, a.OK(), "%v", a)
	require.Equal(t, "kept", e["V"])
	requireEvents(ctx, t, r, "disk-full")
	requireDiskFull(ctx, t, r, true)

	require.NoError(t, os.Remove(fill))
	began = time.Now()
	for a := write(); !a.OK(); a = write() {
		require.Less(t, time.Since(began), readyWait, "no writes though there is room: %v", a)
		rig.Pause(ctx, poll)
	}
	t.Logf("writes again %v after there was room", time.Since(began).Round(time.Millisecond))
	rig.Pause(ctx, time.Second)
	halt()
	require.NoError(t, <-loaded)
	requireEvents(ctx, t, r, "disk-has-room")
	requireDiskFull(ctx, t, r, false)
	require.NoError(t, l.Resolve(ctx), "at the primary")
	require.NoError(t, l.Final(ctx), "at -secondary")
}

// requireDiskFull requires that the status at the gateway shows every node of the primary
// location with its disk full, or none, and no node of the other location.
func requireDiskFull(ctx context.Context, t *testing.T, r *rig.Rig, full bool) {
	t.Helper()
	status, err := r.Admin(rig.Gateway).Status(ctx)
	require.NoError(t, err)
	for _, l := range status.Locations {
		require.Len(t, l.Nodes, rig.Nodes)
		for _, n := range l.Nodes {
			require.Equal(t, full && l.Name == rig.North, n.DiskFull, n.Name)
		}
	}
}

// requireEvents requires that each node of the primary location reports an event.
func requireEvents(ctx context.Context, t *testing.T, r *rig.Rig, kind string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for i, name := range rig.NodesOf(rig.North) {
		for {
			list, err := r.Admin(name).Events(ctx)
			reported := slices.ContainsFunc(list.Events, func(e wire.Event) bool {
				return e.Kind == kind && e.Node == wire.NodeName(rig.North, geo.NodeID(i+1))
			})
			if err == nil && reported {
				break
			}
			require.NoError(t, ctx.Err(), "%s reports no %s: %v, %v", name, kind, list.Events, err)
			rig.Pause(ctx, poll)
		}
	}
}
