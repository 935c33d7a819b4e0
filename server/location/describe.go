package location

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	wire "antipode/client/admin"
	"antipode/failover/confirm"
	"antipode/geo"
	"antipode/server/flow"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/feature"
	"antipode/stamp/node"
	"antipode/stamp/outbox"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/skew"
)

// Describe describes what this process knows of the location: nodes and leaders in other
// processes are absent. It leaves Alarms empty.
func (l *Location) Describe() (wire.Location, error) {
	out := wire.Location{Name: l.o.Name, State: l.state(), Role: "primary and secondary, by account", Peer: l.o.Other}
	out.Clones = l.Clones()
	var ofNodes []string
	stamp, stopped := l.Stamp()
	for _, id := range l.o.Local {
		n := wire.Node{Name: wire.NodeName(l.o.Name, id), State: wire.Running}
		if n.OutOfService = l.outOfService(stamp, id); n.OutOfService != "" {
			n.State = wire.Failed
		}
		switch {
		case stopped == nil && stamp.Node(id) != nil:
			var err error
			if n, err = l.describeNode(stamp, stamp.Node(id), n); err != nil {
				return out, err
			}
			out.Warnings = stamp.Node(id).PlacementWarnings() // The same on all nodes.
			ofNodes = append(append(ofNodes, stamp.Node(id).Refused()...), lostReplicas(l.o.Name, n)...)
		case n.State == wire.Running:
			n.State = wire.Stopped
		}
		out.Nodes = append(out.Nodes, n)
	}
	out.Warnings = append(out.Warnings, ofNodes...)
	if stopped == nil {
		e := l.Epochs()
		out.Levels, out.Epochs = l.levels(stamp), &e
		if e.Policy {
			out.Warnings = append(out.Warnings, fmt.Sprintf("epochs need no answer of %s: a former primary that starts alone takes writes", l.o.Other))
		}
	}
	for _, d := range l.o.Route.Ranges() {
		r := wire.Range{Range: d.ID, Service: d.Service.String(), ConfiguredReplicas: len(l.o.Nodes)}
		if stopped == nil {
			r.ConfiguredReplicas = len(stamp.Placed(r.Range))
			view, err := l.leaderView(stamp, d.ID)
			if err != nil {
				return out, err
			}
			if r.LeaderView = view; view == nil {
				r.Electing = electing(stamp, r.Range)
			}
			if lead := stamp.Leader(d.ID); lead != nil {
				out.Warnings = append(out.Warnings, l.aheadOfClock(stamp, d, lead.Machine.AppliedState().Last, lead.Levels())...)
				if lead.Machine.Uncompared() {
					out.Warnings = append(out.Warnings, fmt.Sprintf("the %s range was recovered with loss: it takes no writes before its gates are compared with the catalog", d.Service))
				}
			}
		}
		out.Ranges = append(out.Ranges, r)
	}
	return out, nil
}

// electing reports whether a range without a leader is to have one soon; nil where no replica of it runs here.
func electing(stamp *stamp.Stamp, id geo.RangeID) *bool {
	for _, n := range stamp.Nodes() {
		if n := stamp.Node(n); n != nil && n.Range(id) != nil {
			soon := !stamp.Leaderless(id)
			return &soon
		}
	}
	return nil
}

// aheadOfClock warns of a range whose newest time is ahead of the clock here by more than the clocks of a
// stamp may differ: it was given by a wrong clock, and every later time of the range is above it (R6). It does not where the
// clock here is the wrong one: status has a line for that.
func (l *Location) aheadOfClock(stamp *stamp.Stamp, d route.Range, newest geo.Timestamp, levels *feature.Gate) []string {
	now := l.o.Clock.Now()
	if !newest.AheadOf(now) {
		return nil
	}
	for _, id := range stamp.Nodes() {
		if n := stamp.Node(id); n != nil && n.Clocks().Off() != "" {
			return nil
		}
	}
	so := "there is no Last Sync Time before the clock shows it, or the upgrade is finalized: antipodectl cluster finalize"
	if levels.Allows(feature.Walls) {
		so = "Last Sync Time goes by the clock, once the other location has taken them"
	}
	return []string{fmt.Sprintf("times of the %s range are ahead of the clock here by %s, and so is each one that it gives from now on: %s",
		d.Service, newest.Time().Sub(now).Round(time.Second), so)}
}

// state is the state of what this process runs of the location.
func (l *Location) state() wire.State {
	if _, stopped := l.Stamp(); stopped == nil {
		return wire.Running
	}
	if l.starting.Load() != nil {
		return wire.Starting
	}
	return wire.Stopped
}

