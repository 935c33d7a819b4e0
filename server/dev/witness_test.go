package dev

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/failover/witness"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/server/location"
)

// leases are those of one location, at a witness in this process.
type leases struct {
	of   geo.Location
	at   *witness.Witness
	away *atomic.Bool
}

var errAway = errors.New("the witness does not answer")

// Renew implements location.Leases.
func (l leases) Renew(_ context.Context, after uint64) (witness.Grant, error) {
	if l.away.Load() {
		return witness.Grant{}, errAway
	}
	return l.at.Renew(l.of, after)
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
	a = &apart{Cluster: startAdjusted(t, func(o *location.Options) { o.Witness = leases{o.Name, w, away} })}
	createTable(t, a.Cluster, "northacct")
	put(t, a.Cluster, "northacct", "k", "1")
	return a, w, away
}

// R21: with a witness writes go on as long as it renews the lease, whether the other location is there or not. Once the
// witness is away the lease ends, and writes are refused although the other location answers, until the witness is back.
func TestR21WitnessAway(t *testing.T) {
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
	d, err := a.locations[North].Describe()
	require.NoError(t, err)
	require.Contains(t, strings.Join(d.Warnings, "\n"), "until the witness answers")
	away.Store(false)
	eventually(t, "the lease is back", func() bool { return a.tryPut(t, "5").status == http.StatusNoContent })
}

// R21: once a claim of the other location has returned and its time is over, the present primary acknowledges no write of
// the account, whatever the other location commits later; it still takes those of its other accounts. A claim that
// is withdrawn gives the account back.
func TestR21ClaimStopsThePrimary(t *testing.T) {
	a, w, _ := startWitnessed(t)
	createAs(t, a.Cluster, "stays", North, "RA-GRS")
	createTable(t, a.Cluster, "stays")
	epoch := geo.Epoch{Number: 9, Location: South}
	wait, err := w.Claim([]witness.Claim{{Account: "northacct", Number: epoch.Number, Location: South}})
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
