package redundancy

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/cluster"
	"antipode/services/catalog"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
	"antipode/test/load"
)

// How much: `make redundancy` sets it.
var (
	unplanned = flag.Int("unplanned", 1, "how often all nodes of the primary are killed under load and the account is promoted")
	promotes  = flag.Duration("promotes", 2*time.Minute, "how long a promotion may take from the command on: 10 s is the aim, and a slow machine is not a broken promise")
)

// Both locations in turn lose all three nodes of the primary by kill -9 under load, and the other one is promoted (R20).
// What the client alone knows is compared with what the product says:
//
//   - no write that was committed at or below the Last Sync Time that was reported last before the kill is missing, nor at
//     or below the one that the command states;
//   - of those that are gone, not more were committed up to the stated last contact than the command counts as lost;
//   - the former primary takes no write when it is back: whatever is acknowledged through its nodes is at the new one;
//   - the lost-change report at the former primary has every acknowledged write that is gone, and none that is not (R22);
//   - after its copy was made again where that is needed, both copies agree.
func TestR20UnplannedUnderLoad(t *testing.T) {
	r := rig.StartTest(t, nil)
	ctx := t.Context()
	a := create(ctx, t, r, "promoted", load.Options{Clients: 1})
	_, err := r.Admin(rig.Gateway).UpdateAccount(ctx, a.name, wire.UpdateAccount{Redundancy: string(catalog.RAGRS)})
	require.NoError(t, err)
	a.comesTo(ctx, catalog.RAGRS)
	a.Secondary = r.ClientOf(rig.Gateway, a.name, true)
	require.NoError(t, ledger.Setup(ctx, a.Primary))
	from, to := rig.North, rig.South
	for round := range *unplanned {
		a.live(ctx)
		a.promoted(ctx, from, to, round)
		from, to = to, from
	}
}

// promoted plays one round. In the first of three the link is cut shortly before the kill, in the second no payload arrives,
// and in the third everything as it happens.
func (a *account) promoted(ctx context.Context, from, to geo.Location, round int) {
	a.t.Helper()
	writes := &ledger.Ledger{Prefix: fmt.Sprintf("r%d-", round)}
	stop := a.ledgering(ctx, writes, rig.Gateway)
	defer stop()
	reported := a.reporting(ctx, to)
	a.eventually(ctx, "writes are acknowledged and reported as arrived", func(context.Context) bool {
		return writes.Acked() > 200 && len(ledger.Through(acked(writes), reported.now()["table"])) > 50
	})
	switch round % 3 {
	case 0:
		require.NoError(a.t, a.r.Cut(proxy.Fault{Refuse: true}, rig.NodesOf(from), rig.NodesOf(to)))
	case 1:
		require.NoError(a.t, a.r.Cut(proxy.Fault{HoldForth: true}, rig.NodesOf(from), rig.NodesOf(to), cluster.Calls))
	}
	cut := writes.Acked()
	a.eventually(ctx, "writes go on", func(context.Context) bool { return writes.Acked() > cut+20 })
	reported.end()
	for _, name := range rig.NodesOf(from) {
		require.NoError(a.t, a.r.Kill(name))
	}
	last := reported.now()
	require.NoError(a.t, a.r.Cut(proxy.Fault{}, rig.NodesOf(from), rig.NodesOf(to)))
	began := time.Now()
	loss := a.promote(ctx, to)
	took := time.Since(began)
	require.Less(a.t, took, *promotes)
	before := writes.Acked()
	a.eventually(ctx, "the new primary takes writes", func(context.Context) bool { return writes.Acked() > before+20 })

	forwarded := &ledger.Ledger{Prefix: fmt.Sprintf("f%d-", round)}
	stopForwarded := a.ledgering(ctx, forwarded, rig.NodesOf(from)...)
	defer stopForwarded()
	for _, name := range rig.NodesOf(from) {
		require.NoError(a.t, a.r.Launch(name))
	}
	a.rejoined(ctx, from, to)
	a.eventually(ctx, "the former primary passes writes on", func(context.Context) bool { return forwarded.Acked() > 5 })
	stop()
	stopForwarded()

	found, err := writes.Find(ctx, a.Primary)
	require.NoError(a.t, err)
	passed, err := forwarded.Find(ctx, a.Primary)
	require.NoError(a.t, err)
	require.Empty(a.t, passed.Lost, "acknowledged by the former primary")
	for _, e := range found.Lost {
		require.False(a.t, e.Began.After(began), "acknowledged after the command and gone: %s", e)
	}
	for _, s := range []geo.Service{geo.Table, geo.Blob} {
		lost := ledger.Of(found.Lost, s)
		require.Empty(a.t, ledger.Through(lost, last[s.String()]), "at or below the Last Sync Time reported last, %s", last[s.String()])
		stated := loss[s.String()]
		require.False(a.t, stated.LastSyncTime.Before(last[s.String()]), "the guarantee went back: %s after %s", stated.LastSyncTime, last[s.String()])
		require.Empty(a.t, ledger.Through(lost, stated.LastSyncTime.Time), "at or below the stated Last Sync Time")
		require.False(a.t, stated.UnboundedSince.IsZero())
		require.LessOrEqual(a.t, uint64(len(ledger.Through(lost, stated.UnboundedSince.Time))), stated.KnownRecords,
			"gone and committed up to the last contact, %s", stated.UnboundedSince)
	}
	listed, perhaps := a.reported(ctx, from, writes.Prefix, found)
	a.live(ctx)
	a.agrees(ctx)
	a.t.Logf("round %d: promoted in %.1f s; %d writes acknowledged, %d gone, %d of unknown fate gone; %d of both reported, %d perhaps answered; stated %+v",
		round, took.Seconds(), writes.Acked(), len(found.Lost), len(found.Absent), listed, perhaps, loss)
	if round%3 == 0 {
		require.NotEmpty(a.t, found.Lost, "nothing was lost: the round has shown nothing of that")
	}
	require.NoError(a.t, a.r.Ready(ctx))
}

