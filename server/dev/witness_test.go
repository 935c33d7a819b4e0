package dev

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/client/check"
	"antipode/failover/witness"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/server/location"
	"antipode/services/catalog"
)

// leases are those of one location, at a witness in this process.
type leases struct {
	of   geo.Location
	at   *witness.Witness
	away *atomic.Bool
	// held is locked while renewals have to wait.
	held *sync.RWMutex
}

var errAway = errors.New("the witness does not answer")

// Renew implements location.Witness.
func (l leases) Renew(_ context.Context, after uint64) (witness.Grant, error) {
	l.held.RLock()
	defer l.held.RUnlock()
	if l.away.Load() {
		return witness.Grant{}, errAway
	}
	return l.at.Renew(l.of, after)
}

// Claim implements location.Witness.
func (l leases) Claim(_ context.Context, epochs map[geo.Account]geo.EpochNumber, here geo.Location) (time.Duration, error) {
	if l.away.Load() {
		return 0, errAway
	}
	var list []witness.Claim
	for name, n := range epochs {
		list = append(list, witness.Claim{Account: name, Number: n, Location: here})
	}
	wait, err := l.at.Claim(list, l.at.Position())
	return clock.System{}.Mono() + wait, err
}

// Withdraw implements location.Witness.
func (l leases) Withdraw(_ context.Context, a geo.Account, n geo.EpochNumber) error {
	if l.away.Load() {
		return errAway
	}
	return l.at.Withdraw(a, geo.Epoch{Number: n, Location: l.of})
}

// leaseLife is so long that a machine without time for the tests does not lose a lease that it renews.
const leaseLife = 5 * time.Second

func startWitnessed(t *testing.T) (a *apart, w *witness.Witness, away *atomic.Bool) {
	t.Helper()
	w, err := witness.Open(witness.Options{
		FS: vfs.NewMem(), Dir: "w", Locations: []geo.Location{North, South}, Life: leaseLife, Clock: clock.System{}, Name: "one",
	})
	require.NoError(t, err)
	away = &atomic.Bool{}
	a = &apart{}
	a.Cluster = startAdjusted(t, func(o *location.Options) {
		o.Witness, o.WitnessAddress = leases{o.Name, w, away, &a.renewals}, "third:10300"
	})
	createTable(t, a.Cluster, "northacct")
	put(t, a.Cluster, "northacct", "k", "1")
	return a, w, away
}

