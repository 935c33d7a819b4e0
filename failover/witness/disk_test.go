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
	w, err := witness.Open(witness.Options{FS: fs, Dir: "w", Locations: []geo.Location{"north", "south"}, Clock: p.clock, Name: p.name()})
	require.NoError(p.t, err)
	p.Witness = w
	return func(on bool) { full = on }
}

// R21: a version is one of a process alone. Where the disk took nothing before a crash, or the file was restored from a
// copy, versions come again; so a location that knows one of an earlier process asks from the beginning, and gets every
// claim that was answered since.
//
// Capability: Two locations: A witness at a third place (R21).
func TestR21VersionsAreOfOneProcess(t *testing.T) {
	p := newPlace(t)
	p.claim("first", 2, "south")
	copied := p.fs.CrashClone(vfs.CrashCloneCfg{})
	full := p.full()
	full(true)
	_, err := p.Claim([]witness.Claim{{Account: "acct", Number: 2, Location: "south"}}, p.Position())
	require.ErrorIs(t, err, errFull)
	known := p.renew("north", 0)
	require.Len(t, known.Claims, 2, "from then on no lease holds for it")
	for _, fs := range []*vfs.MemFS{p.fs, copied} {
		p.fs = fs
		p.crash()
		p.claim("other", 2, "south")
		now := p.renew("north", known.Version)
		require.Empty(t, now.Claims, "the version is the same")
		require.NotEqual(t, known.Incarnation, now.Incarnation)
		require.Len(t, p.renew("north", 0).Claims, 2)
	}
}

// R21: a claim counts as withdrawn once that is durable, however often it is asked for; and one that was listed and is not
// durable is withdrawn, too.
//
// Capability: Two locations: A witness at a third place (R21).
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
	_, err := p.Claim([]witness.Claim{{Account: "other", Number: 2, Location: "south"}}, p.Position())
	require.ErrorIs(t, err, errFull)
	require.Len(t, p.renew("north", 0).Claims, 1)
	p.crash()
	require.NoError(t, p.Withdraw("other", of))
	require.Contains(t, p.renew("north", 0).Withdrawn, geo.Account("other"))
}
