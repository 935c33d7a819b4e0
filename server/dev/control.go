package dev

import (
	"context"
	"fmt"
	"os"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
)

// control implements admin.Cluster.
type control struct{ c *Cluster }

// Status implements admin.Cluster.
func (k control) Status(ctx context.Context) (wire.Status, error) {
	now := k.c.clock.Now()
	s := wire.Status{
		Process: wire.Process{PID: os.Getpid(), StartedAt: wire.Time{Time: k.c.started}, UptimeSeconds: now.Sub(k.c.started).Seconds()},
		Link:    location.DescribeLink(k.c.link),
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
		s.Accounts = append(s.Accounts, k.c.locations[a.Secondary].AccountStatus(a, now))
	}
	return s, nil
}

func (k control) location(name geo.Location) (wire.Location, error) {
	out, err := k.c.locations[name].Describe()
	out.Alarms = k.c.meters.Alarms.Counts(name)
	return out, err
}

// Events implements admin.Cluster.
func (k control) Events() []wire.Event {
	var out []wire.Event
	for _, name := range order() {
		out = append(out, k.c.locations[name].Events()...)
	}
	return out
}

// known lists the accounts as a location that runs knows them.
func (k control) known(ctx context.Context) ([]*catalog.Account, error) {
	err := error(location.ErrStopped)
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

func (k control) info(a *catalog.Account) wire.AccountInfo {
	return location.AccountInfo(a, k.c.door.Of)
}

// Ready implements admin.Cluster: a location is ready when every range has a leader
// and every account's statistics there are live.
func (k control) Ready(ctx context.Context) []wire.LocationReadiness {
	var out []wire.LocationReadiness
	for _, name := range order() {
		out = append(out, k.c.locations[name].Readiness(ctx))
	}
	return out
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
	return location.Keys(a), nil
}

// CreateAccount implements admin.Cluster.
func (k control) CreateAccount(ctx context.Context, n wire.NewAccount) (wire.AccountInfo, error) {
	l := k.c.locations[n.Location]
	if l == nil {
		return wire.AccountInfo{}, storageerr.InvalidInput.Saying(
			fmt.Sprintf("unknown location %q: this process runs %s and %s", n.Location, North, South))
	}
	a, err := l.CreateAccount(ctx, n)
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

func (k control) stampOf(l geo.Location, id geo.NodeID) (*stamp.Stamp, error) {
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
func (k control) StartLocation(ctx context.Context, l geo.Location) error {
	if k.c.locations[l] == nil {
		return fmt.Errorf("there is no location %s", l)
	}
	return k.c.begin(ctx, l)
}

// StopLocation implements admin.Cluster.
func (k control) StopLocation(_ context.Context, l geo.Location) error {
	if k.c.locations[l] == nil {
		return fmt.Errorf("there is no location %s", l)
	}
	return k.c.stopLocation(l)
}

// RecoverRange implements admin.Cluster.
func (k control) RecoverRange(ctx context.Context, l geo.Location, id geo.RangeID, untrusted bool) (wire.RangeRecovered, error) {
	if k.c.locations[l] == nil {
		return wire.RangeRecovered{}, fmt.Errorf("there is no location %s", l)
	}
	return k.c.locations[l].RecoverRange(ctx, id, untrusted)
}

// SetLink implements admin.Cluster.
func (k control) SetLink(_ context.Context, l wire.Link) error {
	location.SetLink(k.c.link, l)
	return nil
}
