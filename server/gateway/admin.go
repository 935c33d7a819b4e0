package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
	"antipode/services/storageerr"
)

// control implements admin.Cluster for a door: it asks the admin ports of the nodes.
type control struct{ d *Gateway }

// errNoNode: no node of a location answers on its admin port.
var errNoNode = &wire.Error{Status: http.StatusServiceUnavailable, Code: "NoNodeAnswers", Message: "no node of the location answers on its admin port"}

// nodeWait bounds the answer of a node's admin port, which itself bounds what it asks of the others.
const nodeWait = 4 * time.Second

// first asks the nodes of a location one after the other until one answers; nodes that
// cannot be reached are passed over.
func first[T any](ctx context.Context, d *Gateway, l geo.Location, f func(context.Context, *wire.Client) (T, error)) (T, error) {
	err := error(errNoNode)
	var none T
	for _, n := range d.nodes[l] {
		if n.admin == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, nodeWait)
		out, askErr := f(ctx, n.admin)
		cancel()
		if askErr == nil {
			return out, nil
		}
		var said *wire.Error
		if errors.As(askErr, &said) && said.Status < http.StatusInternalServerError {
			return none, askErr
		}
		err = askErr
	}
	return none, err
}

// Status implements admin.Cluster: each location as the first of its nodes that answers
// shows it.
func (k control) Status(ctx context.Context) (wire.Status, error) {
	now := k.d.o.Clock.Now()
	out := wire.Status{
		Process: wire.Process{PID: os.Getpid(), StartedAt: wire.Time{Time: k.d.started}, UptimeSeconds: now.Sub(k.d.started).Seconds()},
		Link:    wire.Link{State: wire.LinkUp},
	}
	locations := k.d.locations()
	found := make([]wire.Status, len(locations))
	var asked sync.WaitGroup
	for i, l := range locations {
		asked.Go(func() { found[i] = k.location(ctx, l) })
	}
	asked.Wait()
	for _, s := range found {
		out.Locations = append(out.Locations, s.Locations...)
		if s.Link.State == wire.LinkCut || s.Link.State == wire.LinkDelayed {
			out.Link = s.Link
		}
		for _, a := range s.Accounts {
			at := slices.IndexFunc(out.Accounts, func(o wire.AccountStatus) bool { return o.Name == a.Name })
			if at < 0 {
				out.Accounts = append(out.Accounts, a)
			} else if len(a.Services) > 0 {
				out.Accounts[at].Services = a.Services
			}
		}
	}
	return out, nil
}

// location is what is known of one; of nodes that nobody can ask that they are unreachable.
func (k control) location(ctx context.Context, l geo.Location) wire.Status {
	s, err := first(ctx, k.d, l, func(ctx context.Context, c *wire.Client) (wire.Status, error) { return c.Status(ctx) })
	if err == nil {
		return s
	}
	out := wire.Location{Name: l, State: wire.Unreachable, Warnings: []string{err.Error()}}
	for _, n := range k.d.nodes[l] {
		out.Nodes = append(out.Nodes, wire.Node{Name: n.name, State: wire.Unreachable})
	}
	return wire.Status{Locations: []wire.Location{out}}
}

// Events implements admin.Cluster.
func (k control) Events() []wire.Event {
	var out []wire.Event
	for _, l := range k.d.locations() {
		list, err := first(context.Background(), k.d, l, func(ctx context.Context, c *wire.Client) ([]wire.Event, error) { return c.Events(ctx) })
		if err != nil {
			k.d.o.Logger.Warn("events are missing: no node answers", "location", l, "error", err)
		}
		out = append(out, list...)
	}
	return out
}

// Ready implements admin.Cluster: a location serves when one of its nodes says so, and is
// ready when also the statistics of each account there are live.
func (k control) Ready(ctx context.Context) []wire.LocationReadiness {
	s, err := k.Status(ctx)
	out := make([]wire.LocationReadiness, len(s.Locations))
	var asked sync.WaitGroup
	for i, l := range s.Locations {
		asked.Go(func() {
			out[i] = serving(k.d.readiness(ctx, l.Name))
			out[i].Name, out[i].State = l.Name, l.State
			if out[i].Serving && err == nil {
				out[i].Reason = notReady(l, s.Accounts)
			} else if out[i].Serving {
				out[i].Reason = err.Error()
			}
			out[i].Ready = out[i].Reason == ""
		})
	}
	asked.Wait()
	return out
}

