package dev

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/bus"
	"antipode/replication/receive"
	"antipode/server/location"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stats"
)

// errSilent is the answer of a call, or of a publish, that a test cuts.
var errSilent = errors.New("cut by the test")

// silentSource fails the calls of a receiver to the source while the bus flows.
type silentSource struct {
	receive.Source
	cut *atomic.Bool
}

func (s silentSource) Records(st geo.Stream, from geo.Seq, bytesMax int, done func([][]byte, error)) {
	if s.cut.Load() {
		done(nil, errSilent)
		return
	}
	s.Source.Records(st, from, bytesMax, done)
}

func (s silentSource) Closed(r geo.RangeID, done func(*change.Closed, error)) {
	if s.cut.Load() {
		done(nil, errSilent)
		return
	}
	s.Source.Closed(r, done)
}

func (s silentSource) Acknowledge(r geo.RangeID, cursors map[geo.Stream]receive.Cursor, full bool, done func([]receive.Mismatch, error)) {
	if s.cut.Load() {
		done(nil, errSilent)
		return
	}
	s.Source.Acknowledge(r, cursors, full, done)
}

func (s silentSource) Chunk(ref extent.Ref, done func([]byte, error)) {
	if s.cut.Load() {
		done(nil, errSilent)
		return
	}
	s.Source.Chunk(ref, done)
}

// silentPublisher fails the publishes of a source while calls work.
type silentPublisher struct {
	bus.Publisher
	cut *atomic.Bool
}

func (p silentPublisher) Publish(subject string, data []byte, done func(error)) error {
	if p.cut.Load() {
		return bus.ErrUnavailable
	}
	return p.Publisher.Publish(subject, data, done)
}

// R16: the primary loses a write that the secondary has, in a recovery with loss, and commits another one
// in its place. Either the secondary's calls fail and the bus flows, or the bus is cut and calls work; in
// either direction; and every process restarts. The secondary finds it out from what it receives: it never
// shows a Last Sync Time at or above the second write, and its statistics become unavailable, with the
// reason, also after the cut has ended.
func TestR16LossIsFoundWhileHalfOfTheLinkIsCut(t *testing.T) {
	t.Parallel()
	for _, half := range []string{"calls", "bus"} {
		for _, primary := range []geo.Location{North, South} {
			t.Run(half+" cut, primary "+string(primary), func(t *testing.T) {
				if testing.Short() && (half != "calls" || primary != North) {
					t.Skip("one of four is enough for the race detector")
				}
				lossUnderCut(t, half, primary)
			})
		}
	}
}

func lossUnderCut(t *testing.T, half string, primary geo.Location) {
	var calls, flow atomic.Bool
	c := startAdjusted(t, func(o *location.Options) {
		if o.Name == primary {
			o.WrapPublisher = func(p bus.Publisher) bus.Publisher { return silentPublisher{p, &flow} }
		} else {
			o.WrapSource = func(s receive.Source) receive.Source { return silentSource{s, &calls} }
		}
	})
	account, secondary := geo.Account("northacct"), South
	if primary == South {
		account, secondary = "southacct", North
	}
	createTable(t, c, account)
	put(t, c, account, "k", "kept")
	left := follower(c, primary)
	eventually(t, "it is at the secondary", func() bool { return read(t, c, account, "-secondary", "k") == "kept" })
	require.NoError(t, c.stopNode(t.Context(), primary, left))
	putEventually(t, c, account, "lost")
	eventually(t, "it is at the secondary", func() bool { return read(t, c, account, "-secondary", "k") == "lost" })

	cut := &calls
	if half == "bus" {
		cut = &flow
	}
	cut.Store(true)
	recoverOf(t, c, primary, left)
	putEventually(t, c, account, "after")
	written, shown := time.Now(), false
	truthful := func() bool {
		r := tableStats(c, secondary, account)
		if r.Known() && !r.LastSync.Time().Before(written) && !shown {
			shown = true
			t.Errorf("Last Sync Time is %s, and what was written before %s is missing", r.LastSync, written)
		}
		return r.Status == stats.Unavailable && r.Reason == stats.Forked
	}
	for _, l := range []geo.Location{North, South} {
		require.NoError(t, c.servers[l].Stop())
	}
	for _, l := range []geo.Location{North, South} {
		require.NoError(t, c.servers[l].Start(t.Context()))
	}
	eventually(t, "the statistics are unavailable because of a fork", truthful)
	cut.Store(false)
	putEventually(t, c, account, "later")
	eventually(t, "the source has stopped the stream too", func() bool {
		require.True(t, truthful())
		lead := c.locations[primary].Leader(geo.FirstRange(geo.Table))
		return lead != nil && len(lead.Machine.Stops()) > 0
	})
	require.Equal(t, "lost", read(t, c, account, "-secondary", "k"))
}

// follower returns a node of a location that does not lead the range of tables.
func follower(c *Cluster, l geo.Location) (id geo.NodeID) {
	for n := geo.NodeID(1); n <= nodesPerLocation; n++ {
		if !runningStamp(c.locations[l]).Node(n).Range(geo.FirstRange(geo.Table)).Leading() {
			id = n
		}
	}
	return id
}

// putEventually writes a value of the key k, again while the location has no leader.
func putEventually(t *testing.T, c *Cluster, account geo.Account, value string) {
	t.Helper()
	eventually(t, "a write of "+value, func() bool {
		a, err := try(c.gateway, account, http.MethodPut, entityPath(account, "", "k"), `{"v":"`+value+`"}`)
		return err == nil && a.status == http.StatusNoContent
	})
}

// recoverOf re-forms all ranges of a location from a node that is stopped; the others lose their power
// and come back afterwards.
func recoverOf(t *testing.T, c *Cluster, l geo.Location, from geo.NodeID) {
	t.Helper()
	recoverBy(t, c, l, from, lossAccepted)
}

func recoverBy(t *testing.T, c *Cluster, l geo.Location, from geo.NodeID, how wire.RecoverRange) {
	t.Helper()
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if id != from {
			require.NoError(t, c.stopNode(t.Context(), l, id))
		}
	}
	require.NoError(t, c.startNode(t.Context(), l, from))
	for _, id := range c.locations[l].Route().IDs() {
		eventually(t, "the range is re-formed", func() bool {
			_, err := c.recoverRange(t.Context(), l, id, how)
			return err == nil
		})
	}
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if id != from {
			require.NoError(t, c.startNode(t.Context(), l, id))
		}
	}
	for _, id := range c.locations[l].Route().IDs() {
		eventually(t, "three are in sync", func() bool {
			lead := c.locations[l].Leader(id)
			return lead != nil && lead.InSync() == nodesPerLocation
		})
	}
}
