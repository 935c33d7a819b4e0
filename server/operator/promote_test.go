package operator

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// R20: the secondary of an account is asked for an unplanned failover, also where the primary fails; its end is asked of
// the secondary first, and of the primary where that has none.
//
// Capability: Failover: What the public management API shows of an account's geo-replication.
func TestR20SecondaryIsPromoted(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	south.accounts = []wire.Account{{Name: "mail", Redundancy: "RA-GRS", Primary: "north", Secondary: "south"}}
	north.fail = wire.ErrUnreachable
	for what, b := range backends(t, north, south) {
		a, err := b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverUnplanned}})
		require.NoError(t, err, what)
		require.EqualValues(t, "south", a.Primary, what)
		require.Contains(t, south.calls(), "failover unplanned of mail", what)
		a, err = b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverUnplanned, To: "south", DryRun: true}})
		require.NoError(t, err, what)
		require.EqualValues(t, "south", a.Primary, what)
		_, err = b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverEnd}})
		require.NoError(t, err, what)
		require.Contains(t, south.calls(), "failover end of mail", what)
		_, err = b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverUnplanned, To: "mars"}})
		require.ErrorContains(t, err, "mars", what)
	}
	north.fail, north.accounts = nil, south.accounts
	south.noPromotion = true
	for what, b := range backends(t, north, south) {
		a, err := b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverEnd}})
		require.NoError(t, err, what)
		require.EqualValues(t, "north", a.Primary, what)
	}
}

// R20: an account shows the unplanned failover that is under way at its secondary, whether its primary answers, which does not
// know of it, or not. One of a former epoch is over.
//
// Capability: Failover: What the public management API shows of an account's geo-replication.
func TestR20PromotionIsShown(t *testing.T) {
	first := wire.Epoch{Number: 1, Location: "north"}
	north, south := newFake("north"), newFake("south")
	mail := wire.Account{Name: "mail", Redundancy: "RA-GRS", Primary: "north", Secondary: "south", Epoch: first}
	north.accounts = []wire.Account{mail}
	north.status.Accounts = []wire.AccountStatus{{Account: mail}}
	for _, phase := range []string{wire.FailoverClaiming, wire.FailoverApplying, wire.FailoverFreezing, wire.FailoverThawing, wire.FailoverWithdrawing} {
		there := mail
		there.FailoverPhase, there.Operation, there.OperationWaits = phase, "an unplanned failover to this location", "no witness"
		south.accounts, south.status.Accounts = []wire.Account{there}, []wire.AccountStatus{{Account: there}}
		for _, fail := range []error{nil, wire.ErrUnreachable} {
			north.fail = fail
			for what, b := range backends(t, north, south) {
				a, err := b.Account(t.Context(), "mail")
				require.NoError(t, err, what)
				require.Equal(t, there, a.Account, what)
				require.True(t, a.Promoting())
				list, err := b.Accounts(t.Context())
				require.NoError(t, err, what)
				require.Len(t, list, 1, what)
				require.Equal(t, there, list[0].Account, what)
				if status, err := b.Status(t.Context()); fail == nil {
					require.NoError(t, err, what)
					require.Len(t, status.Accounts, 1, what)
					require.Equal(t, there, status.Accounts[0].Account, what)
				}
			}
		}
	}
	later := mail
	later.Epoch.Number = 2
	north.fail, north.accounts = nil, []wire.Account{later}
	for what, b := range backends(t, north, south) {
		a, err := b.Account(t.Context(), "mail")
		require.NoError(t, err, what)
		require.Equal(t, later, a.Account, what)
		require.False(t, a.Promoting())
		list, err := b.Accounts(t.Context())
		require.NoError(t, err, what)
		require.Equal(t, later, list[0].Account, what)
	}
}

// R20: a status shows the former primary of an account that does not know of the failover, and not one that offers the account
// to the other location, or has followed.
//
// Capability: Failover: What the public management API shows of an account's geo-replication.
func TestR20FormerPrimaryIsShown(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	first, second := wire.Epoch{Number: 6, Location: "north"}, wire.Epoch{Number: 7, Location: "south"}
	former := wire.Account{Name: "mail", Redundancy: "RA-GRS", Primary: "north", Secondary: "south", Epoch: first}
	now := wire.Account{Name: "mail", Redundancy: "RA-GRS", Primary: "south", Secondary: "north", Epoch: second}
	offered := former
	offered.FailoverPhase, offered.Operation = wire.FailoverOffered, "the failover to south"
	taken, diverged := now, now
	taken.FailoverPhase, diverged.FailoverPhase, diverged.Diverged = wire.FailoverTaken, wire.FailoverTaken, true
	for _, c := range []struct {
		at, now wire.Account
		want    *wire.Epoch
	}{{former, taken, &first}, {offered, taken, nil}, {taken, taken, nil}, {former, now, nil}, {former, diverged, nil}} {
		north.status.Accounts, south.status.Accounts = []wire.AccountStatus{{Account: c.at}}, []wire.AccountStatus{{Account: c.now}}
		for what, b := range backends(t, north, south) {
			s, err := b.Status(t.Context())
			require.NoError(t, err, what)
			require.Len(t, s.Accounts, 1, what)
			require.Equal(t, c.now, s.Accounts[0].Account, what)
			require.Equal(t, c.want, s.Accounts[0].FormerEpoch, "%s %+v", what, c.at)
		}
	}
}

