package dev

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/client/check"
	"antipode/geo"
	"antipode/services/catalog"
)

// promote makes the south the primary of an account of the north, without the north, and returns the account as it is
// there, with what was lost.
func promote(t *testing.T, c *Cluster, account geo.Account) wire.AccountUpdated {
	t.Helper()
	k := adminClient(t, c)
	_, err := k.UpdateAccount(t.Context(), account, wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverUnplanned}})
	require.NoError(t, err)
	eventually(t, "the south is the primary", func() bool {
		now, err := c.locations[South].Promote(t.Context(), account, wire.Failover{DryRun: true})
		require.False(t, err == nil && now.Primary != South && now.FailoverPhase == "", "it looks ended without effect")
		a, err := c.locations[South].Directory.Account(t.Context(), account)
		return err == nil && a.Primary == South
	})
	return lossOf(t, c, account)
}

// lossOf asks the south what an unplanned failover would lose, or has lost.
func lossOf(t *testing.T, c *Cluster, account geo.Account) wire.AccountUpdated {
	t.Helper()
	out, err := adminClient(t, c).UpdateAccount(t.Context(), account, wire.UpdateAccount{
		Failover: &wire.Failover{Type: wire.FailoverUnplanned, To: South, DryRun: true},
	})
	require.NoError(t, err)
	return out
}

// serviceLoss returns what was lost of a service.
func serviceLoss(t *testing.T, u wire.AccountUpdated, s geo.Service) wire.ServiceLoss {
	t.Helper()
	for _, l := range u.Loss {
		if l.Service == s.String() {
			return l
		}
	}
	require.Failf(t, "no loss", "%s: %+v", s, u.Loss)
	return wire.ServiceLoss{}
}

// R20: a dry run says what the location would refuse, by the checks of the failover itself, and begins nothing.
func TestR20DryRunSaysWhatIsRefused(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	require.Empty(t, lossOf(t, c, "northacct").Refused)
	createAs(t, c, "alone", North, "LRS")
	fill(t, c, "alone")
	slow := uint64(1)
	k := adminClient(t, c)
	_, err := k.UpdateAccount(t.Context(), "alone", wire.UpdateAccount{Redundancy: "GRS", BytesPerSecond: &slow})
	require.NoError(t, err)
	var said string
	eventually(t, "the south knows of the copy", func() bool {
		now, err := c.locations[South].Promote(t.Context(), "alone", wire.Failover{DryRun: true})
		said = now.Refused
		return err == nil && said != ""
	})
	_, err = k.UpdateAccount(t.Context(), "alone", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverUnplanned}})
	require.ErrorContains(t, err, said)
	require.Contains(t, said, "an operation is under way")
}

