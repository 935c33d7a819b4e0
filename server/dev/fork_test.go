package dev

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/bus"
	"antipode/replication/receive"
	"antipode/server/location"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// forger changes the value of one table record on its way, checksums and all: what a
// source that lost its end and wrote another one would send.
type forger struct {
	bus.Publisher
	armed *atomic.Bool
}

func (p forger) Publish(subject string, data []byte, done func(error)) error {
	f, err := change.ParseFrame(data)
	if err == nil && f.Range == geo.FirstRange(geo.Table) && len(f.Records) > 0 && p.armed.CompareAndSwap(true, false) {
		r, err := change.ParseRecord(f.Records[0])
		if err != nil {
			return err
		}
		value := append([]byte(nil), r.Ops[0].Value...)
		value[len(value)-1] ^= 1
		r.Ops[0].Value = value
		if f.Records[0], err = change.AppendRecord(nil, &r); err != nil {
			return err
		}
		data = change.AppendFrame(nil, &f)
	}
	return p.Publisher.Publish(subject, data, done)
}

// A stream whose two ends differ stops, the alarm is counted at both locations, and
// Last Sync Time is unavailable for the account's service, and for no other; also after
// a restart of all nodes, and an operator sees both ends of the stream (R16).
// It holds invariant 4.
func TestForkedStreamIsUnavailable(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	c := startAdjusted(t, func(o *location.Options) {
		if o.Name == North {
			o.WrapPublisher = func(p bus.Publisher) bus.Publisher { return forger{p, &armed} }
		}
	})
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "before")
	eventually(t, "a value arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "before" })

	armed.Store(true)
	put(t, c, "northacct", "k", "forged")
	unavailable := func() bool { return tableStats(c, South, "northacct").Status == stats.Unavailable }
	eventually(t, "the statistics are unavailable", unavailable)
	for _, l := range []geo.Location{South, North} {
		eventually(t, "the alarm is counted", func() bool { return c.meters.Alarms.Counts(l)[receive.AlarmFork] > 0 })
	}
	for _, l := range []geo.Location{South, North} {
		eventually(t, "the stopped stream is counted", func() bool {
			return gather(t, c)[fmt.Sprintf(`antipode_stopped_streams{location=%q,reason="forked",service="table"}`, l)] == 1
		})
	}
	for _, s := range []geo.Service{geo.Blob, geo.Queue} {
		a, err := c.locations[South].Directory.Account(t.Context(), "northacct")
		require.NoError(t, err)
		require.Equal(t, stats.Live, c.locations[South].ReplicationNow(a, s).Status, "%v", s)
	}
	byHand := geo.Stream{Account: "northacct", Epoch: geo.Epoch{Number: 1, Location: North}, Range: geo.FirstRange(geo.Table), Lane: 31}
	if _, taken := leaderOf(c, South, byHand.Range).Machine.Stopped(byHand); taken {
		byHand.Lane--
	}
	require.NoError(t, c.locations[North].Submit(t.Context(), byHand.Range, stopByHand{byHand, change.Stop{Reason: change.StopLost, Here: geo.Head{Seq: 9}}}))
	forks := listForks(t, c, byHand)
	put(t, c, "northacct", "k", "after")
	before := applied(c)

	for _, l := range []geo.Location{South, North} {
		require.NoError(t, c.servers[l].Stop())
	}
	for _, l := range []geo.Location{South, North} {
		require.NoError(t, c.servers[l].Start(t.Context()))
	}
	require.Equal(t, forks, listForks(t, c, byHand), "the same after a restart")
	eventually(t, "the other services are live", func() bool {
		a, err := c.locations[South].Directory.Account(t.Context(), "northacct")
		return err == nil && c.locations[South].ReplicationNow(a, geo.Blob).Status == stats.Live
	})
	eventually(t, "the stop outlives the restart", func() bool {
		r := tableStats(c, South, "northacct")
		return r.Status == stats.Unavailable && r.Reason == stats.Forked
	})
	require.Equal(t, before, applied(c), "a forked stream moves no further")
	status, err := c.admin.Status(t.Context())
	require.NoError(t, err)
	for _, a := range status.Accounts {
		for _, s := range a.Services {
			if a.Name == "northacct" && s.Service == geo.Table.String() {
				require.Equal(t, wire.Unavailable, s.Status)
				require.Equal(t, string(stats.Forked), s.Reason)
			}
		}
	}
	_, err = adminClient(t, c).UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Rebuild: true})
	require.ErrorContains(t, err, "antipodectl fork resolve northacct --keep southcentralus takes them back", "the secondary is ahead")
	requireRebuilt(t, c, "northacct")
	require.Equal(t, "after", read(t, c, "northacct", "-secondary", "k"))
	all, err := adminClient(t, c).Forks(t.Context())
	require.NoError(t, err)
	require.Empty(t, all.Forks, "the stops ended with their streams")
}

// stopByHand stops a stream in its range.
type stopByHand struct {
	stream geo.Stream
	why    change.Stop
}

func (c stopByHand) Evaluate(tx *ranges.Tx) error {
	tx.Stop(c.stream, c.why)
	return nil
}

// listForks returns what the gateway lists of two streams: what the receiver keeps of the one that has
// forked, and what the source keeps of one that was stopped by hand.
func listForks(t *testing.T, c *Cluster, byHand geo.Stream) []wire.Fork {
	t.Helper()
	client, err := wire.New("http://"+c.gateway.Admin(), nil)
	require.NoError(t, err)
	var found []wire.Fork
	eventually(t, "both locations list what they keep", func() bool {
		all, err := client.Forks(t.Context())
		if err != nil || len(all.Silent) > 0 {
			return false
		}
		// The other end of each stream keeps a stop, too, sooner or later.
		found = slices.DeleteFunc(all.Forks, func(f wire.Fork) bool { return (f.Location == North) != (f.Stream == byHand.String()) })
		return len(found) == 2
	})
	slices.SortFunc(found, func(a, b wire.Fork) int { return strings.Compare(string(a.Location), string(b.Location)) })
	for i, want := range []wire.Fork{{Location: North, Side: wire.SideSource, Reason: "lost"}, {Location: South, Side: wire.SideReceiver, Reason: "forked"}} {
		f := found[i]
		require.Equal(t, want, wire.Fork{Location: f.Location, Side: f.Side, Reason: f.Reason})
		require.Equal(t, geo.Account("northacct"), f.Account)
		require.Equal(t, geo.Table.String(), f.Service)
		require.Positive(t, f.Here.Number)
		require.False(t, f.Since.IsZero())
	}
	return found
}
