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