// readiness is what the nodes of a location say of themselves; those that do not answer say
// nothing.
func (d *Gateway) readiness(ctx context.Context, l geo.Location) []wire.LocationReadiness {
	ctx, cancel := context.WithTimeout(ctx, nodeWait)
	defer cancel()
	answers := make([][]wire.LocationReadiness, len(d.nodes[l]))
	var asked sync.WaitGroup
	for i, n := range d.nodes[l] {
		if n.admin == nil {
			continue
		}
		asked.Go(func() {
			if r, err := n.admin.Readiness(ctx); err == nil {
				answers[i] = r.Locations
			}
		})
	}
	asked.Wait()
	return slices.Concat(answers...)
}

// serving makes of what the nodes of a location say what holds for the location: any node
// that serves serves for all. Of the reasons the one of a node that runs is told first.
func serving(nodes []wire.LocationReadiness) wire.LocationReadiness {
	out := wire.LocationReadiness{Reason: errNoNode.Message}
	for _, state := range []wire.State{wire.Stopped, wire.Starting, wire.Running} {
		for _, n := range nodes {
			if n.Serving {
				return wire.LocationReadiness{Serving: true}
			}
			if n.State == state {
				out.Reason = n.Reason
			}
		}
	}
	return out
}

func notReady(l wire.Location, accounts []wire.AccountStatus) string {
	if l.State != wire.Running {
		return "no node of the location runs and answers; see antipodectl status"
	}
	for _, r := range l.Ranges {
		if r.LeaderView == nil {
			return "the " + r.Service + " range has no leader yet"
		}
	}
	if len(accounts) == 0 {
		return "no account is made yet"
	}
	for _, a := range accounts {
		if a.Secondary == l.Name && len(a.Services) == 0 {
			return fmt.Sprintf("Last Sync Time of %s is not known yet", a.Name)
		}
		for _, s := range a.Services {
			if a.Secondary == l.Name && s.LagSeconds == nil {
				return fmt.Sprintf("Last Sync Time of %s (%s) is not known yet", a.Name, s.Service)
			}
		}
	}
	return ""
}

// known asks one location after the other; AccountNotFound only where none has it.
func known[T any](ctx context.Context, d *Gateway, f func(context.Context, *wire.Client) (T, error)) (T, error) {
	var none T
	err := error(errNoNode)
	for _, l := range d.locations() {
		out, askErr := first(ctx, d, l, f)
		if askErr == nil {
			return out, nil
		}
		var said *wire.Error
		if !errors.As(err, &said) || said.Code != storageerr.AccountNotFound.Code {
			err = askErr
		}
	}
	return none, err
}

// info shows an account where the door serves it.
func (k control) info(a wire.AccountInfo) wire.AccountInfo {
	a.Endpoints = location.Endpoints(a.Name, k.d.o.Config.Listen.Services().Of)
	return a
}

