package operator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/flow"
)

// whyCase changes two ends that are well, but for a table service that is 5 s behind in lane 3.
type whyCase struct {
	name   string
	change func(north, south *wire.Flow, table *wire.RangeFlow, stream *wire.ReceiverStream)
	// stage and what follows are of the first cause.
	stage    string
	location geo.Location
	waits    string
	lane     bool // of a lane, and not of the whole range
	ranged   geo.RangeID
}

// source is the table range at the primary.
func source(north *wire.Flow) *wire.SourceFlow { return north.Ranges[1].Source }

func whyCases() []whyCase {
	type (
		flow   = *wire.Flow
		ranged = *wire.RangeFlow
		stream = *wire.ReceiverStream
	)
	trouble := &wire.Trouble{Error: "it burns", Seconds: 3}
	return []whyCase{
		{"published and not received", func(flow, flow, ranged, stream) {}, wire.StageInStream, "south", "", true, 4},
		{"in the outbox", func(n, _ flow, _ ranged, s stream) {
			*source(n).Streams[0].Published = s.Applied
		}, wire.StageNotPublished, "north", "", true, 4},
		{"held for payload", func(n, _ flow, _ ranged, _ stream) { source(n).Streams[0].Held = true }, wire.StageNotPublished, "north", "", true, 4},
		{"payload", func(_, _ flow, _ ranged, s stream) { s.Waits = &wire.Waits{Record: 41, For: "payload"} }, wire.StageWaiting, "south", "payload", true, 4},
		{"generation", func(_, _ flow, _ ranged, s stream) { s.Waits = &wire.Waits{Record: 41, For: "generation"} }, wire.StageWaiting, "south", "generation", true, 4},
		{"gate", func(_, _ flow, _ ranged, s stream) { s.Waits = &wire.Waits{Record: 41, For: "gate"} }, wire.StageWaiting, "south", "gate", true, 4},
		{"clock", func(_, _ flow, _ ranged, s stream) { s.Waits = &wire.Waits{Record: 41, For: "clock"} }, wire.StageWaiting, "south", "clock", true, 4},
		{"gap", func(_, _ flow, _ ranged, s stream) { s.Waits = &wire.Waits{Record: 42, For: "gap", Pulling: true} }, wire.StageWaiting, "south", "gap", true, 4},
		{"pulled", func(_, _ flow, _ ranged, s stream) { s.Waits = &wire.Waits{Pulling: true} }, wire.StageWaiting, "south", "gap", true, 4},
		{"pulled over a link that fails", func(_, s flow, _ ranged, st stream) {
			st.Waits, s.Calls = &wire.Waits{Pulling: true, Error: "it burns"}, trouble
		}, wire.StageLink, "south", "", false, 0},
		{"stopped, and the link cut", func(n, _ flow, _ ranged, s stream) {
			s.Stopped, n.Link.State = "forked", wire.LinkCut
		}, wire.StageStopped, "south", "", true, 4},
		{"fell out, and the link cut", func(n, _ flow, _ ranged, _ stream) {
			source(n).Streams[0].Stopped, n.Link.State = "behind-outbox", wire.LinkCut
		}, wire.StageStopped, "north", "", false, 4},
		{"fell out, as the secondary knows", func(_, _ flow, _ ranged, s stream) {
			s.Stopped = "behind-outbox"
		}, wire.StageStopped, "south", "", false, 4},
		{"a copy that is made", func(n, s flow, _ ranged, _ stream) {
			n.Account.Operation, s.Account.Operation = "the first copy", "the first copy"
			for i := range s.Services {
				s.Services[i].Status = wire.Bootstrap
			}
		}, wire.StageWaiting, "north", "bootstrap", false, 0},
		{"a copy that cannot go on", func(n, s flow, _ ranged, _ stream) {
			n.Account.Operation, n.Account.OperationWaits = "the first copy", "no leader"
			for i := range s.Services {
				s.Services[i].Status = wire.Bootstrap
			}
		}, wire.StageFailing, "north", "bootstrap", false, 0},
		{"a copy that will be made, and the link cut", func(n, s flow, _ ranged, _ stream) {
			for i := range s.Services {
				s.Services[i].Status, s.Services[i].Reason = wire.Unavailable, "bootstrap"
			}
			n.Link.State = wire.LinkCut
		}, wire.StageLink, "north", "", false, 0},
		{"link cut", func(n, _ flow, _ ranged, _ stream) { n.Link.State = wire.LinkCut }, wire.StageLink, "north", "", false, 0},
		{"the bus does not answer", func(_, s flow, _ ranged, _ stream) { s.Bus = trouble }, wire.StageLink, "south", "", false, 0},
		{"publishing fails", func(n, _ flow, _ ranged, _ stream) { source(n).Publish = trouble }, wire.StageLink, "north", "", false, 0},
		{"frames are not confirmed", func(n, _ flow, _ ranged, _ stream) { source(n).OldestSeconds = 2 }, wire.StageLink, "north", "", false, 0},
		{"no leader at the secondary", func(_, _ flow, r ranged, _ stream) { r.Leader = "" }, wire.StageFailing, "south", "", false, 4},
		{"commits fail", func(_, _ flow, r ranged, _ stream) { r.Receiver.Commit = trouble }, wire.StageFailing, "south", "", false, 4},
		{"a commit does not end", func(_, _ flow, r ranged, _ stream) { r.Receiver.CommittingSeconds = 2 }, wire.StageFailing, "south", "", false, 4},
		{"the disk of the leader is full", func(_, _ flow, r ranged, _ stream) {
			r.Lead, r.Receiver.Commit = &wire.LeadFlow{DiskFull: true}, trouble
		}, wire.StageFailing, "south", "", false, 4},
		{"no quorum of clocks at the secondary", func(_, _ flow, r ranged, _ stream) {
			r.Lead, r.Receiver.Commit = &wire.LeadFlow{Refuses: "its clock is wrong"}, trouble
		}, wire.StageFailing, "south", "", false, 4},
		{"a replica is slow", func(_, _ flow, r ranged, s stream) {
			r.Lead, r.Receiver.Closed = &wire.LeadFlow{Slowest: "south-2", SlowestSeconds: 2}, s.SyncTime
		}, wire.StageFailing, "south", "", false, 4},
		{"a replica is slow, and the range not late", func(_, _ flow, r ranged, _ stream) {
			r.Lead = &wire.LeadFlow{Slowest: "south-2", SlowestSeconds: 2}
		}, wire.StageInStream, "south", "", true, 4},
		{"no quorum of clocks at the primary", func(n, _ flow, r ranged, s stream) {
			n.Ranges[1].Lead, r.Receiver.Closed = &wire.LeadFlow{Refuses: "its clock is wrong"}, s.SyncTime
			*s = wire.ReceiverStream{SyncTime: s.SyncTime}
		}, wire.StageNotPublished, "north", "", false, 4},
		{"the clocks of the secondary are ahead", func(n, _ flow, r ranged, s stream) {
			n.At, r.Receiver.Closed = s.SyncTime, s.SyncTime
		}, wire.StageClock, "south", "", false, 4},
		{"the clocks are ahead, and something is late by both", func(n, _ flow, _ ranged, s stream) {
			n.At = wire.Time{Time: s.SyncTime.Add(2 * time.Second)}
		}, wire.StageInStream, "south", "", true, 4},
		{"no process receives", func(_, s flow, _ ranged, _ stream) { s.Services = nil }, wire.StageFailing, "south", "", false, 1},
		{"no process receives, others are silent, and no leader is known", func(_, s flow, _ ranged, _ stream) {
			s.Services, s.Silent, s.Ranges[0].Leader = nil, []string{"south-2", "south-3"}, ""
		}, wire.StageFailing, "south", "", false, 1},
		{"no process receives, and the link is cut", func(n, s flow, _ ranged, _ stream) {
			s.Services, n.Link.State = nil, wire.LinkCut
		}, wire.StageLink, "north", "", false, 0},
		{"the secondary has not heard of the failover", func(n, s flow, _ ranged, _ stream) {
			n.Account.Epoch.Number, s.Services = s.Account.Epoch.Number+1, nil
		}, wire.StageLink, "south", "", false, 0},
		{"the process that receives may be silent", func(_, s flow, _ ranged, _ stream) {
			s.Services, s.Silent = nil, []string{"south-2"}
		}, wire.StageUnknown, "south", "", false, 0},
		{"closed times ahead of the clock", func(_, _ flow, r ranged, s stream) {
			*s = wire.ReceiverStream{SyncTime: r.Receiver.Closed}
			r.Receiver.Ahead, r.Receiver.Closed = true, wire.Time{}
		}, wire.StageWaiting, "south", "clock", false, 4},
		{"Last Sync Time ahead of the clock", func(_, f flow, r ranged, s stream) {
			*s = wire.ReceiverStream{SyncTime: wire.Time{Time: f.At.Add(5 * time.Second)}}
			r.Receiver.Closed, f.Services[0].LagSeconds = s.SyncTime, nil
			f.Services[0].Status, f.Services[0].Reason, f.Speeds = wire.Unavailable, "clock", nil
		}, wire.StageWaiting, "south", "clock", false, 0},
		{"no leader at the primary", func(n, _ flow, r ranged, s stream) {
			*s = wire.ReceiverStream{SyncTime: r.Receiver.Closed}
			n.Ranges[1].Source, r.Receiver.Closed = nil, wire.Time{}
		}, wire.StageNotPublished, "north", "", false, 4},
		{"the stream is full", func(n, _ flow, r ranged, s stream) {
			*s = wire.ReceiverStream{SyncTime: r.Receiver.Closed}
			source(n).Publish, source(n).Full, r.Receiver.Closed = trouble, true, wire.Time{}
		}, wire.StageNotPublished, "north", "", false, 4},
		{"the catalog's lane", func(_, s flow, r ranged, st stream) {
			*st = wire.ReceiverStream{SyncTime: r.Receiver.Closed}
			catalog := s.Ranges[0].Receiver
			catalog.Streams[0].ClosedHead, catalog.Streams[0].SyncTime = 9, wire.Time{Time: s.At.Add(-5 * time.Second)}
		}, wire.StageInStream, "south", "", true, 1},
	}
}

