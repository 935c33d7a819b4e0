package dev

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/bus/natsbus"
	"antipode/replication/receive"
	"antipode/server/location"
	"antipode/stamp/cursor"
)

// busServers are the one or three servers of a bus. Each can be stopped and started again while the
// locations run.
type busServers struct {
	t       *testing.T
	options []natsbus.ServerOptions

	mu      sync.Mutex
	servers []*natsbus.Server
}

// newBusServers runs one server, or a cluster of three over loopback.
func newBusServers(t *testing.T, servers int) *busServers {
	s := &busServers{t: t, options: make([]natsbus.ServerOptions, servers), servers: make([]*natsbus.Server, servers)}
	routes := make([]string, servers)
	base := freeBase(t) // Of no other cluster: a server that is stopped must find its port free again.
	for i := range routes {
		routes[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(base+i))
	}
	for i := range s.options {
		s.options[i] = natsbus.ServerOptions{Dir: t.TempDir(), Name: fmt.Sprintf("south-%d", i+1), Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
		if servers > 1 {
			s.options[i].Listen = "127.0.0.1:0"
			s.options[i].Cluster = &natsbus.ClusterOptions{Name: "south", Listen: routes[i], Routes: routes}
		}
		s.start(i)
	}
	t.Cleanup(func() {
		for i := range s.servers {
			s.stop(i)
		}
	})
	return s
}

// InProcessConn implements natsbus.Dialer: any server that runs.
func (s *busServers) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, srv := range s.servers {
		if srv != nil {
			return srv.InProcessConn()
		}
	}
	return nil, net.ErrClosed
}

