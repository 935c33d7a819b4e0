package faults

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/rest"
)

const (
	// probeEvery is the time between two writes of a probe, and probeWait what each may
	// take: they do not wait for each other.
	probeEvery = 10 * time.Millisecond
	probeWait  = 15 * time.Second
	// probesMax bounds those under way.
	probesMax = 256
	// aloneFor is how long a resumed leader still receives from nobody.
	aloneFor = 500 * time.Millisecond
	// outageMax is what the time without writes must stay below on any machine, however
	// busy; what it is at rest is measured, not tested.
	outageMax = 30 * time.Second
)

// The table and the container of these tests.
const (
	table     = "faults"
	container = "faults"
)

func setup(ctx context.Context, t *testing.T, c *rest.Client) {
	t.Helper()
	require.NoError(t, c.CreateTable(ctx, table))
	require.NoError(t, c.CreateContainer(ctx, container))
}

// probes are one small write for each range that takes writes of clients.
func probes(c *rest.Client) map[geo.Service]func(ctx context.Context, n int64) (rest.Answer, error) {
	return map[geo.Service]func(context.Context, int64) (rest.Answer, error){
		geo.Table: func(ctx context.Context, n int64) (rest.Answer, error) {
			return c.Replace(ctx, table, "", rest.Entity{"PartitionKey": fmt.Sprint(n % 64), "RowKey": "probe", "V": n})
		},
		geo.Blob: func(ctx context.Context, n int64) (rest.Answer, error) {
			return c.PutBlob(ctx, container, fmt.Sprintf("probe-%d", n%64), []byte("probe"))
		},
		geo.Catalog: func(ctx context.Context, n int64) (rest.Answer, error) {
			return c.Do(ctx, geo.Blob, rest.Request{Method: http.MethodPut, Path: fmt.Sprintf("/probe-%d", n), Query: "restype=container"})
		},
	}
}

// number makes the probes' writes different.
type number struct{ last atomic.Int64 }

// firstWrite returns how long after began a write that was sent after it was acknowledged,
// writing all the time.
func firstWrite(ctx context.Context, n *number, began time.Time, write func(context.Context, int64) (rest.Answer, error)) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, outageMax)
	defer cancel()
	done := make(chan time.Duration, probesMax)
	var sent sync.WaitGroup
	defer sent.Wait()
	defer cancel()
	under := make(chan struct{}, probesMax)
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case d := <-done:
			return d, nil
		case <-ctx.Done():
			return 0, fmt.Errorf("no write within %v: %w", outageMax, ctx.Err())
		case <-tick.C:
		}
		select {
		case under <- struct{}{}:
		default:
			continue
		}
		sent.Go(func() {
			defer func() { <-under }()
			one, cancel := context.WithTimeout(ctx, probeWait)
			defer cancel()
			if a, err := write(one, n.last.Add(1)); err == nil && a.OK() {
				select {
				case done <- time.Since(began):
				default:
				}
			}
		})
	}
}

// Killing the leader of a range, of each in turn, stops its writes for a moment only: the log
// has the times.
//
// Capability: The primary location: Time without writes after a range's leader is killed.
func TestLeaderKilled(t *testing.T) {
	r := startLong(t)
	ctx := t.Context()
	gateway := r.Client(rig.Gateway, false)
	setup(ctx, t, gateway)
	var n number
	var all []time.Duration
	for round := range *rounds * 3 {
		service := []geo.Service{geo.Table, geo.Blob, geo.Catalog}[round%3]
		find, cancel := context.WithTimeout(ctx, readyWait)
		leader, err := r.Leader(find, rig.North, service)
		require.NoError(t, err)
		var affected []geo.Service
		for s := range probes(gateway) {
			if name, err := r.Leader(find, rig.North, s); err == nil && name == leader {
				affected = append(affected, s)
			}
		}
		cancel()
		began := time.Now()
		require.NoError(t, r.Kill(leader))
		outages := make([]time.Duration, len(affected))
		errs := make([]error, len(affected))
		var probed sync.WaitGroup
		for i, s := range affected {
			probed.Go(func() { outages[i], errs[i] = firstWrite(ctx, &n, began, probes(gateway)[s]) })
		}
		probed.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		t.Logf("%s, which led %v, killed: writes again after %v", leader, affected, outages)
		all = append(all, slices.Max(outages))
		require.NoError(t, r.Launch(leader))
		ready(ctx, t, r)
	}
	slices.Sort(all)
	t.Logf("time without writes: median %v, most %v of %d", all[len(all)/2], all[len(all)-1], len(all))
}