// R19, R20: a location that still takes itself for the primary, after an unplanned failover to the other one of which it does
// not know, is not asked to become it: the answer has the primary that is, and why it cannot be.
func TestR20FormerPrimaryThatDoesNotKnowIsNotPromoted(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	before := wire.Account{Name: "mail", Redundancy: "RA-GRS", Primary: "north", Secondary: "south", Epoch: wire.Epoch{Number: 1, Location: "north"}}
	now := wire.Account{Name: "mail", Redundancy: "RA-GRS", Primary: "south", Secondary: "north", Epoch: wire.Epoch{Number: 2, Location: "south"}}
	north.accounts, south.accounts = []wire.Account{before}, []wire.Account{now}
	const why = "north has not learned yet of the failover of account mail to south, in epoch 2@south, and has epoch 1@north: "
	update := wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverUnplanned, To: "north", DryRun: true}}
	for what, b := range backends(t, north, south) {
		a, err := b.UpdateAccount(t.Context(), "mail", update)
		require.NoError(t, err, what)
		require.Equal(t, now, a.Account, what)
		require.Contains(t, a.Refused, why, what)
		require.Empty(t, a.Loss, what)
		_, err = b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverUnplanned, To: "north"}})
		require.ErrorContains(t, err, why, what)
		require.NotContains(t, north.calls(), "failover unplanned of mail", what)
	}
	north.accounts = []wire.Account{now}
	for what, b := range backends(t, north, south) {
		a, err := b.UpdateAccount(t.Context(), "mail", update)
		require.NoError(t, err, what)
		require.Empty(t, a.Refused, what)
		require.Contains(t, north.calls(), "failover unplanned of mail", what)
	}
}

// R19, R20: a location that does not know yet of failovers to the other one would pass their accounts by, and be over: it is not
// asked for an unplanned failover of all accounts, nor for its dry run, while both answer. One that is under way goes on, as
// without the witness.
func TestR20LocationThatDoesNotKnowIsNotPromoted(t *testing.T) {
	of := func(name geo.Account, number geo.EpochNumber, primary, secondary geo.Location) wire.Account {
		return wire.Account{Name: name, Redundancy: "RA-GRS", Primary: primary, Secondary: secondary, Epoch: wire.Epoch{Number: number, Location: primary}}
	}
	before := []wire.Account{of("docs", 1, "north", "south"), of("home", 1, "south", "north"), of("mail", 1, "north", "south")}
	now := []wire.Account{of("docs", 2, "south", "north"), of("home", 1, "south", "north"), of("mail", 2, "south", "north")}
	const begun = "fail over unplanned"
	for _, c := range []struct {
		north, south []wire.Account
		fail         error
		phase        string
		refused      bool
	}{
		{before, now, nil, "", true},
		{before, now, nil, wire.LocationOver, true},
		{before, now, nil, wire.LocationMoving, false},
		{now, now, nil, "", false},
		{[]wire.Account{of("home", 2, "north", "south")}, before, nil, "", false}, // It is the other one that does not know.
		{before, nil, errors.New("dead"), "", false},
	} {
		north, south := newFake("north"), newFake("south")
		north.accounts, north.failover, south.accounts, south.fail = c.north, c.phase, c.south, c.fail
		for what, b := range backends(t, north, south) {
			north.calls()
			for _, dry := range []bool{true, false} {
				_, err := b.failLocationOver(t.Context(), "north", wire.Failover{Type: wire.FailoverUnplanned, DryRun: dry})
				if !c.refused {
					require.NoError(t, err, "%s %+v", what, c)
					require.Contains(t, north.calls(), begun, "%s %+v", what, c)
					continue
				}
				var refused *wire.Error
				require.ErrorAs(t, err, &refused, what)
				require.Equal(t, wire.CodeUnaware, refused.Code)
				require.Contains(t, refused.Message, "north has not learned yet of failovers to south (accounts: 2, such as docs in epoch 2@south)")
				require.NotContains(t, north.calls(), begun, what)
			}
			_, err := b.failLocationOver(t.Context(), "north", wire.Failover{Type: wire.FailoverPlanned})
			require.NoError(t, err, "it loses nothing")
		}
	}
}
