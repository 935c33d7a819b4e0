package admin

import (
	"context"
	"fmt"
	"sync"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

const (
	north = geo.Location("northcentralus")
	south = geo.Location("southcentralus")
)

// fake is a Cluster that writes down what was asked of it.
type fake struct {
	mu       sync.Mutex
	asked    []string
	accounts []wire.AccountInfo
	ready    []wire.LocationReadiness
	// servesAfter is how often Ready is asked before the locations serve.
	servesAfter int
	// fail is returned by every method that can.
	fail error
	// silent are those of Events.
	silent []string
	// wait makes control operations last until their context ends.
	wait bool
}

func newFake() *fake {
	f := &fake{ready: []wire.LocationReadiness{{Name: north, Ready: true, Serving: true}, {Name: south, Ready: true, Serving: true}}}
	for _, a := range fullStatus().Accounts {
		f.accounts = append(f.accounts, wire.AccountInfo{Account: a.Account, Endpoints: endpoints(a.Name)})
	}
	return f
}

func endpoints(a geo.Account) []wire.Endpoint {
	var out []wire.Endpoint
	for i, s := range geo.Services {
		base := fmt.Sprintf("http://127.0.0.1:%d/%s", 10000+i, a)
		out = append(out, wire.Endpoint{Service: s.String(), Primary: base, Secondary: base + "-secondary"})
	}
	return out
}

func (f *fake) note(ctx context.Context, format string, args ...any) error {
	f.mu.Lock()
	if ctx.Err() != nil {
		format = "too late: " + format
	}
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	f.mu.Unlock()
	if f.wait {
		<-ctx.Done()
		return fmt.Errorf("wait for the node: %w", ctx.Err())
	}
	return f.fail
}

func (f *fake) calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

func (f *fake) Status(context.Context) (wire.Status, error) { return fullStatus(), f.fail }

func (f *fake) Events(context.Context) wire.EventList {
	return wire.EventList{Silent: f.silent, Events: []wire.Event{
		{Number: 1, Time: instant("2026-11-20T10:00:00.1Z"), Location: north, Kind: "leader-elected", Node: "northcentralus-1", Range: 4, Replica: 1},
		{
			Number: 2, Time: instant("2026-11-20T10:00:02Z"), Location: north, Kind: "left-in-sync", Node: "northcentralus-2", Range: 4,
			Reason: "it did not answer in time; writes go on with the others",
		},
		{Number: 1, Time: instant("2026-11-20T10:00:01Z"), Location: south, Kind: "disk-full", Node: "southcentralus-1"},
	}}
}

func (f *fake) Ready(context.Context) []wire.LocationReadiness {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.servesAfter == 0 {
		return f.ready
	}
	f.servesAfter--
	var out []wire.LocationReadiness
	for _, l := range f.ready {
		out = append(out, wire.LocationReadiness{Name: l.Name, Reason: "the blob range has no leader yet"})
	}
	return out
}

func (f *fake) Accounts(context.Context) ([]wire.AccountInfo, error) { return f.accounts, f.fail }

func (f *fake) Account(_ context.Context, name geo.Account) (wire.AccountInfo, error) {
	for _, a := range f.accounts {
		if a.Name == name {
			return a, f.fail
		}
	}
	return wire.AccountInfo{}, fmt.Errorf("catalog: %w", storageerr.AccountNotFound)
}

func (f *fake) Keys(_ context.Context, name geo.Account) (wire.Keys, error) {
	return wire.Keys{Name: name, Key1: "a2V5MQ==", Key2: "a2V5Mg=="}, f.fail
}

func (f *fake) Flows(ctx context.Context, name geo.Account, only geo.Location) (wire.Flows, error) {
	return wire.Flows{Flows: []wire.Flow{{Location: only}}}, f.note(ctx, "flows %s %s", name, only)
}

func (f *fake) Lag(ctx context.Context, name geo.Account, q wire.LagQuery, only geo.Location) (wire.Lag, error) {
	return wire.Lag{Account: name}, f.note(ctx, "lag %s %+v %s", name, q, only)
}

func (f *fake) Why(ctx context.Context, name geo.Account, threshold time.Duration, only geo.Location) (wire.Why, error) {
	return wire.Why{Account: name}, f.note(ctx, "why %s %s %s", name, threshold, only)
}

func (f *fake) StartVerify(ctx context.Context, name geo.Account, q wire.VerifyQuery) (wire.Verify, error) {
	return wire.Verify{Account: name, VerifyQuery: q, State: wire.VerifyRunning}, f.note(ctx, "verify %s %+v", name, q)
}

func (f *fake) Verify(ctx context.Context, name geo.Account) (wire.Verify, error) {
	return wire.Verify{Account: name, State: wire.VerifyDone, Ranges: []wire.VerifiedRange{{Range: 4}}}, f.note(ctx, "verified %s", name)
}

func (f *fake) Names(ctx context.Context, l geo.Location, q wire.NamesQuery) (wire.Names, error) {
	return wire.Names{Location: l, Version: "v2"}, f.note(ctx, "names of %s %+v", l, q)
}

func (f *fake) Forks(context.Context) (wire.Forks, error) {
	fork := func(l geo.Location, side string, lane geo.Lane) wire.Fork {
		return wire.Fork{Stream: fmt.Sprint("acct/1@north/r4/l", lane), Account: "acct", Range: 4, Lane: lane, Location: l, Side: side, Reason: "forked"}
	}
	return wire.Forks{Forks: []wire.Fork{fork(south, wire.SideReceiver, 17), fork(north, wire.SideSource, 17), fork(south, wire.SideReceiver, 3)}}, f.fail
}

func (f *fake) OpenClone(ctx context.Context, name geo.Account, q wire.OpenClone) (wire.Clone, error) {
	return wire.Clone{Account: name, Name: string(name) + geo.CloneSuffix}, f.note(ctx, "open clone %s for %gs", name, q.ForSeconds)
}

func (f *fake) Clone(ctx context.Context, name geo.Account) (wire.Clone, error) {
	return wire.Clone{Account: name}, f.note(ctx, "clone %s", name)
}

func (f *fake) DropClone(ctx context.Context, name geo.Account) (wire.Clone, error) {
	return wire.Clone{Account: name}, f.note(ctx, "drop clone %s", name)
}

func (f *fake) Reservations(context.Context) (wire.Reservations, error) {
	return wire.Reservations{Reservations: []wire.Reservation{
		{Name: "half", Location: south, Kind: wire.KindReservation, Primary: north, Epoch: wire.Epoch{Number: 2, Location: north}},
		{Name: "half", Location: north, Kind: wire.KindCreation, Primary: north, Epoch: wire.Epoch{Number: 2, Location: north}},
	}}, f.fail
}

func (f *fake) FreeReservation(ctx context.Context, name geo.Account, only geo.Location) (wire.Reservations, error) {
	if err := f.note(ctx, "free %s at %q", name, only); err != nil || name != "half" {
		return wire.Reservations{}, err
	}
	return f.Reservations(ctx)
}

func (f *fake) UpdateAccount(ctx context.Context, name geo.Account, u wire.UpdateAccount) (wire.AccountUpdated, error) {
	if err := f.note(ctx, "update %s to %s", name, u.Redundancy); err != nil {
		return wire.AccountUpdated{}, err
	}
	a, err := f.Account(ctx, name)
	a.Redundancy = u.Redundancy
	return wire.AccountUpdated{AccountInfo: a, Behind: "the link is cut"}, err
}

func (f *fake) CreateAccount(ctx context.Context, a wire.NewAccount) (wire.AccountInfo, error) {
	if err := f.note(ctx, "create %s at %s key1 %q key2 %q", a.Name, a.Location, a.Key1, a.Key2); err != nil {
		return wire.AccountInfo{}, err
	}
	secondary := map[geo.Location]geo.Location{north: south, south: north}[a.Location]
	return wire.AccountInfo{
		Account: wire.Account{
			Name: a.Name, Redundancy: "RA-GRS", Primary: a.Location, Secondary: secondary,
			Epoch: wire.Epoch{Number: 1, Location: a.Location},
		},
		Endpoints: endpoints(a.Name),
	}, nil
}

func (f *fake) StartNode(ctx context.Context, l geo.Location, id geo.NodeID) error {
	return f.note(ctx, "start node %d of %s", id, l)
}

func (f *fake) StopNode(ctx context.Context, l geo.Location, id geo.NodeID) error {
	return f.note(ctx, "stop node %d of %s", id, l)
}

func (f *fake) StartLocation(ctx context.Context, l geo.Location) error {
	return f.note(ctx, "start location %s", l)
}

func (f *fake) StopLocation(ctx context.Context, l geo.Location) error {
	return f.note(ctx, "stop location %s", l)
}

func (f *fake) RecoverRange(ctx context.Context, l geo.Location, id geo.RangeID, in wire.RecoverRange) (wire.RangeRecovered, error) {
	err := f.note(ctx, "recover range %d of %s, %+v", id, l, in)
	return wire.RangeRecovered{
		Location: l, Range: id, Recovery: "recovery 1, from node 2", Survivor: "northcentralus-2", Replica: 4402341478401, Trusted: true,
		KeptIndex: 1042, KeptTerm: 7, KnownCommitted: 1040,
	}, err
}

func (f *fake) ResumeStream(ctx context.Context, l geo.Location, s wire.StreamName) (wire.Resumed, error) {
	return wire.Resumed{Stream: s.String(), Location: l, Reason: "version"}, f.note(ctx, "resume %s at %s", s, l)
}

func (f *fake) Finalize(ctx context.Context, in wire.Finalize) (wire.Finalized, error) {
	if in.Level == nil {
		return wire.Finalized{Level: 2, Locations: []geo.Location{north, south}}, f.note(ctx, "finalize without %s", in.Without)
	}
	return wire.Finalized{Level: 2, Raised: true, Locations: []geo.Location{north, south}}, f.note(ctx, "finalize level %d without %s", *in.Level, in.Without)
}

func (f *fake) RaiseLevels(ctx context.Context, l geo.Location, to wire.Levels) (wire.Levels, error) {
	return to, f.note(ctx, "raise %s to %+v", l, to)
}

func (f *fake) OverrideEpochs(ctx context.Context, l geo.Location) (wire.Epochs, error) {
	return wire.Epochs{Confirmed: true, By: "override"}, f.note(ctx, "override epochs of %s", l)
}

func (f *fake) LocationFailover(ctx context.Context, l geo.Location) (wire.LocationFailover, error) {
	return wire.LocationFailover{From: l, Moving: map[string]int{}, Moved: 3}, f.note(ctx, "failover of location %s", l)
}

func (f *fake) FailLocationOver(ctx context.Context, l geo.Location, in wire.Failover) (wire.LocationFailover, error) {
	return wire.LocationFailover{From: l, Type: in.Type, Phase: wire.LocationMoving}, f.note(ctx, "fail over %s %+v", l, in)
}

func (f *fake) ResolveFork(ctx context.Context, l geo.Location, q wire.ResolveFork) (wire.ForkResolved, error) {
	return wire.ForkResolved{Stream: q.String(), Service: "table", Keep: q.Keep, State: "settling"}, f.note(ctx, "resolve %s at %s keep %s", q.StreamName, l, q.Keep)
}

func (f *fake) Found(ctx context.Context, l geo.Location, q wire.FoundQuery) (wire.Found, error) {
	return wire.Found{Location: l, Rows: []wire.FoundRow{{Key: "02", Account: q.Account}}}, f.note(ctx, "found %s at %s", q.Account, l)
}

func (f *fake) FoundPayload(ctx context.Context, l geo.Location, q wire.FoundChunk) (wire.FoundPayload, error) {
	return wire.FoundPayload{Data: []byte("data")}, f.note(ctx, "payload %s %d at %s", q.Key, q.Chunk, l)
}

func (f *fake) DropFound(ctx context.Context, l geo.Location, q wire.DropFound) (wire.FoundDropped, error) {
	return wire.FoundDropped{Dropped: len(q.Keys)}, f.note(ctx, "drop %v at %s", q.Keys, l)
}

func (f *fake) CopyAlone(ctx context.Context, l geo.Location, q wire.AloneQuery) (wire.CopyAlone, error) {
	return wire.CopyAlone{Account: q.Account, Location: l, Rows: 7}, f.note(ctx, "alone %s at %s", q.Account, l)
}

func (f *fake) Lost(ctx context.Context, l geo.Location, q wire.LostQuery) (wire.Lost, error) {
	return wire.Lost{Location: l, Changes: []wire.LostChange{{Key: "02"}}}, f.note(ctx, "lost %s at %s", q.Account, l)
}

func (f *fake) DropLost(ctx context.Context, l geo.Location, q wire.DropLost) (wire.LostDropped, error) {
	return wire.LostDropped{Dropped: 1}, f.note(ctx, "drop lost %s at %s", q.Account, l)
}

func (f *fake) SetLink(ctx context.Context, l wire.Link) error {
	return f.note(ctx, "link %s %gs", l.State, l.DelaySeconds)
}

func instant(s string) wire.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return wire.Time{Time: t}
}