// acked are the acknowledged writes of a ledger.
func acked(l *ledger.Ledger) []ledger.Entry {
	return slices.DeleteFunc(l.Entries(), func(e ledger.Entry) bool { return e.Fate != ledger.Acked })
}

// ledgering writes through processes until the function that it returns is called, which returns once every write has its
// answer.
func (a *account) ledgering(ctx context.Context, l *ledger.Ledger, through ...string) (end func()) {
	ctx, halt := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i, name := range through {
		wg.Go(func() {
			l.Run(ctx, a.r.ClientOf(name, a.name, false), max(2, 8/len(through)), time.Duration(5+i)*time.Millisecond)
		})
	}
	return sync.OnceFunc(func() {
		halt()
		wg.Wait()
	})
}

// reports are the Last Sync Times by service as the secondary has reported them last.
type reports struct {
	end func()
	mu  sync.Mutex
	at  map[string]time.Time
}

func (r *reports) now() map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.at)
}

// reporting reads the Last Sync Times of the account at the nodes of its secondary.
func (a *account) reporting(ctx context.Context, at geo.Location) *reports {
	out := &reports{at: map[string]time.Time{}}
	ctx, halt := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; rig.Pause(ctx, poll) {
			got, err := a.r.Admin(rig.NodesOf(at)[0]).Status(ctx)
			if err != nil {
				continue
			}
			out.mu.Lock()
			for _, of := range got.Accounts {
				for _, s := range of.Services {
					if of.Name == a.name && s.LastSyncTime.After(out.at[s.Service]) {
						out.at[s.Service] = s.LastSyncTime.Time
					}
				}
			}
			out.mu.Unlock()
		}
	}()
	out.end = sync.OnceFunc(func() {
		halt()
		<-done
	})
	return out
}

// promote gives the command, and waits until the location is the primary. It returns what the command then states as lost,
// by service.
func (a *account) promote(ctx context.Context, to geo.Location) map[string]wire.ServiceLoss {
	a.t.Helper()
	ask := func(ctx context.Context, dry bool) (wire.AccountUpdated, error) {
		return a.r.Admin(rig.Gateway).UpdateAccount(ctx, a.name, wire.UpdateAccount{
			Failover: &wire.Failover{Type: wire.FailoverUnplanned, To: to, DryRun: dry},
		})
	}
	a.eventually(ctx, "the promotion begins", func(ctx context.Context) bool { _, err := ask(ctx, false); return err == nil })
	out := map[string]wire.ServiceLoss{}
	a.eventually(ctx, "the account is promoted", func(ctx context.Context) bool {
		now, err := ask(ctx, true)
		for _, l := range now.Loss {
			out[l.Service] = l
		}
		return err == nil && now.Primary == to
	})
	return out
}

// rejoined waits until the former primary is the secondary, and has its copy made again where that is needed.
func (a *account) rejoined(ctx context.Context, former, now geo.Location) {
	a.t.Helper()
	var here, there wire.AccountInfo
	var refused error
	defer func() {
		if a.t.Failed() {
			a.t.Logf("at the new primary %+v, at the former one %+v; a rebuild: %v", here.Account, there.Account, refused)
		}
	}()
	a.eventually(ctx, "the former primary is the secondary", func(ctx context.Context) bool {
		at := a.r.Admin(rig.NodesOf(now)[0])
		var err error
		here, err = at.Account(ctx, a.name)
		if err != nil || here.Primary != now {
			return false
		}
		if here.Operation != "" {
			if strings.Contains(here.Operation, "account rebuild") { // Each begins the copy again: only where it is asked for.
				_, refused = at.UpdateAccount(ctx, a.name, wire.UpdateAccount{Rebuild: true})
			}
			return false
		}
		there, err = a.r.Admin(rig.NodesOf(former)[0]).Account(ctx, a.name)
		return err == nil && there.Primary == now && there.Epoch == here.Epoch && there.Operation == ""
	})
}
