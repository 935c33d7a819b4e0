package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/directory"
	"antipode/failover/planned"
	"antipode/geo"
	"antipode/replication/link"
	"antipode/services/catalog"
)

// moveTo moves an account that is at one location to the other one, and waits until the move has ended at both.
func moveTo(t *testing.T, c *Cluster, account geo.Account, from, to geo.Location) {
	t.Helper()
	_, err := c.locations[from].Directory.Mover().Move(t.Context(), account, planned.MoveWithin)
	require.NoError(t, err)
	requireAt(t, c, account, to)
}

// requireAt waits until both locations agree that the primary of an account is a location, and nothing is under way.
func requireAt(t *testing.T, c *Cluster, account geo.Account, primary geo.Location) {
	t.Helper()
	var at [2]*catalog.Account
	eventually(t, fmt.Sprintf("account %s is at %s", account, primary), func() bool {
		for i, l := range []geo.Location{North, South} {
			a, err := c.locations[l].Directory.Account(t.Context(), account)
			if err != nil || a.Primary != primary || a.Operation != nil {
				return false
			}
			at[i] = a
		}
		return at[0].GeoEpoch() == at[1].GeoEpoch()
	})
	require.Equal(t, *at[0], *at[1], "both have the same record")
}

// A planned failover and back, three times, while clients write (R19): no acknowledged write is lost, the secondary is
// readable throughout and follows the new primary, Last Sync Time goes on, no stream of a former epoch is left, and both
// copies are equal.
//
// Capability: Failover: A planned failover of an account (R19).
func TestR19PlannedMoves(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	w := startWriter(t, c, "northacct")
	w.arrives()
	secondary := startReaders(t, c, "northacct")
	from, to := North, South
	for range 3 {
		upTo := w.acked.Load()
		moveTo(t, c, "northacct", from, to)
		require.GreaterOrEqual(t, w.value(""), upTo)
		w.goesOn()
		w.arrives()
		_, err := c.WaitLive(t.Context(), "northacct")
		require.NoError(t, err)
		put(t, c, "northacct", "k"+string(to), "v")
		from, to = to, from
	}
	w.stop()
	secondary()
	require.GreaterOrEqual(t, w.value(""), w.acked.Load())
	for _, l := range []geo.Location{North, South} {
		for kind, want := range map[string]int{
			"failover-begun": 1, "failover-closed": 1, "failover-offered": 1, "failover-taken": 1, "failover-followed": 1, "failover-ended": 0,
		} {
			if l == North && kind != "failover-taken" && want > 0 { // Two of three are from the north.
				want = 2
			}
			if l == South && kind == "failover-taken" {
				want = 2
			}
			steps := 0
			eventually(t, fmt.Sprintf("%d times %s at %s", want, kind, l), func() bool { // The account has moved before it is an event.
				steps = 0
				for _, e := range c.locations[l].Events() {
					if e.Account == "northacct" && e.Kind == kind {
						steps++
					}
				}
				return steps >= want
			})
			require.Equal(t, want, steps, "%s at %s", kind, l)
		}
	}
	eventually(t, "no stream of a former epoch is left", func() bool { return formerStreams(c, "northacct") == 0 })
	a, err := c.locations[South].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.NotZero(t, a.LastFailover)
	require.Equal(t, geo.EpochNumber(4), a.Epoch)
	got := gather(t, c)
	require.InDelta(t, float64(a.LastFailover.Time().UnixMilli())/1000, got[`antipode_last_failover_timestamp_seconds{location="southcentralus"}`], 0.001)
	require.InDelta(t, 2, got[`antipode_events_total{kind="failover-taken",location="southcentralus"}`], 0)
	require.InDelta(t, 2, got[`antipode_accounts{location="southcentralus",redundancy="RA-GRS"}`], 0)
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)
}

// startReaders reads what a writer writes through -secondary, at the gateway and at both locations, until the returned
// function is called: no read is refused since the account is another location's, and none goes back behind an earlier one.
func startReaders(t *testing.T, c *Cluster, account geo.Account) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, at := range []Ports{c.gateway, c.ports[North], c.ports[South]} {
		wg.Go(func() {
			last := int64(0)
			for ctx.Err() == nil {
				a, err := try(at, account, http.MethodGet, entityPath(account, "-secondary", "w"), "")
				if err != nil || a.status != http.StatusOK {
					if strings.Contains(a.body, "cannot be reached now") || strings.Contains(a.body, "in a later epoch") {
						t.Errorf("a read of -secondary was refused: %d %s", a.status, a.body)
						return
					}
					continue
				}
				var doc struct{ V string }
				if err := json.Unmarshal([]byte(a.body), &doc); err != nil {
					t.Error(err)
				}
				if n, _ := strconv.ParseInt(doc.V, 10, 64); n < last {
					t.Errorf("a read of -secondary went back from %d to %d", last, n)
				} else {
					last = n
				}
			}
		})
	}
	end = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(end)
	return end
}

// formerStreams counts the streams of an account's former epochs that a location numbers or receives.
func formerStreams(c *Cluster, account geo.Account) (n int) {
	for _, l := range []geo.Location{North, South} {
		for _, s := range []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table} {
			r := c.locations[l].Leader(geo.FirstRange(s))
			if r == nil {
				return -1
			}
			now := r.Machine.Gate(account).Epoch
			heads, _ := r.Machine.Heads()
			for st := range heads {
				if st.Account == account && st.Epoch != now {
					n++
				}
			}
			for _, from := range []geo.Location{North, South} {
				for _, st := range r.Machine.Progress(geo.SourceRange{Origin: from, Range: geo.FirstRange(s)}, account).Streams {
					if st.Stream.Epoch != now {
						n++
					}
				}
			}
		}
	}
	return n
}

