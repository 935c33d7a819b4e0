package slowlink

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/cluster"
	"antipode/server/config"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/rest"
)

const lossTable = "loss"

// R16 with processes: the primary loses a write that the secondary has, in a recovery with loss, and commits
// another one, while either the calls between the locations are cut or the bus is; in either direction. The
// statistics become unavailable with the reason, within 2 s of that write; no Last Sync Time is at or above it, also after all processes were killed and the cut has ended.
//
// Capability: Two locations: The link between processes.
func TestR16LossWhileHalfOfTheLinkIsCut(t *testing.T) {
	for _, half := range []cluster.Use{cluster.Calls, cluster.Bus} {
		for _, primary := range []geo.Location{rig.North, rig.South} {
			t.Run(fmt.Sprintf("%s cut, primary %s", half, primary), func(t *testing.T) {
				if !strict() && (half != cluster.Calls || primary != rig.North) {
					t.Skip("make slowlink plays all four")
				}
				lossUnderCut(t, half, primary)
			})
		}
	}
}

// pair is an account of a test whose primary is at either location.
type pair struct {
	t                  *testing.T
	r                  *rig.Rig
	account            geo.Account
	primary, secondary geo.Location
}

func lossUnderCut(t *testing.T, half cluster.Use, primary geo.Location) {
	// Without calls a location that has started is not confirmed by the other one (R21). These take writes all the same.
	alone := rig.StartTest(t, func(c *config.Node) { c.CacheBytes, c.Pair.Away = cacheBytes, config.Accept })
	p := &pair{t, alone, "lossaccount", primary, rig.South}
	if primary == rig.South {
		p.secondary = rig.North
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*readyWait)
	defer cancel()
	_, err := p.r.Admin(rig.Gateway).CreateAccount(ctx, wire.NewAccount{Name: p.account, Location: primary, Key1: rest.DevKey, Key2: rest.DevKey, Ensure: true})
	require.NoError(t, err)
	p.eventually(ctx, "a table", func() bool { return p.client(rig.Gateway, false).CreateTable(ctx, lossTable) == nil })
	p.write(ctx, "kept")
	p.eventually(ctx, "it is at the secondary", func() bool { return p.readable(ctx) == "kept" })
	nodes := rig.NodesOf(primary)
	leader, err := p.r.Leader(ctx, primary, geo.Table)
	require.NoError(t, err)
	left := rig.Others([]string{leader}, nodes)[0]
	others := rig.Others([]string{left}, nodes)
	require.NoError(t, p.r.Kill(left))
	p.write(ctx, "lost")
	p.eventually(ctx, "it is at the secondary", func() bool { return p.readable(ctx) == "lost" })

	north, south := rig.NodesOf(rig.North), rig.NodesOf(rig.South)
	require.NoError(t, p.r.Cut(proxy.Fault{Refuse: true}, north, south, half))
	for _, name := range others {
		require.NoError(t, p.r.Kill(name))
	}
	require.NoError(t, p.r.Launch(left))
	for _, v := range geo.Services {
		p.recover(ctx, left, rangeOf(v))
	}
	p.recover(ctx, left, rangeOf(geo.Catalog))
	for _, name := range others {
		require.NoError(t, p.r.Launch(name))
	}
	p.write(ctx, "after")
	written := time.Now()
	p.unavailable(ctx, written)
	t.Logf("unavailable %v after the write that contradicts the lost one", time.Since(written).Round(time.Millisecond))
	if strict() {
		require.Less(t, time.Since(written), 2*time.Second)
	}

	for _, name := range rig.All() {
		require.NoError(t, p.r.Kill(name))
	}
	for _, name := range rig.All() {
		require.NoError(t, p.r.Launch(name))
	}
	p.unavailable(ctx, written)
	require.NoError(t, p.r.Cut(proxy.Fault{}, north, south, half))
	p.write(ctx, "later")
	for end := time.Now().Add(min(*duration, 10*time.Second)); time.Now().Before(end); rig.Pause(ctx, poll) {
		p.unavailable(ctx, written)
	}
	require.Equal(t, "lost", p.readable(ctx))
}

func (p *pair) client(name string, secondary bool) *rest.Client {
	return p.r.ClientOf(name, p.account, secondary)
}

func (p *pair) eventually(ctx context.Context, what string, ok func() bool) {
	p.t.Helper()
	for !ok() {
		require.NoError(p.t, ctx.Err(), what)
		rig.Pause(ctx, poll)
	}
}

// write sets the value at the primary, again while it has no leader.
func (p *pair) write(ctx context.Context, value string) {
	p.t.Helper()
	p.eventually(ctx, "a write of "+value, func() bool {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		a, err := p.client(rig.NodesOf(p.primary)[0], false).Replace(one, lossTable, "", rest.Entity{"PartitionKey": "p", "RowKey": "r", "V": value})
		if err != nil || !a.OK() {
			a, err = p.client(rig.NodesOf(p.primary)[1], false).Replace(one, lossTable, "", rest.Entity{"PartitionKey": "p", "RowKey": "r", "V": value})
		}
		return err == nil && a.OK()
	})
}

// readable is the value at the secondary.
func (p *pair) readable(ctx context.Context) string {
	e, _, err := p.client(rig.NodesOf(p.secondary)[0], true).GetEntity(ctx, lossTable, "p", "r")
	if err != nil {
		return ""
	}
	v, _ := e["V"].(string)
	return v
}

// recover re-forms a range of the primary from the one node that runs.
func (p *pair) recover(ctx context.Context, at string, id geo.RangeID) {
	p.t.Helper()
	p.eventually(ctx, fmt.Sprintf("range %d is re-formed", id), func() bool {
		_, err := p.r.Admin(at).RecoverRange(ctx, p.primary, id, wire.RecoverRange{AcceptLoss: true, WithoutPair: true})
		return err == nil
	})
}

// unavailable waits until the secondary shows that the copy has forked. Meanwhile it shows no Last Sync Time at
// or above a time.
func (p *pair) unavailable(ctx context.Context, written time.Time) {
	p.t.Helper()
	p.eventually(ctx, "the statistics are unavailable because of a fork", func() bool {
		l, err := p.r.Admin(rig.NodesOf(p.secondary)[0]).Lag(ctx, p.account, wire.LagQuery{Service: geo.Table.String()})
		if err != nil || len(l.Services) != 1 {
			return false
		}
		s := l.Services[0]
		if s.Status == wire.Live && !s.LastSyncTime.IsZero() {
			require.True(p.t, s.LastSyncTime.Before(written), "Last Sync Time %v, and what was written before %v is missing", s.LastSyncTime, written)
		}
		return s.Status == wire.Unavailable && s.Reason == "forked"
	})
}
