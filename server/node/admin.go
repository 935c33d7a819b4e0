package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	stampnode "antipode/stamp/node"
)

// Bounds of what an operator's question may wait for.
const (
	// peerWait bounds the answer of another process: one that is paused answers never.
	peerWait = 2 * time.Second
	// catalogWait bounds the list of accounts in a status document.
	catalogWait = time.Second
)

// control implements admin.Cluster for a node: what it shows is the location, as its
// processes tell; what it does to other nodes is asked of their processes.
type control struct{ n *Node }

// Status implements admin.Cluster.
func (k control) Status(ctx context.Context) (wire.Status, error) {
	own, err := k.n.view(ctx)
	if err != nil {
		return wire.Status{}, err
	}
	views := append([]view{own}, k.n.peerViews(ctx)...)
	v := merge(views)
	now := k.n.o.Clock.Now()
	return wire.Status{
		Process: wire.Process{PID: os.Getpid(), StartedAt: wire.Time{Time: k.n.started}, UptimeSeconds: now.Sub(k.n.started).Seconds()},
		Link:    v.Link, Locations: []wire.Location{v.Location}, Accounts: v.Accounts,
	}, nil
}

// view is what this process knows.
func (n *Node) view(ctx context.Context) (view, error) {
	l, err := n.location.Describe()
	if err != nil {
		return view{}, err
	}
	l.Alarms, l.Warnings = n.meters.Alarms.Counts(l.Name), slices.Concat(n.o.Warnings, l.Warnings)
	v := view{Location: l, Link: location.DescribeLink(n.link)}
	ctx, cancel := context.WithTimeout(ctx, catalogWait)
	defer cancel()
	list, err := n.location.Directory.Accounts(ctx)
	if err != nil && n.running() {
		v.Location.Warnings = append(slices.Clone(l.Warnings), fmt.Sprintf("the catalog does not answer at %s: accounts may be missing here", n.o.Config.Name))
	}
	for _, a := range list {
		status := wire.AccountStatus{Account: location.DescribeAccount(a)}
		if a.Secondary == l.Name && n.location.Receives() {
			status = n.location.AccountStatus(a, n.o.Clock.Now())
		}
		v.Accounts = append(v.Accounts, status)
	}
	return v, nil
}

// peerViews are those of the other processes; of one that does not answer nothing is known
// but that.
func (n *Node) peerViews(ctx context.Context) []view {
	return askPeers(ctx, n, methodView, func(id geo.NodeID) view {
		v := view{Link: wire.Link{State: wire.LinkUp}}
		v.Location.Nodes = []wire.Node{{Name: wire.NodeName(n.o.Config.Location, id), State: wire.Unreachable}}
		return v
	})
}

// askPeers asks the other processes of the location, all at once, for what is JSON of a T.
// In place of an answer that does not come stands what silent returns.
func askPeers[T any](ctx context.Context, n *Node, method string, silent func(geo.NodeID) T) []T {
	ctx, cancel := context.WithTimeout(ctx, peerWait)
	defer cancel()
	ids := slices.Sorted(maps.Keys(n.peers))
	answers := make([]T, len(ids))
	var asked sync.WaitGroup
	for i, id := range ids {
		asked.Go(func() {
			body, err := n.transport.CallProcess(ctx, id, method, nil)
			if err == nil {
				err = json.Unmarshal(body, &answers[i])
			}
			if err != nil {
				answers[i] = silent(id)
			}
		})
	}
	asked.Wait()
	return answers
}

// Events implements admin.Cluster: those of all processes of the location that answer.
func (k control) Events() []wire.Event {
	out := k.n.location.Events()
	for _, list := range askPeers(context.Background(), k.n, methodEvents, func(geo.NodeID) []wire.Event { return nil }) {
		out = append(out, list...)
	}
	return out
}

// Ready implements admin.Cluster: the node is ready when it runs and all ranges take the
// writes that it hands to their leaders.
func (k control) Ready(ctx context.Context) []wire.LocationReadiness {
	return []wire.LocationReadiness{k.n.location.Readiness(ctx)}
}