// Accounts implements admin.Cluster: those that any location knows; a new one takes a moment
// to be known at both.
func (k control) Accounts(ctx context.Context) ([]wire.AccountInfo, error) {
	var out []wire.AccountInfo
	var errs []error
	for _, l := range k.d.locations() {
		list, err := first(ctx, k.d, l, func(ctx context.Context, c *wire.Client) ([]wire.AccountInfo, error) { return c.Accounts(ctx) })
		errs = append(errs, err)
		for _, a := range list {
			if !slices.ContainsFunc(out, func(o wire.AccountInfo) bool { return o.Name == a.Name }) {
				out = append(out, k.info(a))
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// Account implements admin.Cluster.
func (k control) Account(ctx context.Context, name geo.Account) (wire.AccountInfo, error) {
	a, err := known(ctx, k.d, func(ctx context.Context, c *wire.Client) (wire.AccountInfo, error) { return c.Account(ctx, name) })
	if err != nil {
		return wire.AccountInfo{}, err
	}
	return k.info(a), nil
}

// Keys implements admin.Cluster.
func (k control) Keys(ctx context.Context, name geo.Account) (wire.Keys, error) {
	return known(ctx, k.d, func(ctx context.Context, c *wire.Client) (wire.Keys, error) { return c.Keys(ctx, name) })
}

// CreateAccount implements admin.Cluster.
func (k control) CreateAccount(ctx context.Context, a wire.NewAccount) (wire.AccountInfo, error) {
	if len(k.d.nodes[a.Location]) == 0 {
		return wire.AccountInfo{}, storageerr.InvalidInput.Saying(
			fmt.Sprintf("unknown location %q: this door stands before %v", a.Location, k.d.locations()))
	}
	err := error(errNoNode)
	for _, n := range k.d.nodes[a.Location] {
		if n.admin == nil {
			continue
		}
		var made wire.AccountInfo
		if made, err = n.admin.CreateAccount(ctx, a); err == nil {
			return k.info(made), nil
		}
		if !errors.Is(err, wire.ErrUnreachable) {
			break // It may have begun there; that node says what to do.
		}
	}
	return wire.AccountInfo{}, err
}

// node finds a node and its admin port.
func (k control) node(l geo.Location, id geo.NodeID) (member, error) {
	for _, n := range k.d.nodes[l] {
		if n.ID == id {
			if n.admin == nil {
				return n, fmt.Errorf("the door's configuration does not say where the admin port of %s is", n.name)
			}
			return n, nil
		}
	}
	return member{}, fmt.Errorf("there is no node %s", wire.NodeName(l, id))
}

// StartNode implements admin.Cluster.
func (k control) StartNode(ctx context.Context, l geo.Location, id geo.NodeID) error {
	n, err := k.node(l, id)
	if err == nil {
		_, err = n.admin.StartNode(ctx, n.name)
	}
	return err
}

// StopNode implements admin.Cluster.
func (k control) StopNode(ctx context.Context, l geo.Location, id geo.NodeID) error {
	n, err := k.node(l, id)
	if err == nil {
		_, err = n.admin.StopNode(ctx, n.name)
	}
	return err
}

// StartLocation implements admin.Cluster.
func (k control) StartLocation(ctx context.Context, l geo.Location) error {
	return k.tell(ctx, l, func(ctx context.Context, c *wire.Client) error {
		_, err := c.StartLocation(ctx, l)
		return err
	})
}

// StopLocation implements admin.Cluster.
func (k control) StopLocation(ctx context.Context, l geo.Location) error {
	return k.tell(ctx, l, func(ctx context.Context, c *wire.Client) error {
		_, err := c.StopLocation(ctx, l)
		return err
	})
}

// RecoverRange implements admin.Cluster.
func (k control) RecoverRange(ctx context.Context, l geo.Location, id geo.RangeID, untrusted bool) (out wire.RangeRecovered, err error) {
	err = k.tell(ctx, l, func(ctx context.Context, c *wire.Client) (err error) {
		out, err = c.RecoverRange(ctx, l, id, wire.RecoverRange{AcceptLoss: true, Untrusted: untrusted})
		return err
	})
	return out, err
}

// tell asks the first node of a location that can be reached to do something; it tells the
// others.
func (k control) tell(ctx context.Context, l geo.Location, f func(context.Context, *wire.Client) error) error {
	if len(k.d.nodes[l]) == 0 {
		return fmt.Errorf("there is no location %s", l)
	}
	err := error(errNoNode)
	for _, n := range k.d.nodes[l] {
		if n.admin == nil {
			continue
		}
		if err = f(ctx, n.admin); !errors.Is(err, wire.ErrUnreachable) {
			return err
		}
	}
	return err
}

// SetLink implements admin.Cluster: at both ends.
func (k control) SetLink(ctx context.Context, to wire.Link) error {
	var errs []error
	for _, l := range k.d.locations() {
		errs = append(errs, k.tell(ctx, l, func(ctx context.Context, c *wire.Client) (err error) {
			switch to.State {
			case wire.LinkCut:
				_, err = c.CutLink(ctx)
			case wire.LinkDelayed:
				_, err = c.DelayLink(ctx, to.Delay())
			default:
				_, err = c.HealLink(ctx)
			}
			return err
		}))
	}
	return errors.Join(errs...)
}
