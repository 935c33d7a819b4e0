package dev

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/test/linear"
	"antipode/test/rest"
)

// Entities and blobs are linearizable at the primary while the node that leads their
// range is stopped again and again, requests under way: reads and failed conditions
// included (R1, R5).
//
// Capability: The primary location: Linearizable.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	const clients = 8
	ops, stops := 150, int32(5)
	if testing.Short() {
		ops, stops = 40, 2
	}
	c := startFaulty(t)
	gateway := gatewayClient(c, "")
	require.NoError(t, linear.Setup(t.Context(), gateway))

	h := linear.New(clock.System{})
	var stopped atomic.Int32
	stop := make(chan struct{})
	var disturbed, wg sync.WaitGroup
	disturbed.Go(func() { stopLeaders(t, c, []geo.Service{geo.Table, geo.Blob}, int(stops), stop, &stopped) })
	errs := make([]error, clients)
	for id := range clients {
		rng := rand.New(rand.NewPCG(uint64(id), 1))
		wg.Go(func() {
			errs[id] = h.Client(t.Context(), id, rng, []*rest.Client{gateway}, func(done int) bool {
				return done < ops || stopped.Load() < stops
			})
		})
	}
	wg.Wait()
	close(stop)
	disturbed.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	all, unknown, refused := h.Counts()
	t.Logf("%d operations, %d without an answer, %d others refused, %d stops of a leader", all, unknown, refused, stopped.Load())
	require.NoError(t, h.Check(filepath.Join(t.TempDir(), "history.html")))
	require.GreaterOrEqual(t, all, clients*ops/2, "most operations had an answer")
}

// Entity group transactions and queries of their partition are linearizable at the primary while the node that leads
// the table range is stopped again and again, failed transactions with the step that failed included; -secondary shows
// each partition as it was at one moment, and never goes back (R1, R5, R14).
//
// Capability: The primary location: Histories of transactions.
func TestTransactionsAreLinearizable(t *testing.T) {
	t.Parallel()
	const clients, followers = 6, 2
	ops, stops := 150, int32(4)
	if testing.Short() {
		ops, stops = 40, 2
	}
	c := startFaulty(t)
	gateway, second := gatewayClient(c, ""), gatewayClient(c, geo.SecondarySuffix)
	require.NoError(t, linear.Setup(t.Context(), gateway))
	eventually(t, "the table arrives", func() bool {
		_, a, err := second.Query(t.Context(), linear.Table, rest.Query{})
		return err == nil && a.Status == http.StatusOK
	})

	h := linear.NewOfTransactions(clock.System{})
	var stopped atomic.Int32
	stop := make(chan struct{})
	var disturbed, wg sync.WaitGroup
	disturbed.Go(func() { stopLeaders(t, c, []geo.Service{geo.Table}, int(stops), stop, &stopped) })
	more := func(done int) bool { return done < ops || stopped.Load() < stops }
	errs := make([]error, clients+followers)
	for id := range clients + followers {
		rng := rand.New(rand.NewPCG(uint64(id), 2))
		wg.Go(func() {
			if id < clients {
				errs[id] = h.Transactor(t.Context(), id, rng, []*rest.Client{gateway}, more)
			} else {
				errs[id] = h.Follower(t.Context(), id, rng, second, more)
			}
		})
	}
	wg.Wait()
	close(stop)
	disturbed.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	all, unknown, refused := h.Counts()
	t.Logf("%d operations, %d without an answer, %d others refused, %d stops of a leader", all, unknown, refused, stopped.Load())
	require.NoError(t, h.Check(filepath.Join(t.TempDir(), "history.html")))
	require.GreaterOrEqual(t, all, clients*ops/2, "most operations had an answer")
}

// gatewayClient asks the gateway for northacct; suffix addresses the secondary.
func gatewayClient(c *Cluster, suffix string) *rest.Client {
	client := &rest.Client{HTTP: &http.Client{}, Base: map[geo.Service]string{}, Account: "northacct", Key: key64, Clock: clock.System{}}
	for _, s := range geo.Services {
		client.Base[s] = fmt.Sprintf("http://%s/%s%s", c.gateway.Of(s), client.Account, suffix)
	}
	return client
}

// stopLeaders stops the node that leads the range of each of the services in turn, and starts it
// again.
func stopLeaders(t *testing.T, c *Cluster, services []geo.Service, stops int, stop chan struct{}, stopped *atomic.Int32) {
	stamp := runningStamp(c.locations[North])
	for i := range stops {
		service := services[i%len(services)]
		leader := geo.NodeID(0)
		for leader == 0 {
			for _, id := range stamp.Nodes() {
				if n := stamp.Node(id); n != nil && n.Range(geo.FirstRange(service)).Leading() {
					leader = id
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
		if err := stamp.Stop(leader, false); err != nil {
			t.Errorf("stop node %d: %v", leader, err)
		}
		time.Sleep(100 * time.Millisecond)
		if err := stamp.Start(leader); err != nil {
			t.Errorf("start node %d: %v", leader, err)
		}
		stopped.Add(1)
		time.Sleep(200 * time.Millisecond)
	}
}
