package dev

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// directDial is the way of the front door, which needs no link.
func directDial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// control implements admin.Cluster.
type control struct{ c *Cluster }

// Status implements admin.Cluster.
func (k control) Status(ctx context.Context) (wire.Status, error) {
	now := k.c.clock.Now()
	s := wire.Status{
		Process: wire.Process{PID: os.Getpid(), StartedAt: wire.Time{Time: k.c.started}, UptimeSeconds: now.Sub(k.c.started).Seconds()},
		Link:    k.linkState(),
	}
	for _, name := range order() {
		l, err := k.location(name)
		if err != nil {
			return s, err
		}
		s.Locations = append(s.Locations, l)
	}
	known, err := k.known(ctx)
	if err != nil {
		return s, err
	}
	for _, a := range known {
		s.Accounts = append(s.Accounts, k.accountStatus(a, now))
	}
	return s, nil
}

func (k control) linkState() wire.Link {
	switch cut, delay := k.c.link.State(); {
	case cut:
		return wire.Link{State: wire.LinkCut}
	case delay > 0:
		return wire.Link{State: wire.LinkDelayed, DelaySeconds: delay.Seconds()}
	}
	return wire.Link{State: wire.LinkUp}
}

func (k control) location(name geo.Location) (wire.Location, error) {
	l := k.c.locations[name]
	out := wire.Location{Name: name, State: wire.Stopped, Role: "primary and secondary, by account", Alarms: k.c.alarms.Counts(name)}
	stamp := l.Stamp()
	if stamp != nil {
		out.State = wire.Running
	}
	for i := range nodesPerLocation {
		id := geo.NodeID(i + 1)
		n := wire.Node{Name: wire.NodeName(name, id), State: wire.Stopped}
		if stamp != nil && stamp.Node(id) != nil {
			var err error
			if n, err = describeNode(stamp, stamp.Node(id), n); err != nil {
				return out, err
			}
		}
		out.Nodes = append(out.Nodes, n)
	}
	for _, svc := range allServices() {
		r := wire.Range{Range: geo.FirstRange(svc), Service: svc.String(), ConfiguredReplicas: nodesPerLocation}
		if stamp != nil {
			view, err := k.leaderView(stamp, geo.FirstRange(svc))
			if err != nil {
				return out, err
			}
			r.LeaderView = view
		}
		out.Ranges = append(out.Ranges, r)
	}
	return out, nil
}

func allServices() []geo.Service { return []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table} }

