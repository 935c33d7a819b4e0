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
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
)

// How much: `make redundancy` sets it.
var (
	unplanned = flag.Int("unplanned", 2, "how often all nodes of the primary are killed under load and the account is promoted")
	promotes  = flag.Duration("promotes", 2*time.Minute, "how long a promotion may take from the command on: 10 s is the aim, and a slow machine is not a broken promise")
)

// What happens in a round before all nodes of the primary are killed. Rounds go through them in this order.
const (
	// secondBefore: the link is cut for contactAge.
	secondBefore = iota
	// payloadHeld: no payload arrives, until the last contact is later than the commit of a blob that is not there.
	payloadHeld
	// untouched: nothing.
	untouched
	// shortlyBefore: the link is cut for a few writes.
	shortlyBefore
	roundKinds
)

// contactAge is how old the last contact is in rounds of the kind secondBefore.
const contactAge = time.Second

// Both locations in turn lose all three nodes of the primary by kill -9 under load, and the other one is promoted (R20).
// What the client alone knows is compared with what the product says:
//
//   - no write that was committed at or below the Last Sync Time that was reported last before the kill is missing, nor at
//     or below the one that the command states;
//   - the bound of what is lost that the command states is never below the truth: of the acknowledged writes that are gone,
//     not more were committed up to the stated last contact than it counts as known lost, and all others after it;
//   - in time that bound is what lies between the stated last contact and the kill, and the truth what lies between the
//     commit of the first acknowledged write that is gone and the kill. Where the link was cut 1 s before the kill, the
//     bound is at most -bound times the truth, and the time before that write in which none was committed: how much of
//     such a time passed before the link was cut, no write shows;
//   - the former primary takes no write when it is back: whatever is acknowledged through its nodes is at the new one;
//   - the lost-change report at the former primary has every acknowledged write that is gone, and none that is not (R22);
//   - after its copy was made again where that is needed, both copies agree.
//
// Capability: Failover: Kill -9 of all three primary nodes under load, and a promotion, with processes (R20).
func TestR20UnplannedUnderLoad(t *testing.T) {
	r := rig.StartTest(t, nil)
	ctx := t.Context()
	a := pairedAccount(t, r)
	from, to := rig.North, rig.South
	var took []time.Duration
	lost := 0
	for round := range *unplanned {
		a.live(ctx)
		p, gone := a.unplannedRound(ctx, from, to, round)
		took, lost = append(took, p.took), lost+gone
		from, to = to, from
	}
	summary(t, "%d unplanned failovers under load: promoted in %s (most allowed: %v), %d acknowledged writes gone, each of them stated and reported",
		*unplanned, percentiles(took), *promotes, lost)
	require.LessOrEqual(t, rank(took, 100), *promotes)
}

// unplannedRound plays one round, and returns how many acknowledged writes are gone.
func (a *account) unplannedRound(ctx context.Context, from, to geo.Location, round int) (p promotion, gone int) {
	a.t.Helper()
	writes := &ledger.Ledger{Prefix: fmt.Sprintf("r%d-", round)}
	stop := a.ledgering(ctx, writes, rig.Gateway)
	defer stop()
	reported := a.reporting(ctx, to)
	a.eventually(ctx, "writes are acknowledged and reported as arrived", func(context.Context) bool {
		return writes.Acked() > 200 && len(ledger.Through(acked(writes), reported.now()["table"])) > 50
	})
	kind := round % roundKinds
	a.before(ctx, kind, from, to, writes)
	p = a.lose(ctx, from, to, reported)
	before := writes.Acked()
	a.eventually(ctx, "the new primary takes writes", func(context.Context) bool { return writes.Acked() > before+20 })
	forwarded, stopForwarded := a.relaunched(ctx, from, to)
	defer stopForwarded()
	a.rejoined(ctx, from, to)
	a.passesOn(ctx, forwarded, stopForwarded)
	stop()

	found, err := writes.Find(ctx, a.Primary)
	require.NoError(a.t, err)
	bounds := a.requireStated(p, writes, found, kind == secondBefore)
	report := a.reported(ctx, from, writes.Prefix, found, false)
	a.live(ctx)
	a.agrees(ctx)
	a.t.Logf("round %d: promoted in %.1f s; %d writes acknowledged, %d gone, %d of unknown fate gone; %d of both reported, %d perhaps answered; %s",
		round, p.took.Seconds(), writes.Acked(), len(found.Lost), len(found.Absent), report.listed, report.perhaps, bounds)
	if kind != untouched {
		require.NotEmpty(a.t, found.Lost, "nothing was lost: the round has shown nothing of that")
	}
	require.NoError(a.t, a.r.Ready(ctx))
	return p, len(found.Lost)
}

