package operator

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/stamp/keys"
)

// lagFlows are two ends of an account: the secondary has applied 40 of 42 records of lane 3 and knows of
// 41 of them, and the primary has a stream of lane 5 that the secondary does not know.
func lagFlows(now time.Time) (north, south *fake) {
	account := wire.Account{Name: "photos", Primary: "north", Secondary: "south", Epoch: wire.Epoch{Number: 1, Location: "north"}}
	at := func(d time.Duration) wire.Time { return wire.Time{Time: now.Add(d)} }
	north, south = newFake("north"), newFake("south")
	north.flow = wire.Flow{Location: "north", Account: account, At: at(0), Ranges: []wire.RangeFlow{
		{Range: 1, Service: "catalog", Source: &wire.SourceFlow{Streams: []wire.SourceStream{{Stream: "photos/1@north/r1/l9", Lane: 9, Head: 7}}}},
		{Range: 4, Service: "table", Source: &wire.SourceFlow{Streams: []wire.SourceStream{
			{Stream: "photos/1@north/r4/l3", Lane: 3, Head: 42}, {Stream: "photos/1@north/r4/l5", Lane: 5, Head: 2},
		}}},
	}}
	lag := 2.0
	south.flow = wire.Flow{
		Location: "south", Account: account, At: at(0),
		Services: []wire.ServiceStatus{{Service: "table", Status: wire.Live, LastSyncTime: at(-2 * time.Second), LagSeconds: &lag, StreamsBehind: 1}},
		Ranges: []wire.RangeFlow{
			{Range: 1, Service: "catalog", Receiver: &wire.ReceiverFlow{Closed: at(-time.Second), Streams: []wire.ReceiverStream{
				{Stream: "photos/1@north/r1/l9", Lane: 9, Applied: 7, SyncTime: at(-time.Second)},
			}}},
			{Range: 4, Service: "table", Receiver: &wire.ReceiverFlow{Closed: at(-time.Second), Streams: []wire.ReceiverStream{
				{Stream: "photos/1@north/r4/l3", Lane: 3, Applied: 40, ClosedHead: 41, SyncTime: at(-2 * time.Second)},
			}}},
		},
	}
	return north, south
}

// The lag of a stream is its head at the primary minus what the secondary applied; without the primary, the
// closed head known at the secondary minus that, and the answer says which. A service has the sum over its
// streams and those of the catalog.
//
// Capability: Two locations: How far the secondary is, by service, lane and partition.
func TestLagOfBothEnds(t *testing.T) {
	now := time.Unix(1e9, 0)
	north, south := lagFlows(now)
	count := func(n uint64) *uint64 { return &n }
	seconds := func(f float64) *float64 { return &f }
	at := func(d time.Duration) wire.Time { return wire.Time{Time: now.Add(d).UTC()} }
	for what, b := range backends(t, north, south) {
		got, err := b.Lag(t.Context(), "photos", wire.LagQuery{Service: "table"}, "")
		require.NoError(t, err, what)
		require.Len(t, got.Services, 1)
		require.Equal(t, count(4), got.Services[0].LagRecords, what)
		require.False(t, got.Services[0].AtLeast, what)
		require.Equal(t, seconds(2), got.Services[0].LagSeconds, what)
		require.Empty(t, got.Silent, what)
		for i := range got.Streams {
			got.Streams[i].SyncTime.Time = got.Streams[i].SyncTime.UTC()
		}
		require.Equal(t, []wire.StreamLag{
			{
				Stream: "photos/1@north/r1/l9", Service: "catalog", Range: 1, Lane: 9, SyncTime: at(-time.Second), LagSeconds: seconds(1),
				Applied: count(7), Head: count(7), Heads: wire.HeadsPrimary, LagRecords: count(0),
			},
			{
				Stream: "photos/1@north/r4/l3", Service: "table", Range: 4, Lane: 3, SyncTime: at(-2 * time.Second), LagSeconds: seconds(2),
				Applied: count(40), Head: count(42), Heads: wire.HeadsPrimary, LagRecords: count(2),
			},
			{
				Stream: "photos/1@north/r4/l5", Service: "table", Range: 4, Lane: 5, SyncTime: at(-time.Second), LagSeconds: seconds(1),
				Applied: count(0), Head: count(2), Heads: wire.HeadsPrimary, LagRecords: count(2),
			},
		}, got.Streams, what)
	}
	north.fail = errors.New("it burns")
	for what, b := range backends(t, north, south) {
		got, err := b.Lag(t.Context(), "photos", wire.LagQuery{Service: "table"}, "")
		require.NoError(t, err, what)
		require.Len(t, got.Silent, 1, what)
		require.EqualValues(t, "north", got.Silent[0].Location, what)
		require.Contains(t, got.Silent[0].Reason, "it burns", what)
		require.Equal(t, count(1), got.Services[0].LagRecords, what)
		require.True(t, got.Services[0].AtLeast, "the north may have committed more: %s", what)
		require.Len(t, got.Streams, 2, what)
		require.Equal(t, []any{count(41), wire.HeadsClosed, count(1)}, []any{got.Streams[1].Head, got.Streams[1].Heads, got.Streams[1].LagRecords}, what)
	}
}