// R21: with a witness writes go on as long as it renews the lease, whether the other location is there or not. Once the
// witness is away the lease ends, and writes are refused although the other location answers, until the witness is back.
func TestR21WitnessAway(t *testing.T) {
	t.Parallel()
	a, _, away := startWitnessed(t)
	require.Equal(t, "witness", a.locations[North].Epochs().By)
	require.NoError(t, a.servers[South].Stop())
	require.Equal(t, http.StatusNoContent, a.tryPut(t, "2").status)
	require.NoError(t, a.servers[North].Stop())
	require.NoError(t, a.servers[North].Start(t.Context()))
	eventually(t, "the lease is enough after a start", func() bool {
		got, err := try(a.ports[North], "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"3"}`)
		return err == nil && got.status == http.StatusNoContent
	})
	require.NoError(t, a.servers[South].Start(t.Context()))
	away.Store(true)
	eventually(t, "the lease ends", func() bool { return a.tryPut(t, "4").status == http.StatusServiceUnavailable })
	_, stale := a.get(t)
	require.True(t, stale)
	e := a.locations[North].Epochs()
	require.False(t, e.Confirmed)
	require.Contains(t, e.Waiting, "the witness does not answer")
	s, err := a.admin.Status(t.Context())
	require.NoError(t, err)
	var found []string
	for _, f := range check.Status(s) {
		if strings.Contains(f.What, "witness") || strings.Contains(f.What, "epochs") {
			found = append(found, f.What)
		}
	}
	require.Len(t, found, 1, "one cause, one line, for the nodes of both locations")
	require.Contains(t, found[0], "the witness third:10300 does not answer: writes of accounts that have a copy are refused at northcentralus")
	away.Store(false)
	eventually(t, "the lease is back", func() bool { return a.tryPut(t, "5").status == http.StatusNoContent })
}

// R21: once a claim of the other location has returned and its time is over, the present primary acknowledges no write of
// the account, whatever the other location commits later; it still takes those of its other accounts. A claim that
// is withdrawn gives the account back.
func TestR21ClaimStopsThePrimary(t *testing.T) {
	t.Parallel()
	a, w, _ := startWitnessed(t)
	createAs(t, a.Cluster, "stays", North, "RA-GRS")
	createTable(t, a.Cluster, "stays")
	epoch := geo.Epoch{Number: 9, Location: South}
	wait, err := w.Claim([]witness.Claim{{Account: "northacct", Number: epoch.Number, Location: South}}, w.Position())
	require.NoError(t, err)
	require.Positive(t, wait)
	require.LessOrEqual(t, wait, leaseLife)
	require.NoError(t, clock.Wait(t.Context(), wait))
	for range 20 {
		require.Equal(t, http.StatusServiceUnavailable, a.tryPut(t, "2").status)
	}
	single := call(t, a.ports[North], "stays", http.MethodPut, entityPath("stays", "", "k"), `{"v":"2"}`)
	require.Equal(t, http.StatusNoContent, single.status, single.body)
	require.NoError(t, w.Withdraw("northacct", epoch))
	eventually(t, "it is written again", func() bool { return a.tryPut(t, "3").status == http.StatusNoContent })
}

// R20, R21: a promotion at the south behind a cut link registers its claim, and comes to its commit only when the leases of
// the north from before have ended: a write that begins there after the commit is not acknowledged, though the north runs
// and knows nothing of the promotion but the claim.
func TestR21PromotionFencesALivePrimary(t *testing.T) {
	t.Parallel()
	a, w, _ := startWitnessed(t)
	drained(t, a.Cluster)
	a.link.Cut()
	a.renewals.Lock() // The north gets to know of the claim once it has acknowledged a write.
	knows := sync.OnceFunc(a.renewals.Unlock)
	defer knows()
	_, err := a.locations[South].Promote(t.Context(), "northacct", wire.Failover{})
	require.NoError(t, err)
	var acked []time.Time // When writes at the north began that were acknowledged.
	var taken *catalog.Account
	eventually(t, "the south is the primary", func() bool {
		began := time.Now()
		got, err := try(a.ports[North], "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"2"}`)
		if err == nil && got.status == http.StatusNoContent {
			acked = append(acked, began)
			knows()
		}
		taken, err = a.locations[South].Directory.Account(t.Context(), "northacct")
		return err == nil && taken.Primary == South
	})
	for range 20 {
		require.Equal(t, http.StatusServiceUnavailable, a.tryPut(t, "late").status)
	}
	require.NotEmpty(t, acked, "the north goes on until it knows of the claim")
	for _, began := range acked {
		require.False(t, began.After(taken.LastFailover.Time()))
	}
	g, err := w.Renew(North, 0)
	require.NoError(t, err)
	require.Len(t, g.Claims, 1)
	require.Equal(t, taken.GeoEpoch(), g.Claims[0].Epoch())
	refused := func(l geo.Location) bool { return len(a.locations[l].Epochs().Refused) > 0 }
	eventually(t, "the north says so, and the south has nothing to say", func() bool { return refused(North) && !refused(South) })
	a.link.Heal()
	eventually(t, "the north has diverged", func() bool {
		_, _, err := a.locations[South].Directory.Rebuild(t.Context(), "northacct", nil)
		return err == nil
	})
	requireAt(t, a.Cluster, "northacct", South)
	eventually(t, "the account is no longer the north's", func() bool { return !refused(North) })
	moveTo(t, a.Cluster, "northacct", South, North)
	eventually(t, "the north takes writes in a later epoch", func() bool { return a.tryPut(t, "back").status == http.StatusNoContent && !refused(North) })
}

// R20, R21: the north runs, the link is cut, and the south was promoted: clients of the gateway, which reaches both, are served
// at the south, although the north had served them until then.
//
// Capability: Two locations: Clients of a gateway leave a former primary that knows that it has lost the account
// (R21).
func TestR21GatewayFollowsAPromotion(t *testing.T) {
	t.Parallel()
	a, _, _ := startWitnessed(t)
	drained(t, a.Cluster)
	a.link.Cut()
	put(t, a.Cluster, "northacct", "k", "lost")
	_, err := a.locations[South].Promote(t.Context(), "northacct", wire.Failover{})
	require.NoError(t, err)
	eventually(t, "the gateway writes at the south", func() bool {
		got, err := try(a.gateway, "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"2"}`)
		now, here := a.locations[South].Directory.Account(t.Context(), "northacct")
		return err == nil && got.status == http.StatusNoContent && here == nil && now.Primary == South
	})
	require.Equal(t, "2", read(t, a.Cluster, "northacct", "", "k"))
}

// R21: while the witness is away a promotion waits for it, says so, and goes on without it by an operator's word alone.
// One that is ended has the witness forget its claim, and the north goes on.
func TestR21PromotionWithTheWitnessAway(t *testing.T) {
	t.Parallel()
	a, w, away := startWitnessed(t)
	drained(t, a.Cluster)
	claims := func() int {
		g, err := w.Renew(North, 0)
		require.NoError(t, err)
		return len(g.Claims)
	}
	_, err := a.locations[South].Promote(t.Context(), "northacct", wire.Failover{})
	require.NoError(t, err)
	eventually(t, "the claim is registered", func() bool { return claims() == 1 })
	ok, err := a.locations[South].Directory.Promoter().EndPromotion(t.Context(), "northacct")
	require.NoError(t, err)
	if ok { // Else it was that quick.
		eventually(t, "the claim is withdrawn", func() bool { return claims() == 0 })
		eventually(t, "the north goes on", func() bool { return a.tryPut(t, "2").status == http.StatusNoContent })
	}
	away.Store(true)
	look := func(f wire.Failover) wire.AccountUpdated {
		out, err := a.locations[South].Promote(t.Context(), "northacct", f)
		require.NoError(t, err)
		return out
	}
	eventually(t, "a promotion begins", func() bool {
		_, err := a.locations[South].Promote(t.Context(), "northacct", wire.Failover{})
		return err == nil
	})
	eventually(t, "it says what it waits for", func() bool { return look(wire.Failover{DryRun: true}).OperationWaits == errAway.Error() })
	waiting := look(wire.Failover{DryRun: true})
	require.Equal(t, wire.FailoverClaiming, waiting.FailoverPhase)
	require.InDelta(t, 1, gather(t, a.Cluster)[`antipode_account_operations{kind="promotion",location="southcentralus",phase="claiming"}`], 0)
	shown, err := a.admin.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, []string{waiting.FailoverPhase, waiting.Operation}, []string{shown.FailoverPhase, shown.Operation}, "an account shows it, too")
	look(wire.Failover{WithoutWitness: true})
	eventually(t, "the south is the primary", func() bool { return look(wire.Failover{DryRun: true}).Primary == South })
	require.Zero(t, claims())
	var said []string
	for _, e := range a.locations[South].Events() {
		said = append(said, e.Reason)
	}
	require.Contains(t, strings.Join(said, "\n"), "without the witness, by an operator's word")
}
