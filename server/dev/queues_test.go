package dev

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/server/location"
	"antipode/services/catalog"
	"antipode/services/queues"
	"antipode/stamp/keys"
)

// A location scales a queue that is busy, deletes messages that have expired and those of a queue that was cleared, and
// counts all of that; the secondary gets the same rows. Nobody but it and the clients of the queue does anything.
//
// Capability: Queues: Collection and scaling.
func TestQ13LocationKeepsQueues(t *testing.T) {
	t.Parallel()
	c := startAdjusted(t, func(o *location.Options) {
		o.Queues.KeepEvery = 20 * time.Millisecond
		o.Queues.Scale = queues.ScaleOptions{
			Window: 100 * time.Millisecond, UpRate: 0.5, Cooldown: 100 * time.Millisecond, DownQuiet: time.Hour, DownSize: 1, Max: 2,
			WithinRange: true,
		}
	})
	ctx, north := t.Context(), c.locations[North]
	created := &catalog.Create{Service: geo.Queue, Account: "northacct", Name: "jobs"}
	require.NoError(t, north.Primary.Write(ctx, created))
	q := queues.Queue{Account: "northacct", Name: "jobs", Generation: created.Created.Generation()}
	dictionary := func() *queues.Dictionary {
		d, err := queues.ReadDictionary(leaderOf(c, North, geo.FirstRange(geo.Queue)).State(), q)
		require.NoError(t, err)
		return d
	}
	put := func(ttl time.Duration) {
		_, err := north.Messages().Put(ctx, q, queues.PutOptions{Text: []byte("x"), TTL: ttl})
		require.NoError(t, err)
	}
	eventually(t, "the queue has two subqueues", func() bool {
		put(time.Second)
		return len(dictionary().Subqueues) == 2
	})
	put(-1)
	count := func() uint64 {
		n, err := north.Messages().Count(ctx, north, q)
		require.NoError(t, err)
		return n
	}
	eventually(t, "what has expired is gone", func() bool { return count() == 1 })
	require.NoError(t, north.Messages().Clear(ctx, q))
	put(-1)
	eventually(t, "what was cleared is gone", func() bool {
		for _, e := range dictionary().Subqueues {
			if e.State == queues.StateToBeDeleted {
				return false
			}
		}
		return count() == 1
	})
	counted := map[string]float64{}
	families, err := c.registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if strings.HasPrefix(f.GetName(), "antipode_queue_") {
				counted[m.GetLabel()[0].GetValue()+m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	require.Positive(t, counted["added"+string(North)])
	require.Positive(t, counted[string(North)+"expired"])
	require.Positive(t, counted[string(North)+"cleared"])
	require.Contains(t, counted, string(South)+"expired")
	prefix := keys.AppendContainer(nil, geo.Queue, q.Account, q.Name, q.Generation)
	eventually(t, "the secondary has the same rows", func() bool {
		n := rowsAt(t, c, North, geo.Queue, "", prefix)
		return n > 0 && n == rowsAt(t, c, South, geo.Queue, "", prefix)
	})
}
