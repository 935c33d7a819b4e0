package witness_test

import (
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
			FS: p.fs, Dir: "w", Locations: []geo.Location{"north", "south"}, Clock: p.clock, Name: "one", Life: time.Second,
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
		_, err := p.Claim([]witness.Claim{{Account: a, Number: n, Location: "south"}})
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