// info is an account and where this node serves it.
func (k control) info(a *catalog.Account) wire.AccountInfo {
	return location.AccountInfo(a, func(s geo.Service) string {
		host, port, err := net.SplitHostPort(k.n.o.Config.Listen.Services().Of(s))
		if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
			if name, err := os.Hostname(); err == nil {
				host = name
			}
		}
		return net.JoinHostPort(host, port)
	})
}

// Accounts implements admin.Cluster.
func (k control) Accounts(ctx context.Context) ([]wire.AccountInfo, error) {
	list, err := k.n.location.Directory.Accounts(ctx)
	var out []wire.AccountInfo
	for _, a := range list {
		out = append(out, k.info(a))
	}
	return out, err
}

// Account implements admin.Cluster.
func (k control) Account(ctx context.Context, name geo.Account) (wire.AccountInfo, error) {
	a, err := k.n.location.Directory.Account(ctx, name)
	if err != nil {
		return wire.AccountInfo{}, err
	}
	return k.info(a), nil
}

// Keys implements admin.Cluster.
func (k control) Keys(ctx context.Context, name geo.Account) (wire.Keys, error) {
	a, err := k.n.location.Directory.Account(ctx, name)
	if err != nil {
		return wire.Keys{}, err
	}
	return location.Keys(a), nil
}

// CreateAccount implements admin.Cluster: by the node with the catalog's leader.
func (k control) CreateAccount(ctx context.Context, a wire.NewAccount) (wire.AccountInfo, error) {
	if here := k.n.o.Config.Location; a.Location != here {
		return wire.AccountInfo{}, storageerr.InvalidInput.Saying(
			fmt.Sprintf("this is a node of %s: make an account of %q at one of that location", here, a.Location))
	}
	if k.n.location.Leader(geo.FirstRange(geo.Catalog)) == nil {
		if err := k.n.createElsewhere(ctx, a); err != nil {
			return wire.AccountInfo{}, err
		}
		return k.Account(ctx, a.Name)
	}
	made, err := k.n.location.CreateAccount(ctx, a)
	if err != nil {
		return wire.AccountInfo{}, err
	}
	return k.info(made), nil
}

// StartNode implements admin.Cluster.
func (k control) StartNode(ctx context.Context, l geo.Location, id geo.NodeID) error {
	return k.n.order(ctx, l, id, order{Start: true})
}

// StopNode implements admin.Cluster.
func (k control) StopNode(ctx context.Context, l geo.Location, id geo.NodeID) error {
	return k.n.order(ctx, l, id, order{Stop: true})
}

// StartLocation implements admin.Cluster.
func (k control) StartLocation(ctx context.Context, l geo.Location) error {
	return k.n.orderAll(ctx, l, order{Start: true, Lenient: true})
}

// StopLocation implements admin.Cluster.
func (k control) StopLocation(ctx context.Context, l geo.Location) error {
	return k.n.orderAll(ctx, l, order{Stop: true, Lenient: true})
}

// RecoverRange implements admin.Cluster: the best survivor may be on any node that this
// one reaches.
func (k control) RecoverRange(ctx context.Context, l geo.Location, id geo.RangeID, untrusted bool) (wire.RangeRecovered, error) {
	if here := k.n.o.Config.Location; l != here {
		return wire.RangeRecovered{}, fmt.Errorf("there is no location %s here: this is a node of %s", l, here)
	}
	return k.n.location.RecoverRange(ctx, id, untrusted)
}

// SetLink implements admin.Cluster: at this location's end, in all its processes that
// can be reached.
func (k control) SetLink(ctx context.Context, l wire.Link) error {
	err := k.n.orderAll(ctx, k.n.o.Config.Location, order{Link: &l})
	if errors.Is(err, stampnode.ErrUnreachable) {
		return nil // It comes back with a link that is whole: for tests alone.
	}
	return err
}
