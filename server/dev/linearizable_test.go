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
func TestLinearizable(t *testing.T) {
	t.Parallel()
	const clients = 8
	ops, stops := 150, int32(5)
	if testing.Short() {
		ops, stops = 40, 2
	}
	c := startFaulty(t)
	gateway := &rest.Client{HTTP: &http.Client{}, Base: map[geo.Service]string{}, Account: "northacct", Key: key64, Clock: clock.System{}}
	for _, s := range geo.Services {
		gateway.Base[s] = fmt.Sprintf("http://%s/%s", c.gateway.Of(s), gateway.Account)
	}
	require.NoError(t, linear.Setup(t.Context(), gateway))

	h := linear.New(clock.System{})
	var stopped atomic.Int32
	stop := make(chan struct{})
	var disturbed, wg sync.WaitGroup
	disturbed.Go(func() { stopLeaders(t, c, int(stops), stop, &stopped) })
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

// stopLeaders stops the node that leads the table range or the blob range, and starts it
// again.
func stopLeaders(t *testing.T, c *Cluster, stops int, stop chan struct{}, stopped *atomic.Int32) {
	stamp := runningStamp(c.locations[North])
	for i := range stops {
		service := []geo.Service{geo.Table, geo.Blob}[i%2]
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
