package witness_test

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"antipode/failover/witness"
	"antipode/geo"
)

var errFull = errors.New("no space left on device")

// full opens the witness over a disk that takes nothing while the function that it returns says so.
func (p *place) full() (set func(bool)) {
	full := false
	fs := errorfs.Wrap(p.fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errFull
		}
		return nil
	}))
	w, err := witness.Open(witness.Options{FS: fs, Dir: "w", Locations: []geo.Location{"north", "south"}, Clock: p.clock, Name: "one"})
	require.NoError(p.t, err)
	p.Witness = w
	return func(on bool) { full = on }
}

// R21: where the disk took nothing before a crash, no version is given twice: a location that knows the last one gets every
// claim that was answered since.
func TestR21VersionsAreNotRepeatedAfterAFullDisk(t *testing.T) {
	p := newPlace(t)
	full := p.full()
	full(true)
	_, err := p.Claim([]witness.Claim{{Account: "acct", Number: 2, Location: "south"}})
	require.ErrorIs(t, err, errFull)
	known := p.renew("north", 0)
	require.Len(t, known.Claims, 1, "from then on no lease holds for it")
	p.crash()
	p.claim("other", 2, "south")
	claims := p.renew("north", known.Version).Claims
	require.Len(t, claims, 1)
	require.EqualValues(t, "other", claims[0].Account)
}

// R21: a claim counts as withdrawn once that is durable, however often it is asked for; and one that was listed and is not
// durable is withdrawn, too.
func TestR21WithdrawalIsDurable(t *testing.T) {
	p := newPlace(t)
	full := p.full()
	p.claim("acct", 2, "south")
	at, of := p.renew("north", 0).Version, geo.Epoch{Number: 2, Location: "south"}
	full(true)
	for range 2 {
		require.ErrorIs(t, p.Withdraw("acct", of), errFull)
	}
	full(false)
	require.NoError(t, p.Withdraw("acct", of))
	p.crash()
	require.Empty(t, p.renew("north", 0).Claims)
	require.Equal(t, []geo.Account{"acct"}, p.renew("north", at).Withdrawn)

	full = p.full()
	full(true)
	_, err := p.Claim([]witness.Claim{{Account: "other", Number: 2, Location: "south"}})
	require.ErrorIs(t, err, errFull)
	at = p.renew("north", 0).Version
	p.fs = p.fs.CrashClone(vfs.CrashCloneCfg{})
	p.open()
	require.NoError(t, p.Withdraw("other", of))
	require.Equal(t, []geo.Account{"other"}, p.renew("north", at).Withdrawn)
}
