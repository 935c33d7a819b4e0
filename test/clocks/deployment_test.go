package clocks

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/server/cluster"
	"antipode/server/config"
	"antipode/server/dev"
	"antipode/server/gateway"
	"antipode/server/node"
	"antipode/test/devproc"
	"antipode/test/rest"
)

// startWait bounds the start: a slow machine is no broken promise.
const startWait = 2 * time.Minute

// deployment is both locations in this process.
type deployment struct {
	t     *testing.T
	admin *wire.Client
	// clocks are those of the nodes by name.
	clocks             map[string]*clock.Shifted
	primary, secondary *rest.Client
}

func start(t *testing.T) *deployment {
	t.Helper()
	if testing.Short() {
		t.Skip("end-to-end tests need more time than -short has")
	}
	base, err := devproc.FindPortBase(func(base int) []string { return cluster.Options{PortBase: base}.Ports() })
	require.NoError(t, err)
	o := cluster.Options{Dir: t.TempDir(), PortBase: base}
	commands, err := o.Prepare()
	require.NoError(t, err)
	hc := devproc.NewHTTPClient()
	t.Cleanup(func() {
		hc.CloseIdleConnections()
		http.DefaultClient.CloseIdleConnections()
	})
	d := &deployment{
		t: t, admin: o.Admin(), clocks: map[string]*clock.Shifted{},
		primary: rest.NewPathStyle(hc, base, false), secondary: rest.NewPathStyle(hc, base, true),
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	var nodes []*node.Node
	for _, c := range commands {
		file := c.Args[len(c.Args)-1]
		if c.Name == cluster.GatewayName {
			d.openGateway(file)
			continue
		}
		nodes = append(nodes, d.openNode(c.Name, file))
	}
	for _, n := range nodes {
		require.NoError(t, n.Start(ctx))
	}
	d.eventually("the account", startWait, func(ctx context.Context) bool {
		_, err := d.admin.CreateAccount(ctx, wire.NewAccount{Name: rest.DevAccount, Location: dev.North, Key1: rest.DevKey, Key2: rest.DevKey, Ensure: true})
		return err == nil
	})
	d.eventually("live statistics", startWait, func(ctx context.Context) bool {
		stats, err := d.secondary.Stats(ctx, geo.Table)
		return err == nil && stats.Known
	})
	return d
}

func (d *deployment) openNode(name, file string) *node.Node {
	c, _, err := config.Load(file)
	require.NoError(d.t, err)
	d.clocks[name] = &clock.Shifted{}
	n, err := node.Open(node.Options{Config: c, Clock: d.clocks[name], Logger: slog.New(slog.DiscardHandler)})
	require.NoError(d.t, err)
	d.t.Cleanup(func() { require.NoError(d.t, n.Close()) })
	return n
}

func (d *deployment) openGateway(file string) {
	c, _, err := config.LoadGateway(file)
	require.NoError(d.t, err)
	g, err := gateway.Open(gateway.Options{Config: c, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(d.t, err)
	d.t.Cleanup(func() { require.NoError(d.t, g.Close()) })
}

// leader returns the name of the node that leads the range of tables at a location.
func (d *deployment) leader(l geo.Location) (name string) {
	d.t.Helper()
	d.eventually("a leader", startWait, func(ctx context.Context) bool {
		status, err := d.admin.Status(ctx)
		if err != nil {
			return false
		}
		for _, at := range status.Locations {
			for _, n := range at.Nodes {
				for _, r := range n.Replicas {
					if at.Name == l && r.Service == geo.Table.String() && r.Leader {
						name = n.Name
					}
				}
			}
		}
		return name != ""
	})
	return name
}

func (d *deployment) eventually(what string, wait time.Duration, ok func(ctx context.Context) bool) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), wait)
	defer cancel()
	for !ok(ctx) {
		require.NoError(d.t, clock.Wait(ctx, 50*time.Millisecond), what)
	}
}
