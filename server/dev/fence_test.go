package dev

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/failover/confirm"
	"antipode/geo"
	"antipode/server/location"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// apart is a cluster whose locations go on without each other only while alone is set.
type apart struct {
	*Cluster
	alone  atomic.Bool
	higher atomic.Pointer[confirm.Epochs]
	// renewals of leases wait while it is locked.
	renewals sync.RWMutex
}

func startApart(t *testing.T) *apart {
	t.Helper()
	a := &apart{}
	a.Cluster = startAdjusted(t, func(o *location.Options) {
		o.Alone = a.alone.Load
		if o.Name == North {
			o.OnHigher = func(above map[geo.Account]geo.Epoch) { a.higher.Store(&above) }
		}
	})
	createTable(t, a.Cluster, "northacct")
	put(t, a.Cluster, "northacct", "k", "1")
	return a
}

// tryPut writes an entity at the north's own front end.
func (a *apart) tryPut(t *testing.T, value string) answer {
	t.Helper()
	return call(t, a.ports[North], "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"`+value+`"}`)
}

// get reads it there, and reports whether the answer is marked as perhaps old.
func (a *apart) get(t *testing.T) (value string, mayBeStale bool) {
	t.Helper()
	got := call(t, a.ports[North], "northacct", http.MethodGet, entityPath("northacct", "", "k"), "")
	require.Equal(t, http.StatusOK, got.status, got.body)
	_, value, _ = strings.Cut(got.body, `"v":"`)
	return strings.TrimSuffix(value, `"}`), got.header.Get(protocol.HeaderMayBeStale) == "true"
}

// restartAlone starts the north again while the south is stopped.
func (a *apart) restartAlone(t *testing.T) {
	t.Helper()
	require.NoError(t, a.servers[South].Stop())
	require.NoError(t, a.servers[North].Stop())
	require.NoError(t, a.servers[North].Start(t.Context()))
	eventually(t, "the north serves", func() bool { return a.locations[North].Readiness(context.Background()).Serving })
}

// kinds are the events of the north about epochs, oldest first.
func (a *apart) kinds() (out []string) {
	for _, e := range a.locations[North].Events() {
		if strings.HasPrefix(e.Kind, "epoch") {
			out = append([]string{e.Kind + ": " + e.Reason}, out...)
		}
	}
	return out
}

// R21: a location that starts while the other one is away refuses writes of accounts that have a copy, in one sentence, and
// commits nothing; reads go on, marked as perhaps old; an account without a copy is written. Status names it. Once
// the other location is there, writes go on by themselves, and reads are no longer marked.
func TestR21AloneRefusesUntilThePairAnswers(t *testing.T) {
	t.Parallel()
	a := startApart(t)
	_, stale := a.get(t)
	require.False(t, stale)
	createAs(t, a.Cluster, "single", North, "LRS")
	createTable(t, a.Cluster, "single")
	a.restartAlone(t)
	got := a.tryPut(t, "2")
	require.Equal(t, http.StatusServiceUnavailable, got.status, got.body)
	require.Contains(t, got.body, "has not confirmed yet that it still is the primary location")
	require.NotEmpty(t, got.header.Get("Retry-After"))
	value, stale := a.get(t)
	require.Equal(t, "1", value)
	require.True(t, stale)
	single := call(t, a.ports[North], "single", http.MethodPut, entityPath("single", "", "k"), `{"v":"2"}`)
	require.Equal(t, http.StatusNoContent, single.status, single.body)
	single = call(t, a.ports[North], "single", http.MethodGet, entityPath("single", "", "k"), "")
	require.Empty(t, single.header.Get(protocol.HeaderMayBeStale))
	d, err := a.locations[North].Describe()
	require.NoError(t, err)
	require.False(t, d.Epochs.Confirmed)
	require.NotEmpty(t, d.Epochs.Waiting)
	const confirmed = `antipode_epochs_confirmed{location="northcentralus"}`
	require.Contains(t, gather(t, a.Cluster), confirmed)
	require.Zero(t, gather(t, a.Cluster)[confirmed])
	require.Equal(t, []string{"northcentralus-1", "northcentralus-2", "northcentralus-3"}, d.Epochs.UnconfirmedNodes)
	require.Equal(t, d.Epochs.UnconfirmedNodes, d.Epochs.WaitingNodes)
	require.NotContains(t, strings.Join(d.Warnings, "\n"), "epochs", "the document has it already")

	require.NoError(t, a.servers[South].Start(t.Context()))
	eventually(t, "writes go on", func() bool { return a.tryPut(t, "3").status == http.StatusNoContent })
	value, stale = a.get(t)
	require.Equal(t, "3", value)
	require.False(t, stale)
	require.Contains(t, a.kinds(), "epochs-confirmed: location southcentralus answered")
	require.InDelta(t, 1, gather(t, a.Cluster)[confirmed], 0)
}

// promoteByHand commits at a location that it is the primary of an account in the next epoch, as an unplanned move does (R19).
type promoteByHand struct{ account catalog.Account }

func (c *promoteByHand) Evaluate(tx *ranges.Tx) error {
	v, err := c.account.Encode()
	if err != nil {
		return err
	}
	p := catalog.AccountPartition(c.account.Name)
	return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Value: v}}})
}