// The stage is named, and where: the lane of the range, or of the catalog's, or the whole range, or what keeps
// the locations apart (table).
//
// Capability: Two locations: What holds Last Sync Time back.
func TestWhyNamesTheStage(t *testing.T) {
	for _, c := range whyCases() {
		t.Run(c.name, func(t *testing.T) {
			now := time.Unix(1e9, 0)
			north, south := lagFlows(now)
			ends := []*fake{north, south}
			published, contact := uint64(41), 0.1
			for i := range north.flow.Ranges {
				north.flow.Ranges[i].Leader, south.flow.Ranges[i].Leader = "north-1", "south-1"
				south.flow.Ranges[i].Receiver.Closed, south.flow.Ranges[i].Receiver.ContactSeconds = wire.Time{Time: now}, &contact
				south.flow.Ranges[i].Receiver.Streams[0].SyncTime = wire.Time{Time: now}
			}
			table := &south.flow.Ranges[1]
			source(&north.flow).Streams[0].Published = &published
			table.Receiver.Streams[0].SyncTime = wire.Time{Time: now.Add(-5 * time.Second)}
			lag := 5.0
			south.flow.Services[0].LagSeconds, south.flow.Speeds = &lag, map[string]float64{"table": 3}
			c.change(&north.flow, &south.flow, table, &table.Receiver.Streams[0])

			got, err := backends(t, ends...)["through nodes"].Why(t.Context(), "photos", 0, "")
			require.NoError(t, err)
			w := got.Services[2]
			require.Equal(t, "table", w.Service)
			require.False(t, w.OK)
			require.NotEmpty(t, w.Causes)
			cause := w.Causes[0]
			require.Equal(t, []any{c.stage, c.location, c.waits, c.lane, c.ranged}, []any{cause.Stage, cause.Location, cause.For, cause.Lane != nil, cause.Range}, "%+v", w.Causes)
			require.NotEmpty(t, cause.Detail)
			if strings.HasPrefix(cause.Detail, "behind-outbox") {
				require.Nil(t, w.CaughtUpInSeconds, "it never does")
				require.Contains(t, cause.Detail, "antipodectl account rebuild photos")
			} else if len(south.flow.Speeds) > 0 && len(south.flow.Services) > 0 {
				require.InDelta(t, 2.5, *w.CaughtUpInSeconds, 1e-9)
			}
		})
	}
}