// The north writes on without a link, and then is dead. The south becomes the primary with what it has: nothing that was
// committed at or below Last Sync Time is missing, and writes go on (R20). When the north is back it is fenced, serves
// nothing of what it alone has, a table among that, and is the secondary again once it is rewound (R22). A copy that is made
// again is equal, too.
func TestR20PromotionOfADeadPrimary(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "before")
	w := startWriter(t, c, "northacct")
	w.arrives()
	c.link.Cut()
	w.goesOn()
	put(t, c, "northacct", "k", "lost")
	made := call(t, c.gateway, "northacct", http.MethodPost, "/northacct/Tables", `{"TableName":"lost"}`)
	require.Equal(t, http.StatusCreated, made.status, made.body)
	w.stop()
	arrived := w.value("-secondary")
	require.NoError(t, c.stopLocation(t.Context(), North))
	c.link.Heal()

	before := lossOf(t, c, "northacct")
	require.Equal(t, North, before.Primary)
	synced := serviceLoss(t, before, geo.Table).LastSyncTime
	require.False(t, synced.IsZero())
	out := promote(t, c, "northacct")
	require.Equal(t, wire.FailoverTaken, out.FailoverPhase)
	require.False(t, out.LastFailover.IsZero())
	lost := serviceLoss(t, out, geo.Table)
	require.Equal(t, synced, lost.LastSyncTime, "the guarantee stays the same")
	require.False(t, lost.UnboundedSince.IsZero())
	require.False(t, lost.UnboundedSince.Before(lost.LastSyncTime.Time))

	require.GreaterOrEqual(t, w.value(""), arrived)
	require.Equal(t, "before", read(t, c, "northacct", "", "k"))
	putEventually(t, c, "northacct", "after")
	w = startWriter(t, c, "northacct")
	w.goesOn()
	w.stop()

	require.NoError(t, c.startLocation(t.Context(), North))
	eventually(t, "the north follows", func() bool {
		there, err := c.locations[North].Directory.Account(t.Context(), "northacct")
		if err != nil || there.Primary != South {
			return false
		}
		a := once(t, c.gateway, "northacct", http.MethodGet, entityPath("northacct", "-secondary", "k"), "")
		require.NotContains(t, a.body, "lost", "%d", a.status)
		a = once(t, c.gateway, "northacct", http.MethodGet, "/northacct-secondary/lost()", "")
		require.NotEqual(t, http.StatusOK, a.status, a.body)
		now, err := c.locations[South].Directory.Account(t.Context(), "northacct")
		require.NoError(t, err)
		require.True(t, now.Operation == nil || !now.Operation.Diverged, "it is rewound")
		return now.Operation == nil
	})
	require.Equal(t, "after", read(t, c, "northacct", "", "k"))
	_, err := c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, "after", read(t, c, "northacct", "-secondary", "k"))
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)

	_, err = adminClient(t, c).UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Rebuild: true})
	require.NoError(t, err)
	requireAt(t, c, "northacct", South)
	_, err = c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, "after", read(t, c, "northacct", "-secondary", "k"))
	eventually(t, "no stream of a former epoch is left", func() bool { return formerStreams(c, "northacct") == 0 })
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)
	moveTo(t, c, "northacct", South, North)
	put(t, c, "northacct", "k", "back")
	require.Equal(t, "back", read(t, c, "northacct", "", "k"))
}

// The north dies when everything has arrived. Back again it has exactly what the south had when that became the primary,
// and is the secondary at once: nothing is copied again (R20).
func TestR20PromotionWithoutLoss(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "v")
	drained(t, c)
	require.NoError(t, c.stopLocation(t.Context(), North))
	out := promote(t, c, "northacct")
	require.Zero(t, serviceLoss(t, out, geo.Table).KnownRecords)
	epoch := out.Epoch
	putEventually(t, c, "northacct", "after")
	require.NoError(t, c.startLocation(t.Context(), North))
	requireAt(t, c, "northacct", South)
	info, err := c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, epoch, info.Epoch, "no copy was made again")
	eventually(t, "the write of the south arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "after" })
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)
	eventually(t, "no stream of a former epoch is left", func() bool { return formerStreams(c, "northacct") == 0 })
}

// Of two operators that ask at once one is refused, and so is any other operation; a promotion that one of them ends has no
// effect, and one that comes later does (R20).
func TestR20PromotionIsCancelled(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "v")
	drained(t, c)
	k := adminClient(t, c)
	unplanned := wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverUnplanned}}
	_, err := k.UpdateAccount(t.Context(), "northacct", unplanned)
	require.NoError(t, err)
	_, err = k.UpdateAccount(t.Context(), "northacct", unplanned)
	require.ErrorContains(t, err, "an unplanned failover")
	_, err = k.UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverEnd}})
	require.NoError(t, err)
	eventually(t, "the promotion ends", func() bool {
		p, err := c.locations[South].Directory.Promoter().Promotion(t.Context(), "northacct")
		return err == nil && p == nil
	})
	requireAt(t, c, "northacct", North)
	put(t, c, "northacct", "k", "goes on")
	eventually(t, "the copy goes on", func() bool { return read(t, c, "northacct", "-secondary", "k") == "goes on" })
	_, err = k.UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverEnd}})
	require.ErrorContains(t, err, "no failover is under way")
	moveTo(t, c, "northacct", North, South)
	require.Equal(t, "goes on", read(t, c, "northacct", "", "k"))
}