// R21, invariant 4: a former primary that starts again takes no write of an account that was promoted at the other
// location meanwhile, whatever an operator overrides; its reads are marked as perhaps old. Its other accounts are written.
func TestR21FormerPrimaryTakesNoWrites(t *testing.T) {
	t.Parallel()
	a := startApart(t)
	createAs(t, a.Cluster, "stays", North, "RA-GRS")
	createTable(t, a.Cluster, "stays")
	account, err := a.locations[South].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.NoError(t, a.servers[North].Stop())
	promoted := *account
	promoted.Primary, promoted.Secondary, promoted.Epoch = South, North, account.Epoch+1
	require.NoError(t, a.locations[South].Submit(t.Context(), geo.FirstRange(geo.Catalog), &promoteByHand{promoted}))
	require.NoError(t, a.servers[North].Start(t.Context()))
	eventually(t, "the other account is written", func() bool {
		got, err := try(a.ports[North], "stays", http.MethodPut, entityPath("stays", "", "k"), `{"v":"2"}`)
		return err == nil && got.status == http.StatusNoContent
	})
	require.Equal(t, http.StatusServiceUnavailable, a.tryPut(t, "2").status)
	value, stale := a.get(t)
	require.Equal(t, "1", value)
	require.True(t, stale)
	_, err = a.confirmEpochs(t.Context(), North)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, a.tryPut(t, "2").status)
	want := confirm.Epochs{"northacct": promoted.GeoEpoch()}
	eventually(t, "the account is reported", func() bool { p := a.higher.Load(); return p != nil && maps.Equal(*p, want) })
	require.Equal(t, geo.Account("northacct"), a.locations[North].Epochs().Refused[0].Account)
	require.Contains(t, a.kinds(), fmt.Sprintf("epoch-passed: it is in epoch %s at southcentralus: its writes are refused here", promoted.GeoEpoch()))
}

// R21: an operator's override lets the writes through, is logged and ends with the process's start.
func TestR21Override(t *testing.T) {
	t.Parallel()
	a := startApart(t)
	a.restartAlone(t)
	require.Equal(t, http.StatusServiceUnavailable, a.tryPut(t, "2").status)
	e, err := a.confirmEpochs(t.Context(), North)
	require.NoError(t, err)
	require.True(t, e.Confirmed)
	require.Equal(t, "override", e.By)
	require.Equal(t, http.StatusNoContent, a.tryPut(t, "2").status)
	_, stale := a.get(t)
	require.False(t, stale)
	require.Contains(t, a.kinds(), "epochs-confirmed: an operator's override")
	require.NoError(t, a.servers[North].Stop())
	require.NoError(t, a.servers[North].Start(t.Context()))
	eventually(t, "it is refused again", func() bool { return a.tryPut(t, "3").status == http.StatusServiceUnavailable })
}

// R21: with the standing policy a location that starts alone takes writes, and status names the policy.
func TestR21StandingPolicy(t *testing.T) {
	t.Parallel()
	a := startApart(t)
	a.alone.Store(true)
	a.restartAlone(t)
	eventually(t, "writes go on", func() bool { return a.tryPut(t, "2").status == http.StatusNoContent })
	d, err := a.locations[North].Describe()
	require.NoError(t, err)
	require.Equal(t, "policy", d.Epochs.By)
	require.True(t, d.Epochs.Policy)
	require.Contains(t, strings.Join(d.Warnings, "\n"), "epochs need no answer of southcentralus")
}

// R21: antipode dev sets the policy by itself for a location that an operator stopped, and for a link that was cut.
func TestR21DevGoesOnAlone(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	require.False(t, c.alone(South))
	createTable(t, c, "northacct")
	require.NoError(t, c.servers[South].Stop())
	require.True(t, c.alone(South))
	require.NoError(t, c.servers[North].Stop())
	require.NoError(t, c.servers[North].Start(t.Context()))
	eventually(t, "writes go on", func() bool {
		a, err := try(c.ports[North], "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"2"}`)
		return err == nil && a.status == http.StatusNoContent
	})
	require.NoError(t, c.servers[South].Start(t.Context()))
	require.False(t, c.alone(South))
	c.link.Cut()
	require.True(t, c.alone(South))
	require.True(t, c.alone(North))
}

// The status of a location has for how long it has not reached the other one; not once it does again.
func TestStatusHasAPartedLocation(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	parted := func() float64 { return c.locations[North].Epochs().PartedSeconds }
	require.Zero(t, parted())
	c.link.Cut()
	eventually(t, "it is noticed", func() bool { return parted() > 0 })
	was := parted()
	eventually(t, "it lasts", func() bool { return parted() > was+1 })
	c.link.Heal()
	eventually(t, "the south is reached", func() bool { return parted() == 0 })
}
