package witness_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/failover/witness"
	"antipode/geo"
)

// R21: a promotion waits for the leases of the other location alone: its own location is the one that it promotes.
func TestR21ClaimWaitsForOthers(t *testing.T) {
	p := newPlace(t)
	p.renew("south", 0)
	require.Zero(t, p.claim("acct", 2, "south"))
	p.renew("north", 0)
	p.clock.Advance(time.Second)
	p.renew("south", 0)
	require.Equal(t, 9*time.Second, p.claim("other", 2, "south"))
}

// R21: a witness that starts with a shorter lease waits for those that it may have granted with the longer one, also where
// it has started twice since.
func TestR21ShorterLeaseWaitsForTheLongerOne(t *testing.T) {
	p := newPlace(t)
	p.renew("north", 0)
	for range 2 {
		p.fs = p.fs.CrashClone(vfs.CrashCloneCfg{})
		w, err := witness.Open(witness.Options{
			FS: p.fs, Dir: "w", Locations: []geo.Location{"north", "south"}, Clock: p.clock, Name: p.name(), Life: time.Second,
		})
		require.NoError(t, err)
		p.Witness = w
	}
	require.Equal(t, time.Second, p.renew("south", 0).Life)
	require.Equal(t, 10*time.Second, p.claim("acct", 2, "south"))
}

// R19, R21: a claim that comes after its withdrawal, over another connection or a second time, is refused: its epoch never
// begins, and nobody would withdraw it again. So is one that was never registered before. A later epoch is claimed as ever.
func TestR21LateClaimIsRefused(t *testing.T) {
	p := newPlace(t)
	south := func(n geo.EpochNumber) geo.Epoch { return geo.Epoch{Number: n, Location: "south"} }
	refused := func(a geo.Account, n geo.EpochNumber) {
		t.Helper()
		_, err := p.Claim([]witness.Claim{{Account: a, Number: n, Location: "south"}}, p.Position())
		require.ErrorIs(t, err, witness.ErrPassed)
	}
	p.claim("acct", 2, "south")
	require.NoError(t, p.Withdraw("acct", south(2)))
	require.NoError(t, p.Withdraw("late", south(4)))
	for range 2 {
		refused("acct", 2)
		refused("late", 4)
		require.Empty(t, p.renew("north", 0).Claims)
		p.crash()
	}
	p.claim("acct", 3, "south")
	require.NoError(t, p.Withdraw("acct", south(2)), "of the former one, late")
	refused("acct", 2)
	require.Len(t, p.renew("north", 0).Claims, 1)
}

// R21, invariant 8: what was withdrawn is remembered up to a bound, and then forgotten, the oldest first. A claim that was
// sent before that may be one of those, and is refused; sent again from where the witness is it is taken, over the wire by
// the client itself. A location that has not heard of what was forgotten gets all claims.
func TestR21WithdrawnClaimsAreForgotten(t *testing.T) {
	p := newPlace(t)
	account := func(i int) geo.Account { return geo.Account(fmt.Sprint("acct", i)) }
	p.claim("stays", 2, "south")
	sent := p.Position()
	var first witness.Grant
	for i := range witness.WithdrawnMax + 1 {
		p.claim(account(i), 2, "south")
		if i == 0 {
			first = p.renew("north", sent.Version)
			require.Len(t, first.Claims, 1)
		}
		require.NoError(t, p.Withdraw(account(i), geo.Epoch{Number: 2, Location: "south"}))
	}
	g := p.renew("north", first.Version)
	require.True(t, g.All)
	require.Len(t, g.Withdrawn, witness.WithdrawnMax)
	require.NotContains(t, g.Withdrawn, account(0))
	require.Len(t, g.Claims, 1, "also those that it knows")
	require.False(t, p.renew("north", g.Version).All)
	late := []witness.Claim{{Account: account(0), Number: 2, Location: "south"}}
	_, err := p.Claim(late, sent)
	require.ErrorIs(t, err, witness.ErrLate)
	_, err = p.Claim([]witness.Claim{{Account: account(1), Number: 2, Location: "south"}}, p.Position())
	require.ErrorIs(t, err, witness.ErrPassed, "it is remembered")
	_, err = p.Claim(late, p.Position())
	require.NoError(t, err, "nothing is kept of one that is forgotten")

	at := p.Position()
	p.crash()
	_, err = p.Claim(late, at)
	require.ErrorIs(t, err, witness.ErrLate, "it was sent to another process")
	require.Len(t, p.renew("north", 0).Withdrawn, witness.WithdrawnMax)
}

// R21, invariant 8: the witness keeps a claim of ClaimsMax accounts, and takes more once some are over.
func TestR21ClaimsAreBounded(t *testing.T) {
	p := newPlace(t)
	var many []witness.Claim
	for i := range witness.ClaimsMax {
		many = append(many, witness.Claim{Account: geo.Account(fmt.Sprint("acct", i)), Number: 2, Location: "south"})
	}
	_, err := p.Claim(many, p.Position())
	require.NoError(t, err)
	more := []witness.Claim{{Account: "more", Number: 2, Location: "south"}}
	_, err = p.Claim(more, p.Position())
	require.ErrorIs(t, err, witness.ErrFull)
	require.NoError(t, p.Withdraw("acct0", geo.Epoch{Number: 2, Location: "south"}))
	_, err = p.Claim(more, p.Position())
	require.NoError(t, err)
}