func (s *busServers) start(i int) {
	srv, err := natsbus.OpenServer(s.t.Context(), s.options[i])
	require.NoError(s.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[i] = srv
}

func (s *busServers) stop(i int) {
	s.mu.Lock()
	srv := s.servers[i]
	s.servers[i] = nil
	s.mu.Unlock()
	if srv != nil {
		require.NoError(s.t, srv.Close())
	}
}

// adjust is for ClusterOptions: what north sends goes through s.
func (s *busServers) adjust(o *location.Options) {
	if o.Name == South {
		o.Bus = location.Bus{Near: natsbus.ConnOptions{Server: s}}
		o.Replicas = len(s.options)
	}
}

// faultyBus is a cluster under load and the bus into south, which a test makes faulty.
type faultyBus struct {
	*busServers
	c *Cluster
	// last has the number that each writer had acknowledged, once the load has stopped.
	last [8]int
	end  func()
}

// startFaultyBus puts a cluster under load: each writer counts up in one key, and readers check
// that no key goes back at the secondary.
func startFaultyBus(t *testing.T, servers int) *faultyBus {
	site := newBusServers(t, servers)
	c := startAdjusted(t, site.adjust)
	createTable(t, c, "northacct")
	l := &faultyBus{busServers: site, c: c}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range l.last {
		wg.Go(func() { l.write(ctx, w) })
	}
	wg.Go(func() { l.watch(ctx) })
	l.end = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(l.end)
	l.flows()
	return l
}

func (l *faultyBus) write(ctx context.Context, w int) {
	for i := 1; ctx.Err() == nil; i++ {
		// Not with ctx: a write that was sent is counted.
		a, err := try(l.c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", fmt.Sprintf("w%d", w)), fmt.Sprintf(`{"v":"%d"}`, i))
		if unanswered(a, err) {
			i--
			continue
		}
		if err != nil || a.status != http.StatusNoContent {
			l.t.Errorf("write: %v %s", err, a.body)
			return
		}
		l.last[w] = i
	}
}

// watch reads at the secondary until ctx ends: a doubled or reordered change would take
// a key back to what it was.
func (l *faultyBus) watch(ctx context.Context) {
	var seen [len(l.last)]int
	for w := 0; ctx.Err() == nil; w = (w + 1) % len(l.last) {
		a, err := try(l.c.gateway, "northacct", http.MethodGet, entityPath("northacct", "-secondary", fmt.Sprintf("w%d", w)), "")
		if err != nil || a.status != http.StatusOK {
			continue // The secondary may have no quorum now.
		}
		_, v, _ := strings.Cut(a.body, `"v":"`)
		v, _, _ = strings.Cut(v, `"`)
		n, err := strconv.Atoi(v)
		if err != nil || n < seen[w] {
			l.t.Errorf("w%d went back at the secondary, from %d to %s", w, seen[w], v)
		}
		seen[w] = n
	}
}

// flows waits until what is committed from now on arrives, and says how long it took.
func (l *faultyBus) flows() time.Duration {
	l.t.Helper()
	began := time.Now()
	eventually(l.t, "records flow", func() bool {
		return l.c.locations[South].Leader(geo.FirstRange(geo.Table)) != nil && tableStats(l.c, South, "northacct").LastSync.Time().After(began)
	})
	return time.Since(began)
}

// same ends the load and requires that both locations hold the same: the last value of
// each writer, the whole table byte for byte, and in each stream the same number of
// records, chained by hash (nothing lost, doubled or reordered).
func (l *faultyBus) same() {
	l.t.Helper()
	l.end()
	r := geo.FirstRange(geo.Table)
	eventually(l.t, "the secondary holds each stream to its head", func() bool {
		n, s := l.c.locations[North].Leader(r), l.c.locations[South].Leader(r)
		if n == nil || s == nil {
			return false
		}
		heads, _ := n.Machine.Heads()
		return maps.Equal(heads, s.Machine.Progress(geo.SourceRange{Origin: North, Range: r}, cursor.EveryAccount).Cursors())
	})
	for w, n := range l.last {
		require.Equal(l.t, strconv.Itoa(n), read(l.t, l.c, "northacct", "-secondary", fmt.Sprintf("w%d", w)))
	}
	all := func(suffix string) string {
		a := call(l.t, l.c.gateway, "northacct", http.MethodGet, "/northacct"+suffix+"/tbl()", "", "Accept", "application/json;odata=minimalmetadata")
		require.Equal(l.t, http.StatusOK, a.status, a.body)
		_, rows, _ := strings.Cut(a.body, `"value":`)
		return rows
	}
	require.Equal(l.t, all(""), all("-secondary"))
	require.Zero(l.t, l.c.meters.Alarms.Counts(South)[receive.AlarmFork])
	l.t.Logf("alarms: south %v, north %v; records: %d", raised(l.c, South), raised(l.c, North), committed(l.c))
}

// raised are the alarms of a location that were raised at all.
func raised(c *Cluster, l geo.Location) map[string]uint64 {
	counts := maps.Clone(c.meters.Alarms.Counts(l))
	maps.DeleteFunc(counts, func(_ string, n uint64) bool { return n == 0 })
	return counts
}

// alarmed requires that one of the reasons, if there are any, is counted at a location.
func (l *faultyBus) alarmed(reasons ...string) {
	l.t.Helper()
	if len(reasons) == 0 {
		return
	}
	eventually(l.t, fmt.Sprintf("one of %v is counted", reasons), func() bool {
		return slices.ContainsFunc(reasons, func(r string) bool {
			return l.c.meters.Alarms.Counts(South)[r]+l.c.meters.Alarms.Counts(North)[r] > 0
		})
	})
}

// hold makes the stream hold what north sends, as south has no quorum, until release.
func (l *faultyBus) hold() (release func()) {
	stamp := runningStamp(l.c.locations[South])
	require.NoError(l.t, stamp.Stop(2, true))
	require.NoError(l.t, stamp.Stop(3, true))
	from := committed(l.c)
	eventually(l.t, "the stream holds a backlog", func() bool { return committed(l.c) > from+200 })
	return func() {
		require.NoError(l.t, stamp.Start(2))
		require.NoError(l.t, stamp.Start(3))
	}
}

// R15: damage to the store while its server is stopped, or to the stream while it runs, loses,
// repeats and reorders nothing. Records flow again at once, and an alarm names the damage; which
// one depends on where the flipped bit is.
//
// Capability: Two locations: JetStream loses nothing for us.
func TestFaultyStream(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("many clusters under load")
	}
	damaged := []string{natsbus.AlarmDamaged, natsbus.AlarmRolledBack, natsbus.AlarmForgot, receive.AlarmChecksum}
	for _, tt := range []struct {
		name   string
		damage func(*faultyBus)
		alarms []string // at least one of them is raised; none if nothing can be lost
	}{
		{"wiped", (*faultyBus).wipe, []string{receive.AlarmIncarnation}},
		{"put back to an older copy", (*faultyBus).rollBack, []string{natsbus.AlarmRolledBack}},
		{"stream deleted", func(l *faultyBus) { deleteStream(l.t, l.c.locations[South], North) }, []string{receive.AlarmIncarnation}},
		{"consumer deleted", (*faultyBus).deleteConsumer, []string{receive.AlarmIncarnation}},
		{"bits of messages", func(l *faultyBus) { l.damage("*.blk") }, damaged},
		{"bits of messages and their index", func(l *faultyBus) { l.damage("*.blk", "index.db") }, damaged},
		{"bits of its description", func(l *faultyBus) { l.damage("meta.*") }, []string{receive.AlarmIncarnation}},
		{"bits of what was acknowledged", func(l *faultyBus) { l.damage("o.dat") }, nil},
		{"bits of every file", func(l *faultyBus) { l.damage("*") }, []string{receive.AlarmIncarnation}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := startFaultyBus(t, 1)
			tt.damage(l)
			t.Logf("flows after %v", l.flows())
			l.same()
			l.alarmed(tt.alarms...)
		})
	}
}