// What is not known is absent: everything of a secondary that does not answer, the records of a range
// without a closed time, and those of a service one of whose ranges nobody knows.
//
// Capability: Two locations: How far the secondary is, by service, lane and partition.
func TestLagUnknownIsAbsent(t *testing.T) {
	now := time.Unix(1e9, 0)
	north, south := lagFlows(now)
	south.fail = errors.New("away")
	b := backends(t, north, south)["here"]
	got, err := b.Lag(t.Context(), "photos", wire.LagQuery{}, "")
	require.NoError(t, err)
	require.Len(t, got.Services, len(geo.Services))
	for _, s := range got.Services {
		require.Nil(t, s.LagRecords)
		require.Nil(t, s.LagSeconds)
	}
	for _, st := range got.Streams {
		require.Nil(t, st.Applied)
		require.Nil(t, st.LagRecords)
		require.Nil(t, st.LagSeconds)
		require.True(t, st.SyncTime.IsZero())
		require.NotNil(t, st.Head)
	}

	south.fail, north.fail = nil, errors.New("away")
	south.flow.Ranges[0].Receiver = nil
	south.flow.Ranges[1].Receiver.Closed = wire.Time{}
	got, err = b.Lag(t.Context(), "photos", wire.LagQuery{Service: "table"}, "")
	require.NoError(t, err)
	require.Nil(t, got.Services[0].LagRecords)
	require.Len(t, got.Streams, 1)
	require.Nil(t, got.Streams[0].Head)
	require.Nil(t, got.Streams[0].LagRecords)
	require.EqualValues(t, 40, *got.Streams[0].Applied)
}

// A partition is on the lane that its changes are numbered on; a lane without a record is as far as the
// closed time of its range.
//
// Capability: Two locations: How far the secondary is, by service, lane and partition.
func TestLagOfPartition(t *testing.T) {
	now := time.Unix(1e9, 0)
	north, south := lagFlows(now)
	b := backends(t, north, south)["here"]
	lane := keys.Partition{Service: geo.Table, Account: "photos", Container: keys.TableContainer("people"), Object: "smith"}.Lane()
	south.flow.Ranges[1].Receiver.Streams[0].Lane, north.flow.Ranges[1].Source.Streams[0].Lane = lane, lane
	got, err := b.Lag(t.Context(), "photos", wire.LagQuery{Service: "table", Partition: "People/smith"}, "")
	require.NoError(t, err)
	require.Equal(t, &wire.PartitionLane{Service: "table", Key: "People/smith", Lane: lane}, got.Partition)
	require.Len(t, got.Streams, 1)
	require.EqualValues(t, 42, *got.Streams[0].Head)

	south.flow.Ranges[1].Receiver.Streams[0].Lane, north.flow.Ranges[1].Source.Streams[0].Lane = lane+1, lane+1
	got, err = b.Lag(t.Context(), "photos", wire.LagQuery{Service: "table", Partition: "people/smith"}, "")
	require.NoError(t, err)
	require.Len(t, got.Streams, 1)
	require.Empty(t, got.Streams[0].Stream)
	require.Zero(t, *got.Streams[0].LagRecords)
	require.EqualValues(t, 1, *got.Streams[0].LagSeconds)
}