// With two of three nodes killed every write is refused as busy, none is acknowledged, and
// reads at -secondary go on; when they return, all that was acknowledged before is there,
// and writes go on by themselves.
func TestTwoNodesKilled(t *testing.T) {
	r := startLong(t)
	ctx := t.Context()
	gateway, secondary := r.Client(rig.Gateway, false), r.Client(rig.Gateway, true)
	setup(ctx, t, gateway)
	rng := random(1)
	for round := range *rounds {
		acked := map[int]string{}
		for i := range 20 {
			a, err := gateway.Replace(ctx, table, "", rest.Entity{"PartitionKey": fmt.Sprint(i), "RowKey": "r", "V": fmt.Sprint(round)})
			require.NoError(t, err)
			require.True(t, a.OK(), "%v", a)
			acked[i] = a.Header.Get("ETag")
		}
		left := one(rng, rig.North)
		gone := rig.Others([]string{left}, rig.NodesOf(rig.North))
		undo, err := killed(r, gone...)
		require.NoError(t, err)
		requireBusy(t, gone, gateway, r.Client(left, false))
		_, a, err := secondary.GetEntity(ctx, table, "0", "r")
		require.NoError(t, err)
		require.True(t, a.OK() || a.Status == http.StatusNotFound, "%v", a)
		require.NoError(t, undo())
		ready(ctx, t, r)
		for i, tag := range acked {
			e, a, err := gateway.GetEntity(ctx, table, fmt.Sprint(i), "r")
			require.NoError(t, err)
			require.True(t, a.OK(), "%v", a)
			require.Equal(t, tag, a.Header.Get("ETag"))
			require.Equal(t, fmt.Sprint(round), e["V"])
		}
	}
}

// requireBusy requires that no write is acknowledged, and that each endpoint answers as busy
// once a leader that is left alone has noticed.
func requireBusy(t *testing.T, gone []string, endpoints ...*rest.Client) {
	t.Helper()
	for _, c := range endpoints {
		began := time.Now()
		for {
			a, err := c.Replace(t.Context(), table, "", rest.Entity{"PartitionKey": "refused", "RowKey": "r"})
			require.NoError(t, err)
			require.False(t, a.OK(), "a write with one node left: %v", a)
			if a.Status == http.StatusServiceUnavailable {
				require.Equal(t, storageerr.ServerBusy.Code, a.Code)
				require.NotEmpty(t, a.Header.Get("Retry-After"))
				break
			}
			require.Equal(t, storageerr.OperationTimedOut.Code, a.Code, "%v", a)
			require.Less(t, time.Since(began), readyWait, "a write is still not refused: %v", a)
		}
		t.Logf("with %v killed a write is refused as busy after %v", gone, time.Since(began).Round(time.Millisecond))
	}
}

