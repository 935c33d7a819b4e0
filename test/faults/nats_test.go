package faults

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/config"
	"antipode/replication/natsstream"
	"antipode/test/devproc"
	"antipode/test/faults/rig"
	"antipode/test/rest"
)

// outsideNATS is a NATS server with JetStream as somebody else would run it.
type outsideNATS struct {
	t      *testing.T
	dir    string
	port   int
	server *server.Server // nil while it is stopped
}

func startNATS(t *testing.T, port int) *outsideNATS {
	t.Helper()
	o := &outsideNATS{t: t, dir: t.TempDir(), port: port}
	o.start()
	t.Cleanup(o.stop)
	return o
}

func (o *outsideNATS) start() {
	o.t.Helper()
	// What docs/node.md asks of such a server, and no more.
	allowed := &server.SubjectPermission{Allow: []string{"geo.>", "$JS.API.>", "$JS.ACK.>", "_INBOX.>"}}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: o.port, NoSigs: true, NoLog: true, JetStream: true, StoreDir: o.dir, MaxPayload: 8 << 20,
		NoAuthUser: "antipode", Users: []*server.User{{
			Username: "antipode", Permissions: &server.Permissions{Publish: allowed, Subscribe: allowed},
		}},
	})
	require.NoError(o.t, err)
	s.Start()
	require.True(o.t, s.ReadyForConnections(readyWait), "NATS server on port %d", o.port)
	o.server = s
}

func (o *outsideNATS) stop() {
	if o.server != nil {
		o.server.Shutdown()
		o.server.WaitForShutdown()
		o.server = nil
	}
}

func (o *outsideNATS) url() string {
	return "nats://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port))
}

// stored is the number of the last message in the stream of a location, 0 without one.
func (o *outsideNATS) stored(from geo.Location) uint64 {
	o.t.Helper()
	z, err := o.server.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	require.NoError(o.t, err)
	for _, a := range z.AccountDetails {
		for _, s := range a.Streams {
			if s.Name == natsstream.StreamName(from) {
				return s.State.LastSeq
			}
		}
	}
	return 0
}

// Nodes whose streams live in NATS servers of somebody else's run none of their own: writes
// travel through those, Last Sync Time goes forward, and after a restart of the server on the
// way all that was written meanwhile arrives, and the stream carries again.
func TestOutsideNATS(t *testing.T) {
	base, err := devproc.FindPortBase(func(base int) []string {
		return []string{fmt.Sprintf("127.0.0.1:%d", base), fmt.Sprintf("127.0.0.1:%d", base+1)}
	})
	require.NoError(t, err)
	servers := map[geo.Location]*outsideNATS{}
	if !testing.Short() {
		servers[rig.North], servers[rig.South] = startNATS(t, base), startNATS(t, base+1)
	}
	r := startWith(t, func(c *config.Node) {
		c.NATS = config.NATS{Mode: config.Outside, URLs: []string{servers[c.Location].url()}}
		c.Pair.NATS = []string{servers[c.Pair.Location].url()}
	})
	for _, l := range []geo.Location{rig.North, rig.South} {
		for _, name := range rig.NodesOf(l) {
			_, err := os.Stat(filepath.Join(r.Dir(), name, "data", string(l), "nats"))
			require.ErrorIs(t, err, os.ErrNotExist, "%s has a carrier of its own", name)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*readyWait)
	defer cancel()
	door, secondary := r.Client(rig.Door, false), r.Client(rig.Door, true)
	setup(ctx, t, door)
	south := servers[rig.South]
	arrives := func(key string) {
		t.Helper()
		a, err := door.Insert(ctx, table, rest.Entity{"PartitionKey": "p", "RowKey": key})
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
			pause(ctx, poll)
		}
	}
	advances := func() {
		t.Helper()
		for from := syncTime(); !syncTime().After(from); {
			require.NoError(t, ctx.Err(), "Last Sync Time stays at %v", from)
			pause(ctx, poll)
		}
	}
	carries := func() {
		t.Helper()
		for from := south.stored(rig.North); south.stored(rig.North) == from; {
			require.NoError(t, ctx.Err(), "the stream stays at message %d", from)
			pause(ctx, poll)
		}
	}
	arrives("before")
	advances()
	carries()

	south.stop()
	a, err := door.Insert(ctx, table, rest.Entity{"PartitionKey": "p", "RowKey": "meanwhile"})
	require.NoError(t, err)
	require.True(t, a.OK(), "writes do not wait for the carrier: %v", a)
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
		pause(ctx, poll)
	}
}
