package location

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/verify"
	"antipode/services/catalog"
)

// While the other location is away one range finds out, and the others are left out with its reason. One that was compared in
// part, or that failed here, is no reason to leave out the next.
func TestVerifyOfALocationThatIsAwayEndsFast(t *testing.T) {
	job := func() *verifyJob {
		return &verifyJob{out: wire.Verify{Ranges: []wire.VerifiedRange{{Lanes: geo.LaneCount}, {Lanes: geo.LaneCount}, {Lanes: geo.LaneCount}}}}
	}
	var none verify.Result
	for l := range geo.Lane(geo.LaneCount) {
		none.Uncompared = append(none.Uncompared, verify.Uncompared{Lane: l, Reason: "the link is cut"})
	}
	j := job()
	require.False(t, j.skip(0))
	j.away = errors.New("the link is cut")
	j.take(0, none, nil)
	require.True(t, j.skip(1))
	require.True(t, j.skip(2))
	require.True(t, j.out.Ranges[2].Done)
	require.Len(t, j.out.Ranges[2].NotCompared, geo.LaneCount)
	require.Equal(t, wire.VerifyIncomplete, j.outcome())

	j = job()
	j.take(0, none, nil)
	require.False(t, j.skip(1), "the other location answered")
	j.away = errors.New("the link is cut")
	j.take(0, verify.Result{Compared: 1, Uncompared: none.Uncompared[1:]}, nil)
	require.False(t, j.skip(1), "it is away for the first time")
}

// Copies that are known to differ, or that are not there, are not compared.
func TestVerifyIsRefusedByState(t *testing.T) {
	taken := func(o catalog.Operation) *catalog.Operation {
		o.Kind = catalog.OperationTaken
		return &o
	}
	for name, c := range map[string]struct {
		change func(a *catalog.Account)
		repair bool
		code   string
	}{
		"as it is":                       {func(*catalog.Account) {}, true, ""},
		"another primary":                {func(a *catalog.Account) { a.Primary, a.Secondary = "south", "north" }, false, wire.CodeAskPrimary},
		"one copy":                       {func(a *catalog.Account) { a.Secondary = "" }, false, wire.CodeNoSecondary},
		"a planned failover":             {func(a *catalog.Account) { a.Operation = taken(catalog.Operation{}) }, false, ""},
		"its repair":                     {func(a *catalog.Account) { a.Operation = taken(catalog.Operation{}) }, true, wire.CodeBusy},
		"a former primary that is away":  {func(a *catalog.Account) { a.Operation = taken(catalog.Operation{Unplanned: true}) }, false, wire.CodeBusy},
		"a former primary that follows":  {func(a *catalog.Account) { a.Operation = taken(catalog.Operation{Unplanned: true, Rewinding: true}) }, false, wire.CodeBusy},
		"a former primary that diverged": {func(a *catalog.Account) { a.Operation = taken(catalog.Operation{Diverged: true}) }, false, wire.CodeBusy},
	} {
		t.Run(name, func(t *testing.T) {
			a := &catalog.Account{Name: "photos", Primary: "north", Secondary: "south", Redundancy: "RA-GRS"}
			c.change(a)
			err := mayVerify(a, wire.VerifyQuery{Repair: c.repair}, "north")
			if c.code == "" {
				require.NoError(t, err)
				return
			}
			var said *wire.Error
			require.ErrorAs(t, err, &said)
			require.Equal(t, c.code, said.Code)
		})
	}
}
