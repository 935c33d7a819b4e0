package operator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/metrics"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// fakePart is what a process runs of the location south, with its server and its catalog.
type fakePart struct {
	whole, receives, running bool
	promotes                 bool
	accounts                 []*catalog.Account
	fail                     error
	hangs                    bool
	asked                    []string
	link                     wire.Link
	failover                 wire.LocationFailover
}

func (p *fakePart) Location() geo.Location { return "south" }
func (p *fakePart) Subject() string        { return "node south-2" }
func (p *fakePart) Whole() bool            { return p.whole }
func (p *fakePart) Receives() bool         { return p.receives }
func (p *fakePart) Running() bool          { return p.running }
func (p *fakePart) Link() wire.Link        { return p.link }
func (p *fakePart) Events() []wire.Event   { return nil }

func (p *fakePart) Readiness(context.Context) wire.LocationReadiness {
	return wire.LocationReadiness{Name: "south"}
}

func (p *fakePart) Describe() (wire.Location, error) {
	return wire.Location{Name: "south", State: wire.Running, Nodes: []wire.Node{{Name: "south-1", State: wire.Stopped}, {Name: "south-2", State: wire.Running}}, Warnings: []string{"two domains"}}, p.fail
}

func (p *fakePart) AccountStatus(_ context.Context, a *catalog.Account) wire.AccountStatus {
	return wire.AccountStatus{Account: wire.Account{Name: a.Name}, Services: []wire.ServiceStatus{{Service: "table", LastSyncTime: wire.Time{Time: time.Unix(1, 0)}}}}
}

func (p *fakePart) DescribeOperation(_ *catalog.Account, out *wire.Account) {
	out.Copied, out.OperationWaits = &wire.Copied{CopySize: wire.CopySize{Rows: 7}}, "no leader"
}

func (p *fakePart) DescribePromotion(_ context.Context, a *catalog.Account, out *wire.Account) {
	if a.Secondary == "south" && p.promotes {
		out.FailoverPhase, out.Operation = wire.FailoverApplying, "an unplanned failover"
	}
}

func (p *fakePart) DescribePromotions(ctx context.Context, of []*catalog.Account, out func(i int) *wire.Account) {
	for i, a := range of {
		p.DescribePromotion(ctx, a, out(i))
	}
}

func (p *fakePart) Begin(context.Context) error { return p.note("begin") }
func (p *fakePart) Stop() error                 { return p.note("stop") }

func (p *fakePart) HasNode(id geo.NodeID) bool { return id <= 3 }

func (p *fakePart) StartNode(id geo.NodeID) error { return p.nodes("start node", id) }
func (p *fakePart) StopNode(id geo.NodeID) error  { return p.nodes("stop node", id) }

func (p *fakePart) nodes(what string, id geo.NodeID) error {
	if !p.HasNode(id) {
		return wire.NoNode("south", id)
	}
	return p.note(fmt.Sprintf("%s %d", what, id))
}

func (p *fakePart) note(what string) error {
	p.asked = append(p.asked, what)
	return p.fail
}

func (p *fakePart) Records(ctx context.Context) ([]*catalog.Account, error) {
	if p.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return p.accounts, p.fail
}

func (p *fakePart) Record(_ context.Context, name geo.Account) (*catalog.Account, error) {
	for _, a := range p.accounts {
		if a.Name == name {
			return a, nil
		}
	}
	return nil, storageerr.AccountNotFound
}

func (p *fakePart) LocationFailover(context.Context) (wire.LocationFailover, error) {
	return p.failover, p.fail
}

func (p *fakePart) local() *Local {
	return &Local{shows: p, Server: p, Clock: clock.System{}, Warnings: []string{"one rack"}}
}

// The status of a part has the statistics of the accounts whose secondary is here, if the part can
// know them: a whole location always, a node while it receives (table).
func TestLocalStatistics(t *testing.T) {
	accounts := []*catalog.Account{{Name: "photos", Primary: "north", Secondary: "south"}, {Name: "mail", Primary: "south", Secondary: "north"}}
	for _, c := range []struct{ whole, receives, want bool }{{true, false, true}, {false, true, true}, {false, false, false}} {
		p := &fakePart{whole: c.whole, receives: c.receives, running: true, accounts: accounts, link: wire.Link{State: wire.LinkCut}}
		s, err := p.local().status(t.Context())
		require.NoError(t, err)
		require.Len(t, s.Accounts, 2)
		require.Equal(t, c.want, len(s.Accounts[0].Services) > 0, "%+v", c)
		require.Empty(t, s.Accounts[1].Services, "its secondary is elsewhere")
		require.Equal(t, wire.LinkCut, s.Link.State)
		require.Equal(t, []string{"one rack", "two domains"}, s.Locations[0].Warnings)
	}
}