// The north lives and takes writes, but has no link: the south is promoted. When the link is back the north is fenced
// before anything else: it commits nothing more in the former epoch (R20, R22).
func TestR20PromotionOfAnUnreachablePrimary(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "v")
	drained(t, c)
	c.link.Cut()
	direct := func(value string) answer {
		return call(t, c.ports[North], "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"`+value+`"}`)
	}
	a := direct("of the north")
	require.Equal(t, http.StatusNoContent, a.status)
	_, err := c.locations[South].Directory.Promoter().Promote(t.Context(), "northacct")
	require.NoError(t, err)
	south := func() *catalog.Account {
		a, err := c.locations[South].Directory.Account(t.Context(), "northacct")
		require.NoError(t, err)
		return a
	}
	eventually(t, "the south is the primary", func() bool { return south().Primary == South })
	a = direct("of the north, which will be kept apart")
	require.Equal(t, http.StatusNoContent, a.status)
	twice := func() bool {
		s, err := c.admin.Status(t.Context())
		require.NoError(t, err)
		return slices.ContainsFunc(s.Accounts, func(a wire.AccountStatus) bool { return a.Name == "northacct" && check.TwoPrimaries(s, a) })
	}
	require.True(t, twice(), "both locations take its writes")
	for range 20 { // The former primary answers as well, now and then first.
		info, err := c.admin.Account(t.Context(), "northacct")
		require.NoError(t, err)
		list, err := c.admin.Accounts(t.Context())
		require.NoError(t, err)
		at := slices.IndexFunc(list, func(a wire.AccountInfo) bool { return a.Name == "northacct" })
		require.Equal(t, []geo.Location{South, South}, []geo.Location{info.Primary, list[at].Primary})
	}
	c.link.Heal()
	eventually(t, "the north is rewound", func() bool { return south().Operation == nil })
	eventually(t, "the north has followed", func() bool { return !twice() })
	heads, _ := leaderOf(c, North, geo.FirstRange(geo.Table)).Machine.Heads()
	a = direct("of the south")
	require.Equal(t, http.StatusNoContent, a.status, "it is forwarded: %s", a.body)
	again, _ := leaderOf(c, North, geo.FirstRange(geo.Table)).Machine.Heads()
	require.Equal(t, heads, again, "nothing was committed in the former epoch")
	require.Equal(t, "of the south", read(t, c, "northacct", "", "k"))
	eventually(t, "the write arrives", func() bool { // 503 until the north's catalog has the end of the rewinding, too.
		a, err := try(c.gateway, "northacct", http.MethodGet, entityPath("northacct", "-secondary", "k"), "")
		return err == nil && a.status == http.StatusOK && strings.Contains(a.body, "of the south")
	})
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)
}

// A planned move is under way when the north is lost to the south: the move has offered the account, and its offer does not
// arrive. The south is promoted; then the north follows it, whichever of the two it meets first (R19, R20).
func TestR20PromotionDuringAMove(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "v")
	drained(t, c)
	north := c.locations[North].Directory
	peer := &deafPeer{Peer: linkedDirectory{c.link, c.locations[South]}}
	north.SetPeer(peer)
	_, err := north.Mover().Move(t.Context(), "northacct", time.Hour)
	require.NoError(t, err)
	eventually(t, "the account is offered", func() bool { return peer.offered.Load() != nil })
	_, err = c.locations[South].Directory.Promoter().Promote(t.Context(), "northacct")
	require.NoError(t, err)
	eventually(t, "the offer meets the promotion", func() bool {
		_, err := c.locations[South].Directory.Offer(t.Context(), *peer.offered.Load())
		return err == nil
	})
	peer.answers.Store(true)
	requireAt(t, c, "northacct", South)
	putEventually(t, c, "northacct", "after")
	require.Equal(t, "after", read(t, c, "northacct", "", "k"))
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)
}