// After a rebuild the streams of the former epoch, whose heads the primary keeps, are no lag once the secondary has left
// that epoch, too; until then they are (R17).
func TestR17LagAfterRebuild(t *testing.T) {
	north, south := lagFlows(time.Unix(1e9, 0))
	next := wire.Epoch{Number: 2, Location: "north"}
	north.flow.Account.Epoch = next
	streams := north.flow.Ranges[1].Source.Streams
	for i := range streams {
		streams[i].Ended = true
	}
	b := backends(t, north, south)["here"]
	lag := func() (records *uint64, streams int) {
		got, err := b.Lag(t.Context(), "photos", wire.LagQuery{Service: "table"}, "")
		require.NoError(t, err)
		return got.Services[0].LagRecords, len(got.Streams)
	}
	records, count := lag()
	require.Nil(t, records, "the rows of the new copy have no numbers yet")
	require.Equal(t, 3, count)
	south.flow.Account.Epoch = next
	records, count = lag()
	require.EqualValues(t, 2, *records, "it still has a cursor of one")
	require.Equal(t, 2, count)
	south.flow.Ranges[1].Receiver.Streams = nil
	records, count = lag()
	require.Zero(t, *records)
	require.Equal(t, 1, count)
}

// After a failover and back the secondary has cursors of the epochs before, of which the primary keeps no head: they are no
// lag, and do not make that of the service unknown (R17). What one of them waits for, or why it is stopped, is not left out, nor
// a stream of the present epoch that the primary does not know.
func TestR17LagAfterAFailoverAndBack(t *testing.T) {
	north, south := lagFlows(time.Unix(1e9, 0))
	third := wire.Epoch{Number: 3, Location: "north"}
	north.flow.Account.Epoch, south.flow.Account.Epoch = third, third
	for i := range north.flow.Ranges {
		north.flow.Ranges[i].Source.Streams = nil
	}
	table, to := north.flow.Ranges[1].Source, south.flow.Ranges[1].Receiver
	table.Streams = []wire.SourceStream{{Stream: "photos/3@north/r4/l3", Lane: 3, Head: 8}}
	to.Streams[0] = wire.ReceiverStream{Stream: "photos/1@north/r4/l3", Lane: 3, Applied: 40}
	b := backends(t, north, south)["here"]
	lag := func() (records *uint64, streams []string) {
		got, err := b.Lag(t.Context(), "photos", wire.LagQuery{Service: "table"}, "")
		require.NoError(t, err)
		for _, s := range got.Streams {
			streams = append(streams, s.Stream)
		}
		return got.Services[0].LagRecords, streams
	}
	records, streams := lag()
	require.Equal(t, []string{"photos/3@north/r4/l3"}, streams)
	require.NotNil(t, records)
	require.EqualValues(t, 8, *records)
	for what, s := range map[string]wire.ReceiverStream{
		"stopped":           {Stream: "photos/1@north/r4/l3", Applied: 40, Stopped: "forked"},
		"waits":             {Stream: "photos/1@north/r4/l3", Applied: 40, Waits: &wire.Waits{Record: 41}},
		"closed above it":   {Stream: "photos/1@north/r4/l3", Applied: 40, ClosedHead: 41},
		"the present epoch": {Stream: "photos/3@north/r4/l7", Applied: 40},
	} {
		to.Streams[0] = s
		records, streams = lag()
		require.Nil(t, records, what)
		require.Contains(t, streams, s.Stream, what)
	}
	to.Streams[0] = wire.ReceiverStream{Stream: "photos/1@north/r4/l3", Applied: 40}
	south.flow.Account.Epoch = wire.Epoch{Number: 1, Location: "north"}
	_, streams = lag()
	require.Contains(t, streams, "photos/1@north/r4/l3", "the secondary has not left it")
}
