package dev

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

var wholeAccounts = flag.Int("accounts", 40, "how many accounts TestR19WholeLocation moves")

// gaps are the times between acknowledged writes of one account.
type gaps struct {
	longest time.Duration
	acked   int64
}

// writeOn writes one key of an account upward until ctx ends.
func writeOn(ctx context.Context, c *Cluster, account geo.Account) (g gaps) {
	last := time.Now()
	for n := int64(1); ctx.Err() == nil; n++ {
		a, err := try(c.gateway, account, http.MethodPut, entityPath(account, "", "w"), fmt.Sprintf(`{"v":"%d"}`, n))
		if err == nil && a.status == http.StatusNoContent {
			now := time.Now()
			g.longest, g.acked, last = max(g.longest, now.Sub(last)), n, now
		}
	}
	return g
}

// counted is how many accounts that have a copy the progress counts.
func counted(f wire.LocationFailover) int {
	n := f.Waiting + f.Moved
	for _, under := range f.Moving {
		n += under
	}
	return n
}

// A planned failover of a whole location and back (R19), while ten of its accounts are written: all accounts move, the
// progress counts every account once, no acknowledged write is lost, and the accounts that another location had are where they
// were. The log has what it took; -accounts=10000 is the size that is aimed at.
//
// Capability: Failover: A failover of a whole location.
func TestR19WholeLocation(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	many := *wholeAccounts
	name := func(i int) geo.Account { return geo.Account(fmt.Sprintf("whole%05d", i)) }
	var made sync.WaitGroup
	begun := time.Now()
	for w := range 32 {
		made.Go(func() {
			for i := w; i < many; i += 32 {
				if err := c.EnsureAccount(t.Context(), North, name(i), key64, key64); err != nil {
					t.Errorf("account %d: %v", i, err)
				}
			}
		})
	}
	made.Wait()
	t.Logf("%d accounts made in %.1f s", many, time.Since(begun).Seconds())
	const writers = 10
	for i := range writers {
		createTable(t, c, name(i))
	}
	client := adminClient(t, c)
	begun = time.Now()
	plan, err := client.FailLocationOver(t.Context(), South, wire.Failover{Type: wire.FailoverUnplanned, DryRun: true})
	require.NoError(t, err)
	require.Empty(t, plan.Phase, "nothing is begun")
	require.Zero(t, plan.Refused+plan.Unchecked)
	require.GreaterOrEqual(t, plan.Waiting, many)
	t.Logf("the plan of an unplanned failover of %d accounts took %.1f s", plan.Waiting, time.Since(begun).Seconds())
	for _, way := range []struct{ from, to geo.Location }{{North, South}, {South, North}} {
		ctx, cancel := context.WithCancel(t.Context())
		var wrote sync.WaitGroup
		var of [writers]gaps
		for i := range writers {
			wrote.Go(func() { of[i] = writeOn(ctx, c, name(i)) })
		}
		begun = time.Now()
		now, err := client.FailLocationOver(t.Context(), way.from, wire.Failover{Type: wire.FailoverPlanned})
		require.NoError(t, err)
		all, counts := counted(now), []int(nil)
		require.Eventually(t, func() bool {
			if next, err := client.LocationFailover(t.Context(), way.from); err == nil {
				now, counts = next, append(counts, counted(next))
			}
			return now.Phase == wire.LocationOver
		}, 20*time.Minute, 500*time.Millisecond)
		for _, n := range counts {
			require.Equal(t, all, n, "every account is counted once, wherever it is")
		}
		took := time.Since(begun)
		cancel()
		wrote.Wait()
		require.Equal(t, all, now.Moved)
		require.Zero(t, now.Waiting)
		require.Zero(t, now.Refused)
		var pauses []time.Duration
		for _, g := range of {
			pauses = append(pauses, g.longest.Round(time.Millisecond))
		}
		slices.Sort(pauses)
		t.Logf("%d accounts from %s to %s in %.1f s; the longest pauses of writes, of %d accounts: %v", all, way.from, way.to, took.Seconds(), writers, pauses)
		for i := range writers {
			requireAt(t, c, name(i), way.to)
			has, err := strconv.ParseInt(read(t, c, name(i), "", "w"), 10, 64)
			require.NoError(t, err)
			require.GreaterOrEqual(t, has, of[i].acked)
		}
	}
	requireAt(t, c, "southacct", North) // It went back with the others.
}