// A status has the failover of a location while that is under way, whichever process of the location answers.
func TestLocalShowsTheFailoverOfALocation(t *testing.T) {
	p := &fakePart{running: true}
	silent, err := p.local().status(t.Context())
	require.NoError(t, err)
	for phase, want := range map[string]bool{wire.LocationMoving: true, wire.LocationEnding: true, wire.LocationOver: false, "": false} {
		p.failover = wire.LocationFailover{From: "north", Phase: phase, Waiting: 5}
		s, err := p.local().status(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, s.Locations[0].Failover != nil, phase)
		if want {
			require.Equal(t, p.failover, *s.Locations[0].Failover)
			require.Equal(t, p.failover, *mergeStatus([]wire.Status{silent, s, silent}).Locations[0].Failover)
		}
	}
}

// The status has what the process knows of itself in its nodes, and when its alarms were raised.
func TestLocalShowsItsProcess(t *testing.T) {
	l := (&fakePart{running: true}).local()
	alarms, err := metrics.NewAlarms(nil)
	require.NoError(t, err)
	l.Alarms, l.Process = alarms, func(n *wire.Node) { n.Version = "1.2.3" }
	alarms.Raise("south", "gap", time.Unix(7, 0))
	s, err := l.status(t.Context())
	require.NoError(t, err)
	require.Equal(t, []wire.Node{{Name: "south-1", State: wire.Stopped}, {Name: "south-2", State: wire.Running, Version: "1.2.3"}}, s.Locations[0].Nodes)
	require.Equal(t, map[string]wire.Time{"gap": {Time: time.Unix(7, 0)}}, s.Locations[0].AlarmsRaised)
}

// A catalog that does not answer costs the status catalogWait and a warning, which names the part;
// while the part is stopped that is no news.
func TestLocalStatusWithoutTheCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const warning = "the catalog does not answer at node south-2: accounts may be missing here"
		p := &fakePart{hangs: true, running: true}
		begun := time.Now()
		s, err := p.local().status(t.Context())
		require.NoError(t, err)
		require.Equal(t, catalogWait, time.Since(begun))
		require.Contains(t, s.Locations[0].Warnings, warning)
		p.running = false
		s, err = p.local().status(t.Context())
		require.NoError(t, err)
		require.NotContains(t, s.Locations[0].Warnings, warning)
	})
}

// Operations and their errors are those of the part and its server.
func TestLocalOperations(t *testing.T) {
	p := &fakePart{accounts: []*catalog.Account{{Name: "photos", Key1: []byte("one"), Key2: []byte("two")}}}
	l := p.local()
	for _, fail := range []error{nil, errors.New("disk on fire")} {
		p.fail, p.asked = fail, nil
		_, err := ask(t.Context(), Location(l), &startLocation, wire.At{}, wire.None{})
		require.Equal(t, fail, err)
		_, err = ask(t.Context(), Location(l), &stopLocation, wire.At{}, wire.None{})
		require.Equal(t, fail, err)
		_, err = asks(t.Context(), l, &startNode, wire.At{Node: "south-2"})
		require.Equal(t, fail, err)
		_, err = asks(t.Context(), l, &stopNode, wire.At{Node: "south-3"})
		require.Equal(t, fail, err)
		require.Equal(t, []string{"begin", "stop", "start node 2", "stop node 3"}, p.asked)
	}

	p.fail = nil
	k, err := l.keys(t.Context(), "photos")
	require.NoError(t, err)
	require.Equal(t, wire.Keys{Name: "photos", Key1: "b25l", Key2: "dHdv"}, k)
	_, err = l.keys(t.Context(), "mail")
	require.ErrorIs(t, err, storageerr.AccountNotFound)
	_, err = l.account(t.Context(), "mail")
	require.ErrorIs(t, err, storageerr.AccountNotFound)
	photos, err := l.account(t.Context(), "photos")
	require.NoError(t, err)
	require.EqualValues(t, 7, photos.Copied.Rows)
	require.Equal(t, "no leader", photos.OperationWaits)
	require.False(t, photos.Promoting())
	p.promotes, p.accounts[0].Secondary = true, "south"
	photos, err = l.account(t.Context(), "photos")
	require.NoError(t, err)
	require.True(t, photos.Promoting())
	list, err := l.accounts(t.Context())
	require.NoError(t, err)
	require.Len(t, list.Accounts, 1)
	require.True(t, list.Accounts[0].Promoting())
	require.Equal(t, "no leader", list.Accounts[0].OperationWaits)
	p.running = true
	status, err := l.status(t.Context())
	require.NoError(t, err)
	require.True(t, status.Accounts[0].Promoting())
}
