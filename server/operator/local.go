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
	Location part
	Server   Server
	Clock    clock.Clock
	Alarms   *metrics.Alarms
	// Process adds what the process knows of itself to a node that runs in it. Nil adds nothing.
	Process func(*wire.Node)
	// Warnings are shown in every status.
	Warnings []string
	// Gather returns what the process knows of itself. Nil means that it shows nothing.
	Gather func() wire.Support
}

// part is what this process runs of a location: see location.Location.
type part interface {
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
	CreateAccount(ctx context.Context, n wire.NewAccount) (*catalog.Account, error)
	Flow(ctx context.Context, name geo.Account) (wire.Flow, error)
	UpdateAccount(ctx context.Context, name geo.Account, u wire.UpdateAccount) (a *catalog.Account, behind, err error)
	Names(ctx context.Context, since string, after geo.Account) (wire.Names, error)
	Promote(ctx context.Context, name geo.Account, f wire.Failover) (wire.AccountUpdated, error)
	Forks(ctx context.Context) (wire.Forks, error)
	StartVerify(ctx context.Context, name geo.Account, q wire.VerifyQuery) (wire.Verify, error)
	Verified(name geo.Account) (wire.Verify, error)
	Incomplete(ctx context.Context) ([]*catalog.Account, error)
	Free(ctx context.Context, name geo.Account) (*catalog.Account, error)
	HasNode(id geo.NodeID) bool
	StartNode(id geo.NodeID) error
	StopNode(id geo.NodeID) error
	RecoverRange(ctx context.Context, id geo.RangeID, in wire.RecoverRange) (wire.RangeRecovered, error)
	ResumeStream(ctx context.Context, s wire.StreamName) (wire.Resumed, error)
	ResolveFork(ctx context.Context, q wire.ResolveFork) (wire.ForkResolved, error)
	Found(ctx context.Context, q wire.FoundQuery) (wire.Found, error)
	FoundPayload(ctx context.Context, q wire.FoundChunk) (wire.FoundPayload, error)
	DropFound(ctx context.Context, q wire.DropFound) (wire.FoundDropped, error)
	CopyAlone(ctx context.Context, name geo.Account) (wire.CopyAlone, error)
	Record(ctx context.Context, name geo.Account) (*catalog.Account, error)
	Records(ctx context.Context) ([]*catalog.Account, error)
	Lost(ctx context.Context, q wire.LostQuery) (wire.Lost, error)
	DropLost(ctx context.Context, q wire.DropLost) (wire.LostDropped, error)
	OpenClone(ctx context.Context, name geo.Account, q wire.OpenClone) (wire.Clone, error)
	Clone(name geo.Account) (wire.Clone, error)
	DropClone(ctx context.Context, name geo.Account) (wire.Clone, error)
	OverrideEpochs(ctx context.Context) (wire.Epochs, error)
	RaiseLevels(ctx context.Context, to wire.Levels) error
	LocationFailover(ctx context.Context) (wire.LocationFailover, error)
	FailLocationOver(ctx context.Context, f wire.Failover) (wire.LocationFailover, error)
	Link() wire.Link
	SetLink(to wire.Link)
}

// Server starts and stops a part with its front end: see location.Server.
type Server interface {
	Running() bool
	Begin(ctx context.Context) error
	Stop() error
}

// Name implements Location.
func (l *Local) Name() geo.Location { return l.Location.Location() }

// Status implements Location.
func (l *Local) Status(ctx context.Context) (Status, error) {
	d, err := l.Location.Describe()
	if err != nil {
		return Status{}, err
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
	s := Status{Location: d, Link: l.Location.Link()}
	ctx, cancel := context.WithTimeout(ctx, catalogWait)
	defer cancel()
	list, err := l.Location.Records(ctx)
	if err != nil && l.Server.Running() {
		s.Location.Warnings = append(s.Location.Warnings, fmt.Sprintf("%s at %s: accounts may be missing here", wire.WarnsOfCatalog, l.Location.Subject()))
	}
	for _, a := range list {
		status := wire.AccountStatus{Account: location.DescribeAccount(a)}
		if a.Secondary == d.Name && (l.Location.Whole() || l.Location.Receives()) {
			status = l.Location.AccountStatus(ctx, a)
		}
		l.Location.DescribeOperation(a, &status.Account)
		s.Accounts = append(s.Accounts, status)
	}
	l.Location.DescribePromotions(ctx, list, func(i int) *wire.Account { return &s.Accounts[i].Account })
	if f, err := l.Location.LocationFailover(ctx); err == nil && f.UnderWay() {
		s.Location.Failover = &f
	}
	return s, nil
}

// Events implements Location.
func (l *Local) Events(context.Context) wire.EventList {
	return wire.EventList{Events: l.Location.Events()}
}

// Readiness implements Location.
func (l *Local) Readiness(ctx context.Context) wire.LocationReadiness {
	return l.Location.Readiness(ctx)
}

// Accounts implements Location.
func (l *Local) Accounts(ctx context.Context) ([]wire.Account, error) {
	reading, cancel := context.WithTimeout(ctx, nodeWait)
	defer cancel()
	list, err := l.Location.Records(reading)
	var out []wire.Account
	for _, a := range list {
		out = append(out, location.DescribeAccount(a))
		l.Location.DescribeOperation(a, &out[len(out)-1])
	}
	ctx, end := context.WithTimeout(ctx, primaryWait)
	defer end()
	l.Location.DescribePromotions(ctx, list, func(i int) *wire.Account { return &out[i] })
	return out, err
}

// Account implements Location.
func (l *Local) Account(ctx context.Context, name geo.Account) (wire.Account, error) {
	a, err := l.Location.Record(ctx, name)
	out, err := describe(a, err)
	if err == nil {
		l.Location.DescribeOperation(a, &out)
		ctx, cancel := context.WithTimeout(ctx, primaryWait)
		defer cancel()
		l.Location.DescribePromotion(ctx, a, &out)
	}
	return out, err
}

func describe(a *catalog.Account, err error) (wire.Account, error) {
	if err != nil {
		return wire.Account{}, err
	}
	return location.DescribeAccount(a), nil
}

// Keys implements Location.
func (l *Local) Keys(ctx context.Context, name geo.Account) (wire.Keys, error) {
	a, err := l.Location.Record(ctx, name)
	if err != nil {
		return wire.Keys{}, err
	}
	return location.Keys(a), nil
}

// CreateAccount implements Location. The catalog's leader must be in this process.
func (l *Local) CreateAccount(ctx context.Context, n wire.NewAccount) (wire.Account, error) {
	return describe(l.Location.CreateAccount(ctx, n))
}

// StartNode implements Location.
func (l *Local) StartNode(_ context.Context, id geo.NodeID) error { return l.Location.StartNode(id) }

// StopNode implements Location.
func (l *Local) StopNode(_ context.Context, id geo.NodeID) error { return l.Location.StopNode(id) }

// Start implements Location.
func (l *Local) Start(ctx context.Context) error { return l.Server.Begin(ctx) }

// Stop implements Location.
func (l *Local) Stop(context.Context) error { return l.Server.Stop() }

// RecoverRange implements Location. The best survivor may be on any node that the stamp
// reaches.
func (l *Local) RecoverRange(ctx context.Context, id geo.RangeID, in wire.RecoverRange) (wire.RangeRecovered, error) {
	return l.Location.RecoverRange(ctx, id, in)
}

// SetLink implements Location.
func (l *Local) SetLink(_ context.Context, to wire.Link) error {
	l.Location.SetLink(to)
	return nil
}
