package test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/geo"
	"antipode/server/cluster"
	"antipode/test/devproc"
	"antipode/test/load"
	"antipode/test/rest"
)

const (
	// clusterWait bounds each wait for a cluster: seven processes on two cores.
	clusterWait = time.Minute
	// gapMax is far above the three seconds without writes that a lost node may cost: the
	// gap is reported, and only what hangs fails.
	gapMax = 20 * time.Second
	// tryWait bounds one write of these tests: one that was sent to a process that was
	// paused a moment later hangs with it, as its outcome is not known.
	tryWait = 2 * time.Second
)

// deployment is a cluster of real processes that ends with its test.
type deployment struct {
	cluster.Options
	t  *testing.T
	hc *http.Client
}

func startCluster(t *testing.T) *deployment { return startClusterWith(t, cluster.Options{}) }

// startClusterWith starts one with these options.
func startClusterWith(t *testing.T, o cluster.Options) *deployment {
	t.Helper()
	if testing.Short() {
		t.Skip("end-to-end tests need more time than -short has")
	}
	hc := devproc.NewHTTPClient()
	base, err := devproc.FindPortBase(t, func(base int) []string { return cluster.Options{PortBase: base}.Ports() })
	require.NoError(t, err)
	o.Dir, o.PortBase, o.Binary = t.TempDir(), base, devproc.Binary()
	d := &deployment{o, t, hc}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), clusterWait)
		defer cancel()
		require.NoError(t, cluster.Stop(ctx, d.Options))
		hc.CloseIdleConnections()
		http.DefaultClient.CloseIdleConnections()
	})
	d.start()
	return d
}

// start starts what does not run and waits until all of it is live.
func (d *deployment) start() {
	d.t.Helper()
	ctx, cancel := contextFor(d.t, clusterWait)
	defer cancel()
	require.NoError(d.t, cluster.Start(ctx, d.Options))
	a := admin.NewAccount{Name: rest.DevAccount, Location: north, Key1: rest.DevKey, Key2: rest.DevKey}
	_, err := cluster.EnsureAccount(ctx, d.Options, a)
	require.NoError(d.t, err)
	require.NoError(d.t, cluster.AwaitReady(ctx, d.Options))
	eventually(d.t, clusterWait, "all nodes run and all replicas are in sync", func(ctx context.Context) error {
		status, err := d.Admin().Status(ctx)
		if err != nil {
			return err
		}
		for _, l := range status.Locations {
			for _, n := range l.Nodes { // A leader counts a node that has ended as in sync for a while.
				if n.State != admin.Running {
					return fmt.Errorf("node %s: %s", n.Name, n.State)
				}
			}
			for _, r := range l.Ranges {
				if r.LeaderView == nil || r.InSyncReplicas != 3 {
					return fmt.Errorf("%s: the %s range is not whole", l.Name, r.Service)
				}
			}
		}
		return nil
	})
}

// at is a client of a node's own front end, both counted from 0.
func (d *deployment) at(location, number int, secondary bool) *rest.Client {
	return rest.NewPathStyle(d.hc, d.NodePorts(location, number).Base, secondary)
}

func (d *deployment) gateway(secondary bool) *rest.Client {
	return rest.NewPathStyle(d.hc, d.PortBase, secondary)
}

// leader is the number, from 0, of the node that leads a service's range in a location.
func (d *deployment) leader(location int, s geo.Service) int {
	d.t.Helper()
	name := []geo.Location{north, south}[location]
	number := 0
	eventually(d.t, clusterWait, "the range has a leader", func(ctx context.Context) error {
		status, err := d.Admin().Status(ctx)
		if err != nil {
			return err
		}
		for _, l := range status.Locations {
			for _, r := range l.Ranges {
				if l.Name == name && r.Service == s.String() && r.LeaderView != nil {
					_, id, err := admin.ParseNodeName(r.Leader)
					number = int(id) - 1
					return err
				}
			}
		}
		return fmt.Errorf("no leader of %v in %+v", s, status.Locations)
	})
	return number
}

// signal sends a signal to a node's process.
func (d *deployment) signal(location, number int, sig syscall.Signal) {
	d.t.Helper()
	name := admin.NodeName([]geo.Location{north, south}[location], geo.NodeID(number+1))
	pid, err := d.PID(name)
	require.NoError(d.t, err)
	require.NotZero(d.t, pid, "%s does not run", name)
	require.NoError(d.t, syscall.Kill(pid, sig))
	if sig != syscall.SIGKILL {
		return
	}
	eventually(d.t, clusterWait, name+" is dead", func(context.Context) error {
		if pid, err := d.PID(name); pid != 0 || err != nil {
			return fmt.Errorf("pid %d: %w", pid, err)
		}
		return nil
	})
}

