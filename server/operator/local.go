package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/metrics"
	"antipode/server/location"
	"antipode/services/catalog"
)

// catalogWait bounds how long a status waits for the list of accounts.
const catalogWait = time.Second

// Local implements Location for a location that this process runs, whole or in part. Its
// operations are those on what runs here.
type Local struct {
	Location *location.Location
	Server   Server
	Clock    clock.Clock
	Alarms   *metrics.Alarms
	// Process adds what the process knows of itself to a node that runs in it. Nil adds nothing.
	Process func(*wire.Node)
	// Warnings are shown in every status.
	Warnings []string
	// Gather returns what the process knows of itself. Nil means that it shows nothing.
	Gather func() wire.Support
	// shows is what is shown of Location. Nil means Location; tests replace it.
	shows view
}

// view is what is shown of the part of a location that this process runs: see location.Location.
type view interface {
	Location() geo.Location
	Subject() string
	Describe() (wire.Location, error)
	Events() []wire.Event
	Readiness(ctx context.Context) wire.LocationReadiness
	Whole() bool
	Receives() bool
	AccountStatus(ctx context.Context, a *catalog.Account) wire.AccountStatus
	DescribeOperation(a *catalog.Account, out *wire.Account)
	DescribePromotion(ctx context.Context, a *catalog.Account, out *wire.Account)
	DescribePromotions(ctx context.Context, of []*catalog.Account, out func(i int) *wire.Account)
	Record(ctx context.Context, name geo.Account) (*catalog.Account, error)
	Records(ctx context.Context) ([]*catalog.Account, error)
	LocationFailover(ctx context.Context) (wire.LocationFailover, error)
	Link() wire.Link
	HasNode(id geo.NodeID) bool
	StartNode(id geo.NodeID) error
	StopNode(id geo.NodeID) error
}

// Server starts and stops a part with its front end: see location.Server.
type Server interface {
	Running() bool
	Begin(ctx context.Context) error
	Stop() error
}

func (l *Local) view() view {
	if l.shows != nil {
		return l.shows
	}
	return l.Location
}

// Name implements Location.
func (l *Local) Name() geo.Location { return l.view().Location() }

// Readiness implements Location.
func (l *Local) Readiness(ctx context.Context) wire.LocationReadiness { return l.view().Readiness(ctx) }

func (l *Local) do(ctx context.Context, q question) error { return q.of.local(ctx, l, q) }

// status describes the location, this end of the link, and the accounts that are known here.
func (l *Local) status(ctx context.Context) (wire.Status, error) {
	d, err := l.view().Describe()
	if err != nil {
		return wire.Status{}, err
	}
	d.Warnings = slices.Concat(l.Warnings, d.Warnings)
	d.Alarms, d.AlarmsRaised = l.Alarms.Counts(d.Name), map[string]wire.Time{}
	for reason, at := range l.Alarms.Raised(d.Name) {
		d.AlarmsRaised[reason] = wire.Time{Time: at}
	}
	for i := range d.Nodes {
		if n := &d.Nodes[i]; l.Process != nil && (n.State == wire.Running || n.State == wire.Starting) {
			l.Process(n)
		}
	}
	s := wire.Status{Link: l.view().Link()}
	ctx, cancel := context.WithTimeout(ctx, catalogWait)
	defer cancel()
	list, err := l.view().Records(ctx)
	if err != nil && l.Server.Running() {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%s at %s: accounts may be missing here", wire.WarnsOfCatalog, l.view().Subject()))
	}
	for _, a := range list {
		status := wire.AccountStatus{Account: location.DescribeAccount(a)}
		if a.Secondary == d.Name && (l.view().Whole() || l.view().Receives()) {
			status = l.view().AccountStatus(ctx, a)
		}
		l.view().DescribeOperation(a, &status.Account)
		s.Accounts = append(s.Accounts, status)
	}
	l.view().DescribePromotions(ctx, list, func(i int) *wire.Account { return &s.Accounts[i].Account })
	if f, err := l.view().LocationFailover(ctx); err == nil && f.UnderWay() {
		d.Failover = &f
	}
	s.Locations = []wire.Location{d}
	return s, nil
}

// accounts lists those of the location's catalog.
func (l *Local) accounts(ctx context.Context) (wire.AccountList, error) {
	reading, cancel := context.WithTimeout(ctx, nodeWait)
	defer cancel()
	list, err := l.view().Records(reading)
	var out wire.AccountList
	for i, a := range list {
		out.Accounts = append(out.Accounts, wire.AccountInfo{Account: location.DescribeAccount(a)})
		l.view().DescribeOperation(a, &out.Accounts[i].Account)
	}
	ctx, end := context.WithTimeout(ctx, primaryWait)
	defer end()
	l.view().DescribePromotions(ctx, list, func(i int) *wire.Account { return &out.Accounts[i].Account })
	return out, err
}

// account is one of the location's catalog.
func (l *Local) account(ctx context.Context, name geo.Account) (wire.AccountInfo, error) {
	a, err := l.view().Record(ctx, name)
	out, err := described(a, err)
	if err == nil {
		l.view().DescribeOperation(a, &out.Account)
		ctx, cancel := context.WithTimeout(ctx, primaryWait)
		defer cancel()
		l.view().DescribePromotion(ctx, a, &out.Account)
	}
	return out, err
}

func described(a *catalog.Account, err error) (wire.AccountInfo, error) {
	if err != nil {
		return wire.AccountInfo{}, err
	}
	return wire.AccountInfo{Account: location.DescribeAccount(a)}, nil
}

// keys are those of an account of the location's catalog.
func (l *Local) keys(ctx context.Context, name geo.Account) (wire.Keys, error) {
	a, err := l.view().Record(ctx, name)
	if err != nil {
		return wire.Keys{}, err
	}
	return location.Keys(a), nil
}
