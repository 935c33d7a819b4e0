package dev

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/bus"
	"antipode/replication/receive"
	"antipode/server/location"
	"antipode/stamp/change"
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
// a restart (R16).
func TestForkedStreamIsUnavailable(t *testing.T) {
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
	require.Positive(t, c.meters.Alarms.Counts(South)[receive.AlarmFork])
	require.Positive(t, c.meters.Alarms.Counts(North)[receive.AlarmFork])
	for _, s := range []geo.Service{geo.Blob, geo.Queue} {
		a, err := c.locations[South].Directory.Account(t.Context(), "northacct")
		require.NoError(t, err)
		require.Equal(t, stats.Live, c.locations[South].ReplicationNow(a, s).Status, "%v", s)
	}
	put(t, c, "northacct", "k", "after")
	before := applied(c)

	require.NoError(t, c.servers[South].Stop())
	require.NoError(t, c.servers[South].Start(t.Context()))
	eventually(t, "the other services are live", func() bool {
		a, err := c.locations[South].Directory.Account(t.Context(), "northacct")
		return err == nil && c.locations[South].ReplicationNow(a, geo.Blob).Status == stats.Live
	})
	table := geo.FirstRange(geo.Table)
	eventually(t, "heads are compared at start", func() bool {
		_, forked := c.locations[South].Forked(table, "northacct")
		return forked
	})
	require.True(t, unavailable())
	require.Equal(t, before, applied(c), "a forked stream moves no further")
}
