package sites

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/bus/natsbus"
	"antipode/server/config"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
)

// R5, 2.3: the nodes of the secondary are to leave more free than their disks have. While they are full each answers reads
// and Get Service Stats, and clients of the primary notice nothing; an orderly restart beside the full disks raises no alarm
// `damaged`. With room again the secondary gets what was written meanwhile, and Last Sync Time is true throughout.
func TestR5TheSecondaryIsFull(t *testing.T) {
	s := startWhole(t, nil)
	ctx := t.Context()
	south := rig.NodesOf(rig.South)
	var writes ledger.Ledger
	s.write(ctx, &writes, 60)
	s.arrived(ctx, &writes)
	before := writes.Entries()
	sampled := s.sampling(ctx, rig.South, 0, &writes)
	sampled.sampledAll(ctx)
	const tooMuch = 1 << 50
	s.restarted(ctx, south, func(c *config.Node) { c.ReserveBytes = tooMuch })
	s.full(ctx, true)
	for range 2 {
		s.answers(ctx, before)
		s.write(ctx, &writes, 60)
		s.restarted(ctx, south, nil)
		s.full(ctx, true)
	}
	s.answers(ctx, before)
	require.Zero(t, s.damaged(ctx))
	late := s.r.Client(south[0], true)
	absent := 0
	for _, e := range writes.Entries()[len(before):] {
		if there, err := ledger.There(ctx, late, e); err == nil && !there && e.Fate == ledger.Acked {
			absent++
		}
	}
	require.Positive(t, absent, "the full secondary took everything: the test shows nothing")

	s.restarted(ctx, south, func(c *config.Node) { c.ReserveBytes = 0 })
	s.full(ctx, false)
	s.arrived(ctx, &writes)
	s.passes(ctx)
	s.ready(ctx)
	s.kept(ctx, &writes)
	require.Zero(t, s.damaged(ctx))
	sampled.end()
	s.agrees(ctx)
	t.Logf("%d writes were not there while the secondary was full", absent)
}

// restarted stops nodes in order, changes their configurations, and starts them.
func (s *site) restarted(ctx context.Context, nodes []string, change func(c *config.Node)) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, calmWait)
	defer cancel()
	for _, name := range nodes {
		require.NoError(s.t, s.r.Stop(ctx, name))
	}
	for _, name := range nodes {
		if change != nil {
			require.NoError(s.t, s.r.Reconfigure(name, change))
		}
	}
	require.NoError(s.t, s.r.LaunchAll(nodes...))
}

// full waits until the status shows every node of the secondary with a full disk, or none.
func (s *site) full(ctx context.Context, full bool) {
	s.t.Helper()
	s.eventually(ctx, "the status of the disks of the secondary", func(ctx context.Context) bool {
		status, err := s.r.Admin(rig.Gateway).Status(ctx)
		n := 0
		for _, l := range status.Locations {
			for _, node := range l.Nodes {
				if l.Name == rig.South && node.DiskFull == full && node.Level > 0 {
					n++
				}
			}
		}
		return err == nil && n == rig.Nodes
	})
}

// answers waits until each node of the secondary answers the statistics of each service, and reads of writes that had
// arrived.
func (s *site) answers(ctx context.Context, had []ledger.Entry) {
	s.t.Helper()
	for _, name := range rig.NodesOf(rig.South) {
		c := s.r.Client(name, true)
		for _, of := range geo.Services {
			s.eventually(ctx, "statistics of "+of.String()+" at "+name, func(ctx context.Context) bool {
				_, err := c.Stats(ctx, of)
				return err == nil
			})
		}
		s.eventually(ctx, "reads at "+name, func(ctx context.Context) bool {
			for _, e := range had[:min(len(had), 20)] {
				if there, err := ledger.There(ctx, c, e); err != nil || e.Fate == ledger.Acked && !there {
					return false
				}
			}
			_, got, err := c.GetEntity(ctx, ledger.Name, "none", "none")
			return err == nil && got.Status == http.StatusNotFound
		})
	}
}

// damaged is how often a location has raised the alarm that its bus has lost messages.
func (s *site) damaged(ctx context.Context) (n uint64) {
	s.t.Helper()
	s.eventually(ctx, "alarms", func(ctx context.Context) bool {
		n = 0
		for _, name := range rig.NodesOf(rig.South) {
			status, err := s.r.Admin(name).Status(ctx)
			if err != nil {
				return false
			}
			n += status.Alarms[natsbus.AlarmDamaged]
		}
		return true
	})
	return n
}