// before does what a kind of round has before the kill.
func (a *account) before(ctx context.Context, kind int, from, to geo.Location, writes *ledger.Ledger) {
	a.t.Helper()
	var fault proxy.Fault
	var uses []cluster.Use
	least := time.Duration(0)
	switch kind {
	case secondBefore:
		fault.Refuse, least = true, contactAge
	case payloadHeld:
		fault.HoldForth, uses = true, []cluster.Use{cluster.Calls}
	case shortlyBefore:
		fault.Refuse = true
	}
	require.NoError(a.t, a.r.Cut(fault, rig.NodesOf(from), rig.NodesOf(to), uses...))
	cut, cutAt := writes.Acked(), time.Now()
	rig.Pause(ctx, least)
	a.eventually(ctx, "writes go on", func(context.Context) bool { return writes.Acked() > cut+20 })
	if kind == payloadHeld {
		a.eventually(ctx, "a blob is not there that was committed before the last contact", func(ctx context.Context) bool {
			loss, _, err := a.stated(ctx, to)
			return err == nil && slices.ContainsFunc(acked(writes), func(e ledger.Entry) bool {
				return e.Bytes >= ledger.PayloadBytes && e.Began.After(cutAt) && e.At.Time().Before(loss["blob"].UnboundedSince.Time)
			})
		})
	}
}

// relaunched makes the link whole, starts the nodes of the former primary, and writes through each of them.
func (a *account) relaunched(ctx context.Context, from, to geo.Location) (forwarded *ledger.Ledger, stop func()) {
	a.t.Helper()
	require.NoError(a.t, a.r.Cut(proxy.Fault{}, rig.NodesOf(from), rig.NodesOf(to)))
	forwarded = &ledger.Ledger{Prefix: fmt.Sprintf("f%d-", time.Now().UnixMilli())}
	stop = a.ledgering(ctx, forwarded, rig.NodesOf(from)...)
	for _, name := range rig.NodesOf(from) {
		require.NoError(a.t, a.r.Launch(name))
	}
	return forwarded, stop
}

// passesOn requires that whatever the former primary acknowledges is at the new one, once both locations agree.
func (a *account) passesOn(ctx context.Context, forwarded *ledger.Ledger, stop func()) {
	a.t.Helper()
	a.eventually(ctx, "the former primary passes writes on", func(context.Context) bool { return forwarded.Acked() > 5 })
	stop()
	passed, err := forwarded.Find(ctx, a.Primary)
	require.NoError(a.t, err)
	require.Empty(a.t, passed.Lost, "acknowledged by the former primary")
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

// rejoined waits until the former primary is the secondary, and has its copy made again where that is needed, which it
// reports.
func (a *account) rejoined(ctx context.Context, former, now geo.Location) (rebuilt bool) {
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
				rebuilt = rebuilt || refused == nil
			}
			return false
		}
		there, err = a.r.Admin(rig.NodesOf(former)[0]).Account(ctx, a.name)
		return err == nil && there.Primary == now && there.Epoch == here.Epoch && there.Operation == ""
	})
	return rebuilt
}