// write puts an entity's value through c; whether that was acknowledged.
func write(ctx context.Context, c *rest.Client, row string, value int) (rest.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, tryWait)
	defer cancel()
	return put(ctx, c, row, value)
}

func put(ctx context.Context, c *rest.Client, row string, value int) (rest.Answer, error) {
	return c.Replace(ctx, "cluster", "", rest.Entity{"PartitionKey": "p", "RowKey": row, "v": value})
}

func read(ctx context.Context, c *rest.Client, row string) (int64, rest.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*tryWait)
	defer cancel()
	e, a, err := c.GetEntity(ctx, "cluster", "p", row)
	if err != nil || !a.OK() {
		return 0, a, err
	}
	v, err := strconv.ParseInt(fmt.Sprint(e["v"]), 10, 64)
	return v, a, err
}

// reads reads a row, again while that is answered with 503, as during an election on a starved machine.
func (d *deployment) reads(c *rest.Client, row string) (v int64) {
	d.t.Helper()
	eventually(d.t, clusterWait, "a read is answered", func(ctx context.Context) error {
		var a rest.Answer
		var err error
		if v, a, err = read(ctx, c, row); err == nil && a.Status == http.StatusServiceUnavailable {
			return fmt.Errorf("%v", a)
		}
		require.NoError(d.t, err)
		require.True(d.t, a.OK(), "%v", a)
		return nil
	})
	return v
}

// createTable makes the table of these tests.
func (d *deployment) createTable() {
	d.t.Helper()
	eventually(d.t, clusterWait, "the table is made", func(ctx context.Context) error { return d.gateway(false).CreateTable(ctx, "cluster") })
}

// acknowledged writes until a write is acknowledged.
func (d *deployment) acknowledged(c *rest.Client, row string, value int) {
	d.t.Helper()
	eventually(d.t, clusterWait, "a write is acknowledged", func(ctx context.Context) error {
		a, err := write(ctx, c, row, value)
		if err == nil && !a.OK() {
			err = fmt.Errorf("%v", a)
		}
		return err
	})
}

// gaps writes one row after the other until halt is called, which returns the longest time
// between two acknowledgements, and how many there were.
func (d *deployment) gaps(c *rest.Client, row string) (halt func() (longest time.Duration, writes int64)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var longest, writes atomic.Int64
	go func() {
		defer close(done)
		last := time.Now()
		for i := 0; ctx.Err() == nil; i++ {
			if a, err := write(ctx, c, row, i); err == nil && a.OK() {
				longest.Store(max(longest.Load(), int64(time.Since(last))))
				last = time.Now()
				writes.Add(1)
			}
		}
		longest.Store(max(longest.Load(), int64(time.Since(last))))
	}()
	return func() (time.Duration, int64) {
		cancel()
		<-done
		return time.Duration(longest.Load()), writes.Load()
	}
}

// Six node processes and the gateway: any node's front end serves any request, with the
// official clients too. Under load one node of each location is killed: every acknowledged
// write is there, and the time without one is reported. With two of a location dead writes
// are refused with 503; when they are back, nothing is lost. A leader that was paused while
// another took its place never answers with what it held.
//
// Capability: Build and run: A process for each node, and the gateway.
// Capability: The primary location: Two of three nodes killed.
// Capability: Two locations: A witness at a third place (R21).
func TestCluster(t *testing.T) {
	d := startCluster(t)
	ctx, cancel := contextFor(t, 4*clusterWait)
	defer cancel()
	d.createTable()
	d.everywhere()
	requirePrivate(t, d.Dir)
	sdk := func(location, number int) *devproc.Process {
		return &devproc.Process{Config: devproc.Config{PortBase: d.NodePorts(location, number).Base, HTTP: d.hc}}
	}
	t.Run("aztables", func(t *testing.T) { testTables(t, sdk(1, 1), pathStyle) })
	t.Run("azblob", func(t *testing.T) { testBlobs(t, sdk(0, 2), pathStyle) })
	t.Run("rehydration", func(t *testing.T) {
		_, err := d.Admin().Finalize(ctx, admin.Finalize{})
		require.NoError(t, err)
		testRehydration(t, sdk(0, 1))
	})

	l := load.New(d.gateway(false), d.gateway(true), load.Options{Seed: 1, Clients: 8, EntitiesEach: 8, BigClients: 1, BigWritesMax: 4})
	require.NoError(t, l.Setup(ctx))
	watch := watching(ctx, l, l.Secondary)
	d.killOneOfEach(ctx, l)
	d.killTwo(ctx, l)
	d.pauseLeader(ctx)
	require.NoError(t, l.Resolve(ctx), "at the primary")
	require.NoError(t, l.Final(ctx), "at -secondary")
	watch.stop(t)
	t.Logf("in all: %v", l.Done())
}