// A move that cannot be drained, since the link is cut, is not begun. One that has begun ends by itself in time, or when an
// operator ends it: writes go on at the present primary, in its epoch, and nothing is lost (R19). With the link back a second
// one succeeds.
//
// Capability: Two locations: A planned failover stops no healthy primary over a silent link (R19).
// Capability: Failover: A planned failover of an account (R19).
func TestR19MoveEndsWithoutEffect(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	w := startWriter(t, c, "northacct")
	w.arrives()
	before, err := c.locations[North].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	begin := func(within time.Duration) {
		_, err = c.locations[North].Directory.Mover().Move(t.Context(), "northacct", within)
		require.NoError(t, err)
		c.link.Cut()
	}
	begin(time.Second)
	_, err = c.locations[North].Directory.Mover().Move(t.Context(), "northacct", time.Second)
	require.ErrorContains(t, err, "a planned failover")
	ended := func() {
		eventually(t, "the move ends", func() bool {
			a, err := c.locations[North].Directory.Account(t.Context(), "northacct")
			return err == nil && a.Operation == nil
		})
		w.goesOn()
	}
	ended()
	_, err = c.locations[North].Directory.Mover().Move(t.Context(), "northacct", planned.MoveWithinMax)
	require.ErrorContains(t, err, "southcentralus is not reached, since an operator cut the link (antipodectl link heal); nothing was changed")
	c.link.Heal()
	eventually(t, "the other location answers", func() bool { return c.locations[North].Directory.Mover().CheckMove(t.Context(), "northacct") == nil })
	begin(planned.MoveWithinMax)
	_, err = c.locations[North].Directory.Mover().EndMove(t.Context(), "northacct")
	require.NoError(t, err)
	ended()
	_, err = c.locations[North].Directory.Mover().EndMove(t.Context(), "northacct")
	require.ErrorContains(t, err, "no failover is under way")
	a, err := c.locations[North].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, before.GeoEpoch(), a.GeoEpoch())
	c.link.Heal()
	w.arrives()
	moveTo(t, c, "northacct", North, South)
	w.goesOn()
	w.stop()
	require.GreaterOrEqual(t, w.value(""), w.acked.Load())
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)
}

// An offer whose answer is lost keeps the account from being served under its primary's name, and ends when the other
// location has refused it, or has taken the account: never both (R19).
//
// Capability: Failover: A planned failover of an account (R19).
func TestR19OfferIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "v")
	_, err := c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	north := c.locations[North].Directory
	peer := &deafPeer{Peer: linkedDirectory{c.link, c.locations[South]}}
	north.SetPeer(peer)
	_, err = north.Mover().Move(t.Context(), "northacct", planned.MoveWithinMax)
	require.NoError(t, err)
	eventually(t, "the account is offered", func() bool {
		a, err := north.Account(t.Context(), "northacct")
		return err == nil && a.Offered()
	})
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		a := call(t, c.ports[North], "northacct", method, entityPath("northacct", "", "k"), `{"v":"no"}`)
		require.Equal(t, http.StatusServiceUnavailable, a.status, "%s: %s", method, a.body)
		require.Contains(t, a.body, "is being moved from location "+string(North)+" to "+string(South))
	}
	require.Equal(t, "v", read(t, c, "northacct", "-secondary", "k"))
	_, err = north.Mover().EndMove(t.Context(), "northacct")
	require.NoError(t, err)
	eventually(t, "the refusal is asked for", func() bool { return peer.refused.Load() > 0 })
	require.Error(t, putErr(c, "northacct", "k", "while nobody knows"))
	offered := peer.offered.Load()
	peer.answers.Store(true)
	eventually(t, "the move ends", func() bool {
		a, err := north.Account(t.Context(), "northacct")
		return err == nil && a.Operation == nil && a.Primary == North
	})
	put(t, c, "northacct", "k", "after")
	late, err := c.locations[South].Directory.Offer(t.Context(), *offered)
	require.Error(t, err, "the late offer has taken %+v", late)
	requireAt(t, c, "northacct", North)
	put(t, c, "northacct", "k", "later")
	moveTo(t, c, "northacct", North, South)
	require.Equal(t, "later", read(t, c, "northacct", "", "k"))
	again, err := c.locations[South].Directory.Offer(t.Context(), *peer.offered.Load())
	require.NoError(t, err, "the offer that was taken comes again after the move has ended")
	require.Nil(t, again.Operation)
}

// deafPeer loses offers and refusals until it answers.
type deafPeer struct {
	directory.Peer
	answers atomic.Bool
	offered atomic.Pointer[planned.Offer]
	refused atomic.Int64
}

// Offer implements directory.Peer.
func (p *deafPeer) Offer(ctx context.Context, o planned.Offer) (*catalog.Account, error) {
	p.offered.Store(&o)
	if !p.answers.Load() {
		return nil, link.ErrCut
	}
	return p.Peer.Offer(ctx, o)
}

// Refuse implements directory.Peer.
func (p *deafPeer) Refuse(ctx context.Context, a catalog.Account) (*catalog.Account, error) {
	if !p.answers.Load() {
		p.refused.Add(1)
		return nil, link.ErrCut
	}
	return p.Peer.Refuse(ctx, a)
}

func putErr(c *Cluster, account geo.Account, key, value string) error {
	a, err := try(c.gateway, account, http.MethodPut, entityPath(account, "", key), fmt.Sprintf(`{"v":%q}`, value))
	if err == nil && a.status != http.StatusNoContent {
		err = fmt.Errorf("status %d: %s", a.status, a.body)
	}
	return err
}
