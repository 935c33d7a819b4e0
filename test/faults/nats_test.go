package faults

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/bus/natsbus"
	"antipode/server/config"
	"antipode/test/devproc"
	"antipode/test/faults/rig"
	"antipode/test/rest"
)

// outsideNATS is NATS servers with JetStream as somebody else would run them: one, or a
// cluster.
type outsideNATS struct {
	t *testing.T
	// options are one per server; started are those that run.
	options []*server.Options
	started map[int]*server.Server
}

// startNATS starts as many servers as client ports are given; routes are the ports between
// them.
func startNATS(t *testing.T, ports, routes []int) *outsideNATS {
	t.Helper()
	o := &outsideNATS{t: t, started: map[int]*server.Server{}}
	// What docs/node.md asks of such a server, and no more.
	allowed := &server.SubjectPermission{Allow: []string{"geo.>", "$JS.API.>", "$JS.ACK.>", "_INBOX.>"}}
	for i, port := range ports {
		so := &server.Options{
			ServerName: fmt.Sprintf("outside-%d", i+1), Host: "127.0.0.1", Port: port,
			NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: 8 << 20, NoAuthUser: "antipode",
			Users: []*server.User{{
				Username: "antipode", Permissions: &server.Permissions{Publish: allowed, Subscribe: allowed},
			}},
		}
		if len(ports) > 1 {
			so.Cluster = server.ClusterOpts{Name: "outside", Host: "127.0.0.1", Port: routes[i]}
			for _, route := range routes {
				so.Routes = append(so.Routes, &url.URL{Scheme: "nats", Host: loopback(route)})
			}
		}
		o.options = append(o.options, so)
	}
	t.Cleanup(o.stop)
	o.start()
	return o
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// start starts those that do not run.
func (o *outsideNATS) start() {
	o.t.Helper()
	for i, so := range o.options {
		if o.started[i] != nil {
			continue
		}
		s, err := server.NewServer(so.Clone())
		require.NoError(o.t, err)
		s.Start()
		o.started[i] = s
	}
	for i, s := range o.started {
		require.True(o.t, s.ReadyForConnections(readyWait), "NATS server on port %d", o.options[i].Port)
	}
}

// stop stops all of them.
func (o *outsideNATS) stop() {
	for i := range o.started {
		o.kill(i)
	}
}

func (o *outsideNATS) kill(i int) {
	o.started[i].Shutdown()
	o.started[i].WaitForShutdown()
	delete(o.started, i)
}

func (o *outsideNATS) urls() (out []string) {
	for _, so := range o.options {
		out = append(out, "nats://"+loopback(so.Port))
	}
	return out
}

// stream is what the server that leads the stream of a location says of it; false without
// one.
func (o *outsideNATS) stream(from geo.Location) (leader int, last uint64, known bool) {
	o.t.Helper()
	for i, s := range o.started {
		z, err := s.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
		require.NoError(o.t, err)
		for _, a := range z.AccountDetails {
			for _, d := range a.Streams {
				if d.Name == natsbus.StreamName(from) && (d.Cluster == nil || d.Cluster.Leader == o.options[i].ServerName) {
					return i, d.State.LastSeq, true
				}
			}
		}
	}
	return 0, 0, false
}

// Nodes whose streams live in NATS servers of somebody else's run none themselves: writes
// travel through those, and Last Sync Time goes forward. The south's are a cluster of three:
// without the one that leads the stream it carries on; after a restart of all of them what was
// written meanwhile arrives, and the stream carries again.
//
// Capability: Two locations: NATS servers outside.
func TestOutsideNATS(t *testing.T) {
	base, err := devproc.FindPortBase(t, func(base int) (out []string) {
		for i := range 7 {
			out = append(out, loopback(base+i))
		}
		return out
	})
	require.NoError(t, err)
	servers := map[geo.Location]*outsideNATS{}
	if !testing.Short() {
		servers[rig.North] = startNATS(t, []int{base}, nil)
		servers[rig.South] = startNATS(t, []int{base + 1, base + 2, base + 3}, []int{base + 4, base + 5, base + 6})
	}
	r := rig.StartTest(t, func(c *config.Node) {
		c.NATS = config.NATS{Mode: config.Outside, URLs: servers[c.Location].urls()}
		c.Pair.NATS = servers[c.Pair.Location].urls()
	})
	for _, l := range []geo.Location{rig.North, rig.South} {
		for _, name := range rig.NodesOf(l) {
			_, err := os.Stat(filepath.Join(r.Dir(), name, "data", string(l), "nats"))
			require.ErrorIs(t, err, os.ErrNotExist, "%s runs a NATS server", name)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*readyWait)
	defer cancel()
	gateway, secondary := r.Client(rig.Gateway, false), r.Client(rig.Gateway, true)
	setup(ctx, t, gateway)
	south := servers[rig.South]
	arrives := func(key string) {
		t.Helper()
		a, err := gateway.Insert(ctx, table, rest.Entity{"PartitionKey": "p", "RowKey": key})
		require.NoError(t, err)
		require.True(t, a.OK(), "%v", a)
		awaitSecondary(ctx, t, secondary, key)
	}
	syncTime := func() time.Time {
		t.Helper()
		for {
			s, err := secondary.Stats(ctx, geo.Table)
			if err == nil && s.Known {
				return s.LastSyncTime
			}
			require.NoError(t, ctx.Err(), "Last Sync Time is not known: %v", err)
			rig.Pause(ctx, poll)
		}
	}
	advances := func() {
		t.Helper()
		for from := syncTime(); !syncTime().After(from); {
			require.NoError(t, ctx.Err(), "Last Sync Time stays at %v", from)
			rig.Pause(ctx, poll)
		}
	}
	carries := func() {
		t.Helper()
		for _, from, _ := south.stream(rig.North); ; rig.Pause(ctx, poll) {
			if _, last, known := south.stream(rig.North); known && last > from {
				return
			}
			require.NoError(t, ctx.Err(), "the stream stays at message %d", from)
		}
	}
	arrives("before")
	advances()
	carries()

	leader, _, known := south.stream(rig.North)
	require.True(t, known)
	south.kill(leader)
	arrives("without its leader")
	advances()
	carries()

	south.stop()
	a, err := gateway.Insert(ctx, table, rest.Entity{"PartitionKey": "p", "RowKey": "meanwhile"})
	require.NoError(t, err)
	require.True(t, a.OK(), "writes do not wait for the bus: %v", a)
	south.start()
	awaitSecondary(ctx, t, secondary, "meanwhile")
	arrives("after")
	advances()
	carries()
	ready(ctx, t, r)
}

// awaitSecondary waits until an entity can be read at the secondary.
func awaitSecondary(ctx context.Context, t *testing.T, secondary *rest.Client, key string) {
	t.Helper()
	for {
		_, a, err := secondary.GetEntity(ctx, table, "p", key)
		if err == nil && a.OK() {
			return
		}
		require.NoError(t, ctx.Err(), "%s is not at the secondary: %v, %v", key, a, err)
		rig.Pause(ctx, poll)
	}
}