func describeNode(stamp *node.Stamp, n *node.Node, out wire.Node) (wire.Node, error) {
	out.State = wire.Running
	if n.Failed() != nil {
		out.State = wire.Failed
	}
	for _, svc := range allServices() {
		id := geo.FirstRange(svc)
		r := n.Range(id)
		durable, err := r.Machine.DurableIndex()
		if err != nil {
			return out, err
		}
		view := r.View()
		rep := wire.Replica{
			Range: id, Service: svc.String(), Leader: r.Leading(), AppliedIndex: r.Machine.AppliedState().Index, DurableIndex: durable,
			LogBytes: n.LogBytes(id), ReplayedEntries: view.Replayed, LoggedEntriesAtStart: view.Logged,
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

func (k control) leaderView(stamp *node.Stamp, id geo.RangeID) (*wire.LeaderView, error) {
	r := stamp.Leader(id)
	if r == nil {
		return nil, nil //nolint:nilnil // A range without a leader has no such view.
	}
	b, err := r.Machine.Backlog()
	if err != nil {
		return nil, err
	}
	return &wire.LeaderView{
		Leader: wire.NodeName(stamp.Location(), r.Leader()), InSyncReplicas: r.InSync(),
		BacklogRecords: b.Records, BacklogBytes: b.Bytes, BacklogAgeSeconds: k.c.age(b).Seconds(),
	}, nil
}

// age is that of the oldest record in a backlog.
func (c *Cluster) age(b ranges.Backlog) time.Duration {
	if b.Oldest == 0 {
		return 0
	}
	return max(0, c.clock.Now().Sub(b.Oldest.Time()))
}

// known lists the accounts as a location that runs knows them.
func (k control) known(ctx context.Context) ([]*catalog.Account, error) {
	err := error(errStopped)
	for _, l := range order() {
		if k.c.locations[l].Stamp() == nil {
			continue
		}
		var list []*catalog.Account
		if list, err = k.c.locations[l].Directory.Accounts(ctx); err == nil {
			return list, nil
		}
	}
	return nil, err
}

func (k control) accountStatus(a *catalog.Account, now time.Time) wire.AccountStatus {
	out := wire.AccountStatus{Account: describe(a)}
	for _, svc := range geo.Services {
		rep := k.c.locations[a.Secondary].replication(a, svc)
		s := wire.ServiceStatus{Service: svc.String(), Status: wire.ReplicationStatus(rep.Status), StreamsBehind: rep.Behind}
		if rep.Known() {
			lag := now.Sub(rep.LastSync.Time()).Seconds()
			s.LastSyncTime, s.LagSeconds = wire.Time{Time: rep.LastSync.Time()}, &lag
		}
		out.Services = append(out.Services, s)
	}
	return out
}

func describe(a *catalog.Account) wire.Account {
	return wire.Account{
		Name: a.Name, Redundancy: string(a.Redundancy), Primary: a.Primary, Secondary: a.Secondary, Epoch: wire.EpochOf(a.GeoEpoch()),
	}
}

func (k control) info(a *catalog.Account) wire.AccountInfo {
	out := wire.AccountInfo{Account: describe(a)}
	for _, svc := range geo.Services {
		base := "http://" + k.c.door.of(svc) + "/" + string(a.Name)
		out.Endpoints = append(out.Endpoints, wire.Endpoint{Service: svc.String(), Primary: base, Secondary: base + geo.SecondarySuffix})
	}
	return out
}

// Ready implements admin.Cluster: a location is ready when every range has a leader
// and every account's statistics there are live.
func (k control) Ready(ctx context.Context) []wire.LocationReadiness {
	var out []wire.LocationReadiness
	for _, name := range order() {
		reason := k.notReady(ctx, name)
		out = append(out, wire.LocationReadiness{Name: name, Ready: reason == "", Reason: reason})
	}
	return out
}

func (k control) notReady(ctx context.Context, name geo.Location) string {
	l := k.c.locations[name]
	if l.Stamp() == nil {
		return "the location is stopped; start it with: antipodectl location start " + string(name)
	}
	for _, svc := range allServices() {
		if l.Leader(geo.FirstRange(svc)) == nil {
			return "the " + svc.String() + " range has no leader yet"
		}
	}
	list, err := l.Directory.Accounts(ctx)
	if err != nil {
		return "the catalog does not answer: " + err.Error()
	}
	if len(list) == 0 {
		return "no account is made yet"
	}
	for _, a := range list {
		for _, svc := range geo.Services {
			if a.Secondary == name && !l.replication(a, svc).Known() {
				return fmt.Sprintf("Last Sync Time of %s (%s) is not known yet", a.Name, svc)
			}
		}
	}
	return ""
}

// Accounts implements admin.Cluster.
func (k control) Accounts(ctx context.Context) ([]wire.AccountInfo, error) {
	list, err := k.known(ctx)
	var out []wire.AccountInfo
	for _, a := range list {
		out = append(out, k.info(a))
	}
	return out, err
}

// Account implements admin.Cluster.
func (k control) Account(ctx context.Context, name geo.Account) (wire.AccountInfo, error) {
	a, err := doorDirectory(k).Account(ctx, name)
	if err != nil {
		return wire.AccountInfo{}, err
	}
	return k.info(a), nil
}

// Keys implements admin.Cluster.
func (k control) Keys(ctx context.Context, name geo.Account) (wire.Keys, error) {
	a, err := doorDirectory(k).Account(ctx, name)
	if err != nil {
		return wire.Keys{}, err
	}
	encode := base64.StdEncoding.EncodeToString
	return wire.Keys{Name: name, Key1: encode(a.Key1), Key2: encode(a.Key2)}, nil
}

// CreateAccount implements admin.Cluster.
func (k control) CreateAccount(ctx context.Context, n wire.NewAccount) (wire.AccountInfo, error) {
	l := k.c.locations[n.Location]
	if l == nil {
		return wire.AccountInfo{}, storageerr.InvalidInput.Saying(
			fmt.Sprintf("unknown location %q: this process runs %s and %s", n.Location, North, South))
	}
	key1, err := base64.StdEncoding.DecodeString(n.Key1)
	if err != nil {
		return wire.AccountInfo{}, storageerr.InvalidInput.Saying("key1 is not base64")
	}
	key2, err := base64.StdEncoding.DecodeString(n.Key2)
	if err != nil {
		return wire.AccountInfo{}, storageerr.InvalidInput.Saying("key2 is not base64")
	}
	a, err := l.Directory.Create(ctx, n.Name, key1, key2)
	if err != nil {
		return wire.AccountInfo{}, err
	}
	return k.info(a), nil
}

// StartNode implements admin.Cluster.
func (k control) StartNode(_ context.Context, l geo.Location, id geo.NodeID) error {
	stamp, err := k.stampOf(l, id)
	if err != nil {
		return err
	}
	return stamp.Start(id)
}

// StopNode implements admin.Cluster.
func (k control) StopNode(_ context.Context, l geo.Location, id geo.NodeID) error {
	stamp, err := k.stampOf(l, id)
	if err != nil {
		return err
	}
	return stamp.Stop(id, true)
}

func (k control) stampOf(l geo.Location, id geo.NodeID) (*node.Stamp, error) {
	loc := k.c.locations[l]
	if loc == nil || id < 1 || id > nodesPerLocation {
		return nil, fmt.Errorf("there is no node %s", wire.NodeName(l, id))
	}
	stamp := loc.Stamp()
	if stamp == nil {
		return nil, fmt.Errorf("location %s is stopped; start it first", l)
	}
	return stamp, nil
}

// StartLocation implements admin.Cluster.
func (k control) StartLocation(_ context.Context, l geo.Location) error {
	if k.c.locations[l] == nil {
		return fmt.Errorf("there is no location %s", l)
	}
	return k.c.startLocation(l)
}

// StopLocation implements admin.Cluster.
func (k control) StopLocation(_ context.Context, l geo.Location) error {
	if k.c.locations[l] == nil {
		return fmt.Errorf("there is no location %s", l)
	}
	return k.c.stopLocation(l)
}

// SetLink implements admin.Cluster.
func (k control) SetLink(_ context.Context, l wire.Link) error {
	switch l.State {
	case wire.LinkCut:
		k.c.link.Cut()
	case wire.LinkDelayed:
		k.c.link.Delay(time.Duration(l.DelaySeconds * float64(time.Second)))
	default:
		k.c.link.Heal()
	}
	return nil
}