// A leader that is paused while another takes over answers nothing old when it goes on, though
// it receives nothing: the reads that waited in its sockets and those that come at once are
// answered as busy, or by the newer value when the links are whole again (R5).
//
// Capability: The primary location: Reads at any node (R5).
func TestPausedLeader(t *testing.T) {
	r := rig.StartTest(t, nil)
	ctx := t.Context()
	gateway := r.Client(rig.Gateway, false)
	setup(ctx, t, gateway)
	write := func(c *rest.Client, v string) rest.Answer {
		a, err := c.Replace(ctx, table, "", rest.Entity{"PartitionKey": "p", "RowKey": "r", "V": v})
		require.NoError(t, err)
		return a
	}
	for round := range max(1, *rounds) {
		require.True(t, write(gateway, fmt.Sprint("before ", round)).OK())
		find, cancel := context.WithTimeout(ctx, readyWait)
		leader := leadsAlone(find, t, r)
		// It serves reads under its lease until the moment it stops.
		old := r.Client(leader, false)
		_, _, err := old.GetEntity(ctx, table, "p", "r")
		require.NoError(t, err)
		require.NoError(t, r.Pause(leader))
		others := rig.Others([]string{leader}, rig.NodesOf(rig.North))
		// It must know by its own clock, not by what waits in its sockets.
		heal, err := cut(r, proxy.Fault{HoldForth: true, HoldBack: true}, []string{leader}, others)
		require.NoError(t, err)
		next, err := r.Leader(find, rig.North, geo.Table, others...)
		require.NoError(t, err)
		newer := fmt.Sprint("after ", round)
		for !write(r.Client(next, false), newer).OK() {
			require.NoError(t, find.Err(), "no write at %s", next)
			rig.Pause(find, poll)
		}
		cancel()
		// A write that was refused above is never done; one without an answer was this value.
		fresh := checkFresh(ctx, old, newer)
		rig.Pause(ctx, 4*poll) // The reads are in its sockets.
		require.NoError(t, r.Resume(leader))
		rig.Pause(ctx, aloneFor)
		require.NoError(t, heal())
		answered, busy, err := fresh()
		require.NoError(t, err)
		t.Logf("%s, paused and resumed: %d reads answered, %d busy", leader, answered, busy)
		require.Positive(t, answered)
		ready(ctx, t, r)
	}
}

// leadsAlone returns the node that leads the catalog and the tables, so that it can answer a
// read by itself. Where they are apart it kills the catalog's leader and the tables' in turn
// until they are not: who follows whom is fixed for each range.
func leadsAlone(ctx context.Context, t *testing.T, r *rig.Rig) string {
	t.Helper()
	for turn := 0; ; turn++ {
		leader, err := r.Leader(ctx, rig.North, geo.Table)
		require.NoError(t, err)
		catalog, err := r.Leader(ctx, rig.North, geo.Catalog)
		require.NoError(t, err)
		if leader == catalog {
			return leader
		}
		victim, of := catalog, geo.Catalog
		if turn%2 == 1 {
			victim, of = leader, geo.Table
		}
		undo, err := killed(r, victim)
		require.NoError(t, err)
		_, err = r.Leader(ctx, rig.North, of, rig.Others([]string{victim}, rig.NodesOf(rig.North))...)
		require.NoError(t, err)
		require.NoError(t, undo())
		ready(ctx, t, r)
	}
}

// checkFresh sends reads from now on until some are answered. The function that it returns waits
// for them and fails if one showed another value.
func checkFresh(ctx context.Context, c *rest.Client, want string) func() (answered, busy int, err error) {
	const readers, answersEach = 16, 20
	var mu sync.Mutex
	var reading sync.WaitGroup
	var answered, busy int
	var wrong error
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	for range readers {
		reading.Go(func() {
			for i := 0; i < answersEach && ctx.Err() == nil; {
				e, a, err := c.GetEntity(ctx, table, "p", "r")
				mu.Lock()
				switch {
				case err != nil || a.Status == http.StatusServiceUnavailable:
					busy++
				case !a.OK() || e["V"] != want:
					wrong = fmt.Errorf("read %v: %v, want %s", a, e["V"], want)
					i++
				default:
					answered++
					i++
				}
				mu.Unlock()
				if err != nil {
					rig.Pause(ctx, poll)
				}
			}
		})
	}
	return func() (int, int, error) {
		reading.Wait()
		cancel()
		return answered, busy, wrong
	}
}
