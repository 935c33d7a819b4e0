package location

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// R20: what an unplanned failover says is lost is never below the truth: the guarantee is the least sync time of the
// service's streams and the catalog's, the records are those that closed records have named, and from the last contact with
// either range on nothing is known. A range that has not been in contact leaves no guarantee and no bound.
func TestR20LossIsNeverBelowTheTruth(t *testing.T) {
	t.Parallel()
	fork := func(s geo.Service, closed geo.Timestamp, streams ...catalog.ForkStream) catalog.Fork {
		prefix := keys.AppendService(nil, s)
		return catalog.Fork{
			Number: 1, Location: "north", Range: geo.FirstRange(s), Closed: closed, Start: prefix, End: keys.PrefixEnd(prefix), Descriptor: 1, Streams: streams,
		}
	}
	at := func(n geo.Timestamp) wire.Time { return wire.Time{Time: n.Time()} }
	l := &Location{from: route.First()}
	got := l.losses("acct", []catalog.Fork{
		fork(geo.Catalog, 90, catalog.ForkStream{Lane: 1, Seq: 3}),
		fork(geo.Blob, 100, catalog.ForkStream{Lane: 2, Seq: 4, Behind: 9, Sync: 50}, catalog.ForkStream{Lane: 3, Behind: 2, Sync: 70}),
		fork(geo.Queue, 80, catalog.ForkStream{Lane: 2, Seq: 4, Stopped: change.StopForked}),
		fork(geo.Table, 0),
	})
	require.Equal(t, []wire.ServiceLoss{
		{Service: "catalog", LastSyncTime: at(90), UnboundedSince: at(90)},
		{Service: "blob", LastSyncTime: at(50), KnownRecords: 7, UnboundedSince: at(90)},
		{Service: "queue", Reason: "forked", UnboundedSince: at(80)},
		{Service: "table", Reason: "not-heard"},
	}, got)
	require.Empty(t, l.losses("acct", nil))
}

// R20: the accounts of a list show the unplanned failovers to this location that are under way, and no others.
func TestR20PromotionsAreDescribed(t *testing.T) {
	t.Parallel()
	l := New(Options{Name: "south", Other: "north", Clock: clock.NewManual(time.Unix(1e9, 0)), Local: []geo.NodeID{1}})
	var of []*catalog.Account
	for _, name := range []geo.Account{"moving", "resting"} {
		of = append(of, &catalog.Account{Name: name, Redundancy: catalog.GRS, Primary: "north", Secondary: "south", Epoch: 1, Active: true})
	}
	described := func() []wire.Account {
		out := make([]wire.Account, len(of))
		l.DescribePromotions(t.Context(), of, func(i int) *wire.Account { return &out[i] })
		return out
	}
	require.Equal(t, []wire.Account{{}, {}}, described(), "it is stopped")
	s := stamptest.New(t, "south", geo.Catalog)
	l.stamp.Store(s)
	stamptest.Submit(t, s, s.Route().Catalog(), oneAccount{a: *of[0], promotion: &catalog.Promotion{Phase: catalog.PromotionFreezing, Location: "north", Number: 1}})
	stamptest.Submit(t, s, s.Route().Catalog(), oneAccount{a: *of[1]})
	got := described()
	require.True(t, got[0].Promoting())
	require.Contains(t, got[0].Operation, "the copy is frozen")
	require.Equal(t, wire.Account{}, got[1])
	of[0].Secondary = "north"
	require.Equal(t, []wire.Account{{}, {}}, described(), "it is of another location")
}

// R20: the end of an unplanned failover that ends already is no error here: else the primary would be asked, which may be dead.
func TestR20EndOfOneThatEnds(t *testing.T) {
	t.Parallel()
	l := New(Options{Name: "south", Other: "north", Clock: clock.NewManual(time.Unix(1e9, 0)), Local: []geo.NodeID{1}})
	s := stamptest.New(t, "south", geo.Catalog)
	l.stamp.Store(s)
	of := catalog.Account{Name: "pictures", Redundancy: catalog.GRS, Primary: "north", Secondary: "south", Epoch: 1, Active: true}
	for _, phase := range []catalog.PromotionPhase{catalog.PromotionClaiming, catalog.PromotionThawing, catalog.PromotionWithdrawing} {
		stamptest.Submit(t, s, s.Route().Catalog(), oneAccount{a: of, promotion: &catalog.Promotion{Phase: phase, Location: "north", Number: 1}})
		a, err := l.endFailover(t.Context(), of.Name)
		require.NoError(t, err, phase)
		require.Equal(t, of.Name, a.Name)
	}
	of.Name = "resting"
	stamptest.Submit(t, s, s.Route().Catalog(), oneAccount{a: of})
	_, err := l.endFailover(t.Context(), of.Name)
	require.Error(t, err)
}

// R19, R20: a field that a failover of a type does not have is refused: a end with dry_run would end a failover.
func TestR19FailoverHasTheFieldsOfItsType(t *testing.T) {
	t.Parallel()
	for _, f := range []wire.Failover{
		{Type: wire.FailoverPlanned},
		{Type: wire.FailoverPlanned, WithinSeconds: 5},
		{Type: wire.FailoverPlanned, DryRun: true},
		{Type: wire.FailoverEnd},
		{Type: wire.FailoverEnd, NotTaken: true},
		{Type: wire.FailoverUnplanned},
		{Type: wire.FailoverUnplanned, To: "south", DryRun: true},
		{Type: wire.FailoverUnplanned, WithoutWitness: true},
		{Type: wire.FailoverUnplanned, AcceptPart: true},
	} {
		require.NoError(t, CheckFailover(wire.UpdateAccount{Failover: &f}), "%+v", f)
		require.Error(t, CheckFailover(wire.UpdateAccount{Failover: &f, Rebuild: true}), "%+v", f)
	}
	for _, f := range []wire.Failover{
		{Type: wire.FailoverPlanned, To: "south"},
		{Type: wire.FailoverPlanned, WithoutWitness: true},
		{Type: wire.FailoverPlanned, AcceptPart: true},
		{Type: wire.FailoverEnd, DryRun: true},
		{Type: wire.FailoverPlanned, NotTaken: true},
		{Type: wire.FailoverEnd, WithinSeconds: 5},
		{Type: wire.FailoverPlanned, WithinSeconds: -1},
		{Type: wire.FailoverPlanned, WithinSeconds: 3601},
		{Type: wire.FailoverUnplanned, WithinSeconds: 5},
	} {
		require.Error(t, CheckFailover(wire.UpdateAccount{Failover: &f}), "%+v", f)
		_, err := (&Location{}).failover(t.Context(), "acct", wire.UpdateAccount{Failover: &f})
		require.Error(t, err, "%+v", f)
	}
}