// fullStatus has every field and every state once: a leaderless range, a stopped
// and a failed node, a service that lags, one unknown, one unavailable with the last
// value that held. A Cluster leaves Version and the sum of Alarms to the handler.
func fullStatus() wire.Status {
	lag, lagHeld, ahead, lease := 0.213, 75.5, -0.0021, 8.4
	percent, speed, left := 62.6, 1.5e6, 2148.4
	replica := func(leader, inSync bool) wire.Replica {
		return wire.Replica{
			Range: 4, Service: "table", Leader: leader, InSync: inSync, AppliedIndex: 1042,
			DurableIndex: 1000, LogBytes: 81920, ReplayedEntries: 12, LoggedEntriesAtStart: 940,
		}
	}
	return wire.Status{
		Process: wire.Process{PID: 4242, StartedAt: instant("2026-11-21T15:00:00Z"), UptimeSeconds: 245.75},
		Link:    wire.Link{State: wire.LinkDelayed, DelaySeconds: 0.25},
		Locations: []wire.Location{
			{
				Name: north, State: wire.Running, Role: "primary of 1 account, secondary of 1 account",
				Peer: south, Levels: &wire.Levels{Floor: 2, Active: 1},
				Nodes: []wire.Node{
					{
						Name: "northcentralus-1", State: wire.Running, Level: 2, Version: "1.2.3", UptimeSeconds: 245.75,
						DiskBytes: 1 << 40, DiskFreeBytes: 700 << 30, ClockAheadSeconds: &ahead, CertificateEnds: instant("2027-02-19T15:00:00Z"),
						LeaseSeconds: &lease, Replicas: []wire.Replica{replica(true, true)},
					},
					{Name: "northcentralus-2", State: wire.Running, DiskFull: true, SetAsideBytes: 3 << 29, Replicas: []wire.Replica{replica(false, true)}},
					{Name: "northcentralus-3", State: wire.Stopped},
				},
				Ranges: []wire.Range{{Range: 4, Service: "table", ConfiguredReplicas: 3, LeaderView: &wire.LeaderView{
					Standings: []wire.Standing{
						{Node: "northcentralus-1", InSync: true, Since: instant("2026-11-20T09:00:00Z")},
						{Node: "northcentralus-2", InSync: true, Since: instant("2026-11-20T09:00:00Z")},
						{Node: "northcentralus-3", Since: instant("2026-11-20T10:00:02Z")},
					},
					Leader: "northcentralus-1", InSyncReplicas: 2, BacklogRecords: 12, BacklogBytes: 3456, BacklogPayloadBytes: 7890, BacklogAgeSeconds: 0.213,
				}}},
				Alarms: map[string]uint64{"gap": 1}, AlarmsRaised: map[string]wire.Time{"gap": instant("2026-11-21T15:02:07Z")},
			},
			{
				Name: south, State: wire.Running, Role: "primary of 1 account, secondary of 1 account",
				Nodes: []wire.Node{
					{Name: "southcentralus-1", State: wire.Running, Replicas: []wire.Replica{replica(false, false)}},
					{Name: "southcentralus-2", State: wire.Failed, OutOfService: "open state: no such device: mend that, then: antipodectl node start southcentralus-2"},
					{Name: "southcentralus-3", State: wire.Stopped},
				},
				Ranges: []wire.Range{{Range: 4, Service: "table", ConfiguredReplicas: 3}},
				Alarms: map[string]uint64{"gap": 1, "stream_recreated": 1},
			},
		},
		Accounts: []wire.AccountStatus{
			{
				Account: wire.Account{
					Name: "devstoreaccount1", Redundancy: "RA-GRS", Primary: north, Secondary: south,
					Epoch: wire.Epoch{Number: 1, Location: north},
				},
				Services: []wire.ServiceStatus{
					{Service: "blob", Status: wire.Live, LastSyncTime: instant("2026-11-21T15:04:05.1234567Z"), LagSeconds: &lag},
					{Service: "queue", Status: wire.Bootstrap},
					{
						Service: "table", Status: wire.Unavailable, Reason: "forked", LastSyncTime: instant("2026-11-21T15:02:50.2Z"),
						LagSeconds: &lagHeld, StreamsBehind: 3,
					},
				},
			},
			{Account: wire.Account{
				Name: "backwards", Redundancy: "RA-GRS", Primary: south, Secondary: north,
				Epoch: wire.Epoch{Number: 2, Location: south}, FailoverPhase: wire.FailoverClaiming,
				Operation: "an unplanned failover to this location: it waits for the witness", OperationWaits: "the witness does not answer",
			}},
			{Account: wire.Account{
				Name: "filling", Redundancy: "GRS", Primary: south, Secondary: north, Epoch: wire.Epoch{Number: 3, Location: south},
				Operation: "the first copy of its data at the other location (bootstrap)", Copied: &wire.Copied{
					CopySize: wire.CopySize{Rows: 1200, Bytes: 340_000, PayloadBytes: 5 << 30},
					Total:    &wire.CopySize{Rows: 2000, Bytes: 700_000, PayloadBytes: 8 << 30}, Percent: &percent,
					BytesPerSecond: &speed, SecondsLeft: &left, WaitingBytes: 3 << 20,
				},
			}},
			{Account: wire.Account{
				Name: "onlysouth", Redundancy: "LRS", Primary: south, Epoch: wire.Epoch{Number: 1, Location: south},
			}},
		},
	}
}

func (f *fake) Support(ctx context.Context, l geo.Location, id geo.NodeID) (wire.Support, error) {
	if l == "" {
		return wire.Support{Name: "process"}, f.note(ctx, "support")
	}
	return wire.Support{Name: wire.NodeName(l, id)}, f.note(ctx, "support of %s", wire.NodeName(l, id))
}