func (l *Location) describeNode(stamp *stamp.Stamp, n *node.Node, out wire.Node) (wire.Node, error) {
	out.DiskFull, out.SetAsideBytes = n.Room().Full(), n.Room().AsideBytes()
	out.ClockOff = n.Clocks().Off()
	out.DiskBytes, out.DiskFreeBytes, _ = n.Room().Disk()
	out.ClockAheadSeconds, out.LeaseSeconds = farthest(n.Clocks().Offsets()), l.confirming.lease()
	for _, d := range l.o.Route.Ranges() {
		id := d.ID
		r := n.Range(id)
		if r == nil {
			continue // Its replicas are on other nodes.
		}
		out.Level = uint32(r.Levels().Known())
		durable, err := r.Machine.DurableIndex()
		if err != nil {
			return out, err
		}
		view := r.View()
		rep := wire.Replica{
			Range: id, Service: d.Service.String(), Leader: r.Leading(), AppliedIndex: r.Machine.AppliedState().Index, DurableIndex: durable,
			LogBytes: n.LogBytes(id), ReplayedEntries: view.Replayed, LoggedEntriesAtStart: view.Logged,
		}
		if view.Lost != nil {
			rep.Lost = view.Lost.Error()
		}
		if leader := stamp.Leader(id); leader != nil {
			for _, in := range leader.View().InSync {
				rep.InSync = rep.InSync || in == n.ID()
			}
		}
		out.Replicas = append(out.Replicas, rep)
	}
	return out, nil
}

// farthest is the greatest of the offsets in either direction, in seconds; nil without one.
func farthest(of []skew.Offset) *float64 {
	if len(of) == 0 {
		return nil
	}
	ahead := slices.MaxFunc(of, func(a, b skew.Offset) int { return cmp.Compare(a.Ahead.Abs(), b.Ahead.Abs()) }).Ahead.Seconds()
	return &ahead
}

// lease is for how many seconds the lease of the witness holds, 0 for none; nil without a witness.
func (c *confirming) lease() *float64 {
	if c.l.o.Witness == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	left := 0.0
	if c.machine != nil && c.machine.State().Source == confirm.ByWitness {
		left = max(0, (c.machine.Held().Until - c.l.o.Clock.Mono()).Seconds())
	}
	return &left
}

// lostReplicas warns of the replicas of a node that are lost, once, with the reason of the first.
func lostReplicas(l geo.Location, n wire.Node) []string {
	var of []string
	why := ""
	for _, r := range n.Replicas {
		if r.Lost != "" {
			of, why = append(of, fmt.Sprintf("range %d %s", r.Range, r.Service)), cmp.Or(why, r.Lost)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s has lost its replicas of %s (%s): they are rebuilt from two others; a range without a leader waits for antipodectl range recover %s RANGE",
		n.Name, strings.Join(of, ", "), why, l)}
}

func (l *Location) leaderView(stamp *stamp.Stamp, id geo.RangeID) (*wire.LeaderView, error) {
	r := stamp.Leader(id)
	if r == nil {
		return nil, nil // A range without a leader has no leader's view.
	}
	b, err := r.Machine.Backlog()
	if err != nil {
		return nil, err
	}
	return &wire.LeaderView{
		Leader: wire.NodeName(stamp.Location(), r.Leader()), InSyncReplicas: r.InSync(), Standings: l.standings(r.View()),
		BacklogRecords: b.Records, BacklogBytes: b.Bytes, BacklogPayloadBytes: b.Payload, BacklogAgeSeconds: l.age(b).Seconds(),
	}, nil
}

// standings returns the standings of a leader's view, in wall time.
func (l *Location) standings(v ranges.View) []wire.Standing {
	out := make([]wire.Standing, 0, len(v.Standings))
	now, mono := l.o.Clock.Now(), l.o.Clock.Mono()
	for _, s := range v.Standings {
		since := wire.Time{Time: now.Add(s.Since - mono)}
		out = append(out, wire.Standing{Node: wire.NodeName(l.o.Name, s.Node), InSync: s.InSync, Since: since})
	}
	return out
}

// age is the age of the oldest record in a backlog, zero if it is empty.
func (l *Location) age(b outbox.Backlog) time.Duration {
	if b.Oldest == 0 {
		return 0
	}
	return max(0, l.o.Clock.Now().Sub(b.Oldest.Time()))
}

// DescribeAccount describes an account.
func DescribeAccount(a *catalog.Account) wire.Account {
	out := wire.Account{
		Name: a.Name, Redundancy: string(a.Redundancy), Primary: a.Primary, Secondary: a.Secondary, Epoch: wire.EpochOf(a.GeoEpoch()),
	}
	if a.WhenLate != catalog.LateAlert {
		out.WhenLate = a.WhenLate.String()
	}
	if a.LastFailover != 0 {
		out.LastFailover = wire.Time{Time: a.FailedOver().Time()}
	}
	if op := a.Operation; op != nil {
		out.Operation = op.Describe()
		switch op.Kind {
		case catalog.OperationMove:
			out.FailoverPhase = string(op.Move.Phase)
		case catalog.OperationTaken:
			out.FailoverPhase, out.Diverged = wire.FailoverTaken, op.Diverged
		case catalog.OperationAnnounce, catalog.OperationLeave, catalog.OperationBootstrap:
		}
	}
	return out
}

// AccountStatus describes the replication of an account whose secondary is this location.
func (l *Location) AccountStatus(ctx context.Context, a *catalog.Account) wire.AccountStatus {
	l.Look(ctx)
	now := l.o.Clock.Now()
	out := wire.AccountStatus{Account: DescribeAccount(a)}
	for _, svc := range geo.Services {
		out.Services = append(out.Services, flow.Status(svc, l.ReplicationNow(a, svc), now))
	}
	return out
}
