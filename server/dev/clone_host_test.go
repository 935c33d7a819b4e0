package dev

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
	"antipode/services/catalog"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
)

// parted is the transport of a location, one of whose nodes no message reaches while it is cut.
type parted struct {
	*memtransport.Transport
	node geo.NodeID
	cut  *atomic.Bool
}

// Send implements node.Transport.
func (p parted) Send(from, to geo.NodeID, batch []node.Envelope) {
	if !p.cut.Load() || from != p.node && to != p.node {
		p.Transport.Send(from, to, batch)
	}
}

// A clone is not made of what a node has that lags: it waits until that has everything that was acknowledged, and refuses
// where it gets none of it in time.
//
// Capability: Failover: A drill on a clone.
func TestCloneOfANodeThatLags(t *testing.T) {
	t.Parallel()
	var cut atomic.Bool
	c := startAdjusted(t, func(o *location.Options) {
		if o.Name == South {
			o.Transport = func() node.Transport { return parted{memtransport.New(), 1, &cut} }
		}
	})
	createTable(t, c, "northacct")
	drained(t, c)
	cut.Store(true)
	south := c.locations[South]
	eventually(t, "the node leads nothing, and others lead", func() bool {
		for _, id := range south.Route().IDs() {
			if lead := south.Leader(id); lead == nil || runningStamp(south).Node(1).Range(id).Leading() {
				return false
			}
		}
		return true
	})
	for i := range 10 {
		put(t, c, "northacct", fmt.Sprint(i), "written")
	}
	written := time.Now()
	drained(t, c)
	eventually(t, "Last Sync Time is behind the writes", func() bool {
		r := tableStats(c, South, "northacct")
		return r.Known() && r.LastSync.Time().After(written)
	})
	eventually(t, "it is refused since the node does not catch up", func() bool { // A starved machine may not come so far in a second.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.admin.OpenClone(ctx, "northacct", hour)
		require.Error(t, err)
		return strings.Contains(err.Error(), "node 1 did not catch up")
	})
	require.Empty(t, cloneFiles(t, c.o.Dir))

	opened := make(chan error, 1)
	go func() {
		_, err := c.admin.OpenClone(t.Context(), "northacct", hour)
		opened <- err
	}()
	cut.Store(false)
	require.NoError(t, <-opened)
	for i := range 10 {
		require.Equal(t, "written", read(t, c, northDrill, "", fmt.Sprint(i)))
	}
}

// filling is a disk with as much room as the test sets.
type filling struct {
	vfs.FS
	left *atomic.Uint64
}

// Unwrap implements vfs.FS.
func (f filling) Unwrap() vfs.FS { return f.FS }

// GetDiskUsage implements vfs.FS.
func (f filling) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.left.Load(), TotalBytes: 1 << 40}, nil
}

// An open clone ends by itself when the disk of its node is nearly full (R9), and its files with it.
//
// Capability: Failover: A drill on a clone.
func TestR9CloneEndsOnAFullDisk(t *testing.T) {
	t.Parallel()
	var left atomic.Uint64
	left.Store(1 << 40)
	c := startAdjusted(t, func(o *location.Options) {
		if o.Name == South {
			o.State.FS = filling{vfs.Default, &left}
		}
	})
	createTable(t, c, "northacct")
	_, err := c.admin.OpenClone(t.Context(), "northacct", hour)
	require.NoError(t, err)
	left.Store(1 << 20)
	eventually(t, "the clone ends", func() bool {
		_, err := c.admin.Clone(t.Context(), "northacct")
		return err != nil
	})
	eventually(t, "its files are deleted", func() bool { return len(cloneFiles(t, c.o.Dir)) == 0 })
	left.Store(1 << 40)
	eventually(t, "another one can be opened", func() bool {
		_, err := c.admin.OpenClone(t.Context(), "northacct", hour)
		return err == nil
	})
}

// No clone is opened of a copy of which a recovery with a loss may have taken a part (R4), until it has a Last Sync Time.
func TestR4NoCloneOfARecoveredCopy(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createAs(t, c, "later", North, string(catalog.LRS))
	createTable(t, c, "later")
	put(t, c, "later", "k", "v")
	updateTo(t, c, "later", string(catalog.RAGRS))
	_, err := c.WaitLive(t.Context(), "later")
	require.NoError(t, err)
	left := follower(c, South)
	require.NoError(t, c.stopNode(t.Context(), South, left))
	c.link.Cut()
	recoverBy(t, c, South, left, wire.RecoverRange{AcceptLoss: true, WithoutPair: true})
	_, err = c.admin.OpenClone(t.Context(), "later", hour)
	require.ErrorContains(t, err, "has only a part of the copy")
	c.link.Heal()
	eventually(t, "a clone opens", func() bool {
		_, err := c.admin.OpenClone(t.Context(), "later", hour)
		return err == nil
	})
	require.Equal(t, "v", read(t, c, "later"+geo.CloneSuffix, "", "k"))
}