// A service below the threshold is well and has no cause; what could not be asked is named, and no cause is
// made up for it.
//
// Capability: Two locations: What holds Last Sync Time back.
func TestWhyWellAndSilent(t *testing.T) {
	north, south := lagFlows(time.Unix(1e9, 0))
	b := backends(t, north, south)["here"]
	got, err := b.Why(t.Context(), "photos", 3*time.Second, "")
	require.NoError(t, err)
	require.True(t, got.Services[2].OK)
	require.Empty(t, got.Services[2].Causes)
	require.Nil(t, got.Services[2].CaughtUpInSeconds, "nothing was measured")

	south.fail = errors.New("away")
	got, err = b.Why(t.Context(), "photos", 3*time.Second, "")
	require.NoError(t, err)
	require.EqualValues(t, "south", got.Silent[0].Location)
	north.flow.Ranges[1].Source.Publish = &wire.Trouble{Error: "it burns", Seconds: 3}
	seen, err := b.Why(t.Context(), "photos", 0, "")
	require.NoError(t, err)
	require.Equal(t, []any{wire.StageLink, geo.Location("north")}, []any{seen.Services[0].Causes[0].Stage, seen.Services[0].Causes[0].Location}, "the primary alone shows it")
	north.flow.Ranges[1].Source.Publish = nil
	for _, w := range got.Services {
		require.False(t, w.OK)
		require.Len(t, w.Causes, 1)
		require.Equal(t, wire.StageUnknown, w.Causes[0].Stage)
	}

	south.fail, north.fail = nil, errors.New("away")
	got, err = b.Why(t.Context(), "photos", 0, "")
	require.NoError(t, err)
	require.EqualValues(t, "north", got.Silent[0].Location)
	require.Equal(t, wire.StageLink, got.Services[2].Causes[0].Stage, "no message of any range comes")
}