// everywhere writes at each node and reads at all others.
func (d *deployment) everywhere() {
	t := d.t
	for location := range 2 {
		for number := range 3 {
			d.acknowledged(d.at(location, number, false), "any", 10*location+number)
			for other := range 3 {
				require.Equal(t, int64(10*location+number), d.reads(d.at(1-location, other, false), "any"), "read at another node")
			}
		}
	}
	for location := range 2 {
		for number := range 3 {
			eventually(t, arriveWait, "the value arrives at -secondary", func(ctx context.Context) error {
				v, a, err := read(ctx, d.at(location, number, true), "any")
				return sameOrWait(err, fmt.Sprint(v, a.OK()), "12 true")
			})
		}
	}
}

// during runs the load while f runs, for long enough that there are acknowledgements
// before and after.
func (d *deployment) during(ctx context.Context, l *load.Load, f func()) {
	running, halt := context.WithCancel(ctx)
	defer halt()
	done := make(chan error, 1)
	go func() { done <- l.Run(running) }()
	more := func(n int) {
		before, _ := l.Oracle.Acks()
		eventually(d.t, clusterWait, "writes are acknowledged", func(context.Context) error {
			if now, _ := l.Oracle.Acks(); now < before+n {
				return fmt.Errorf("%d of %d", now-before, n)
			}
			return nil
		})
	}
	more(50)
	f()
	more(50)
	halt()
	require.NoError(d.t, <-done)
}

func (d *deployment) killOneOfEach(ctx context.Context, l *load.Load) {
	n, s := d.leader(0, geo.Table), d.leader(1, geo.Catalog)
	d.during(ctx, l, func() {
		halt := d.gaps(d.gateway(false), "gap")
		d.signal(0, n, syscall.SIGKILL)
		d.signal(1, s, syscall.SIGKILL)
		d.acknowledged(d.gateway(false), "after", 1)
		d.acknowledged(d.at(0, (n+1)%3, false), "after", 2)
		for i := range 20 {
			d.acknowledged(d.gateway(false), "after", 3+i)
		}
		longest, writes := halt()
		d.t.Logf("one node of each location killed, the leader of the table range among them: %v without an acknowledged write, %d writes", longest, writes)
		require.Less(d.t, longest, gapMax)
	})
	began := time.Now()
	d.start()
	d.t.Logf("both are back and live after %v", time.Since(began).Round(10*time.Millisecond))
}

func (d *deployment) killTwo(ctx context.Context, l *load.Load) {
	d.during(ctx, l, func() {})
	lead := d.leader(0, geo.Table)
	d.signal(0, lead, syscall.SIGKILL)
	d.signal(0, (lead+1)%3, syscall.SIGKILL)
	eventually(d.t, clusterWait, "writes are refused with 503", func(ctx context.Context) error {
		a, err := put(ctx, d.at(0, (lead+2)%3, false), "refused", 1)
		return sameOrWait(err, a.Status, http.StatusServiceUnavailable)
	})
	d.start()
}

// pauseLeader pauses the leader of the table range, writes at another node until a new one
// has taken it, and reads at the old one as soon as it goes on.
func (d *deployment) pauseLeader(ctx context.Context) {
	t := d.t
	d.acknowledged(d.gateway(false), "paused", 1)
	lead := d.leader(0, geo.Table)
	d.signal(0, lead, syscall.SIGSTOP)
	resumed := false
	defer func() {
		if !resumed {
			d.signal(0, lead, syscall.SIGCONT)
		}
	}()
	began := time.Now()
	d.acknowledged(d.at(0, (lead+1)%3, false), "paused", 2)
	t.Logf("leader paused: a write is acknowledged after %v", time.Since(began).Round(10*time.Millisecond))
	d.signal(0, lead, syscall.SIGCONT)
	resumed = true
	answers := 0
	eventually(t, clusterWait, "the resumed node answers", func(context.Context) error {
		v, a, err := read(ctx, d.at(0, lead, false), "paused")
		if err != nil || !a.OK() {
			return fmt.Errorf("%v: %w", a, err)
		}
		require.Equal(t, int64(2), v, "a stale read (R5)")
		if answers++; answers < 20 {
			return fmt.Errorf("%d answers", answers)
		}
		return nil
	})
}