func (l *faultyBus) wipe() {
	l.stop(0)
	require.NoError(l.t, os.RemoveAll(l.options[0].Dir))
	l.start(0)
}

func (l *faultyBus) rollBack() {
	l.stop(0)
	older := l.t.TempDir()
	require.NoError(l.t, os.CopyFS(older, os.DirFS(l.options[0].Dir)))
	l.start(0)
	l.flows()
	l.stop(0)
	require.NoError(l.t, os.RemoveAll(l.options[0].Dir))
	require.NoError(l.t, os.CopyFS(l.options[0].Dir, os.DirFS(older)))
	l.start(0)
}

func (l *faultyBus) deleteConsumer() {
	nc, err := nats.Connect("", nats.InProcessServer(l))
	require.NoError(l.t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(l.t, err)
	require.NoError(l.t, js.DeleteConsumer(l.t.Context(), natsbus.StreamName(North), "geo"))
}

// damage flips bits in files of a store that holds messages.
func (l *faultyBus) damage(files ...string) {
	release := l.hold()
	l.stop(0)
	l.flipBits(files)
	l.start(0)
	release()
}

// R15: the servers of three are killed one after the other, then two at once. Records flow
// without one server, and again when two are back. Nothing is lost; each raises its alarm.
//
// Capability: Two locations: JetStream loses nothing for us.
func TestStreamServersKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("elections of JetStream take seconds")
	}
	t.Run("one after the other", func(t *testing.T) {
		l := startFaultyBus(t, 3)
		for i := range 2 {
			l.whole()
			l.stop(i)
			t.Logf("without server %d: flows after %v", i+1, l.flows())
			eventually(t, "the alarm is counted", func() bool { return l.c.meters.Alarms.Counts(South)[natsbus.AlarmServers] > uint64(i) })
			l.start(i)
		}
		l.same()
	})
	t.Run("two at once", func(t *testing.T) {
		l := startFaultyBus(t, 3)
		l.stop(0)
		l.stop(2)
		eventually(t, "the alarm is counted", func() bool { return l.c.meters.Alarms.Counts(South)[receive.AlarmUnavailable] > 0 })
		l.start(0)
		l.start(2)
		t.Logf("two servers back: flows after %v", l.flows())
		l.same()
	})
}

// whole waits until all servers hold the stream and its consumer.
func (l *faultyBus) whole() {
	nc, err := nats.Connect("", nats.InProcessServer(l))
	require.NoError(l.t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(l.t, err)
	current := func(c *jetstream.ClusterInfo) bool {
		return c != nil && len(c.Replicas) == len(l.options)-1 &&
			!slices.ContainsFunc(c.Replicas, func(p *jetstream.PeerInfo) bool { return p.Offline || !p.Current })
	}
	eventually(l.t, "all servers hold the stream", func() bool {
		ctx, cancel := context.WithTimeout(l.t.Context(), time.Second)
		defer cancel()
		s, err := js.Stream(ctx, natsbus.StreamName(North))
		if err != nil || !current(s.CachedInfo().Cluster) {
			return false
		}
		q, err := s.Consumer(ctx, "geo")
		return err == nil && current(q.CachedInfo().Cluster)
	})
}

// flipBits flips one bit of each file of the store whose name fits, behind the middle:
// what is before it may be acknowledged.
func (l *faultyBus) flipBits(patterns []string) {
	flipped := 0
	require.NoError(l.t, filepath.WalkDir(l.options[0].Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.ContainsFunc(patterns, func(p string) bool { ok, _ := filepath.Match(p, d.Name()); return ok }) {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 {
			return err
		}
		b[len(b)*3/4] ^= 0x10
		flipped++
		return os.WriteFile(path, b, 0o600)
	}))
	require.NotZero(l.t, flipped, "no file of %v", patterns)
}