// A link that an operator delays is named before what follows from it, whichever end shows it, and hides nothing of that.
//
// Capability: Two locations: What holds Last Sync Time back.
func TestWhyNamesADelayedLink(t *testing.T) {
	const delays = "an operator delays the link by 4s: antipodectl link heal"
	delayed := wire.Link{State: wire.LinkDelayed, DelaySeconds: 4}
	north, south := lagFlows(time.Unix(1e9, 0))
	b := backends(t, north, south)["here"]
	of := func() (details []string) {
		got, err := b.Why(t.Context(), "photos", 0, "")
		require.NoError(t, err)
		for _, c := range got.Services[2].Causes {
			details = append(details, c.Detail)
		}
		return details
	}
	north.flow.Link = delayed
	north.flow.Ranges[1].Source.OldestSeconds = 4
	require.Equal(t, []string{delays, "the bus at the secondary does not confirm what the primary publishes"}, of()[:2])
	south.fail = context.DeadlineExceeded
	require.Equal(t, delays, of()[0], "the secondary could not be asked")
	got, err := b.Why(t.Context(), "photos", 0, "")
	require.NoError(t, err)
	require.Equal(t, "no answer in time", got.Silent[0].Reason)
	south.fail, north.flow.Link, south.flow.Link, south.flow.Services = nil, wire.Link{}, delayed, nil
	require.Equal(t, delays, of()[0], "no process receives")
	south.flow.Link = wire.Link{}
	require.NotContains(t, of(), delays)
}

// What is named of a service is bounded.
func TestWhyIsBounded(t *testing.T) {
	north, south := lagFlows(time.Unix(1e9, 0))
	to := south.flow.Ranges[1].Receiver
	for lane := range geo.Lane(20) {
		to.Streams = append(to.Streams, wire.ReceiverStream{Stream: "s", Lane: lane, Stopped: "forked"})
	}
	got, err := backends(t, north, south)["here"].Why(t.Context(), "photos", 0, "")
	require.NoError(t, err)
	require.Len(t, got.Services[2].Causes, flow.CausesMax)
	require.Greater(t, got.Services[2].More, 10)
}
