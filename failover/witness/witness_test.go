package witness_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/failover/witness"
	"antipode/geo"
	"antipode/internal/clock"
)

type place struct {
	t     *testing.T
	fs    *vfs.MemFS
	clock *clock.Manual
	*witness.Witness
	lives int
}

func newPlace(t *testing.T) *place {
	p := &place{t: t, fs: vfs.NewCrashableMem(), clock: clock.NewManual(time.Unix(1_800_000_000, 0))}
	p.open()
	p.clock.Advance(time.Minute)
	return p
}

func (p *place) open() {
	p.t.Helper()
	w, err := witness.Open(witness.Options{FS: p.fs, Dir: "w", Locations: []geo.Location{"north", "south"}, Clock: p.clock, Name: p.name()})
	require.NoError(p.t, err)
	p.Witness = w
}

// name is the incarnation of the next process.
func (p *place) name() string {
	p.lives++
	return fmt.Sprint("life ", p.lives)
}

// crash loses what was not synced, and starts again.
func (p *place) crash() {
	p.fs = p.fs.CrashClone(vfs.CrashCloneCfg{})
	p.open()
}

func (p *place) renew(l geo.Location, after uint64) witness.Grant {
	p.t.Helper()
	g, err := p.Renew(l, after)
	require.NoError(p.t, err)
	return g
}

func (p *place) claim(a geo.Account, n geo.EpochNumber, l geo.Location) time.Duration {
	p.t.Helper()
	wait, err := p.Claim([]witness.Claim{{Account: a, Number: n, Location: l}}, p.Position())
	require.NoError(p.t, err)
	return wait
}

// R21: a promotion waits to the end of the last lease that was granted before its claim. It does not wait for leases
// that were granted after it, which list the claim.
func TestR21ClaimWaitsForLeases(t *testing.T) {
	p := newPlace(t)
	require.Zero(t, p.claim("nobody", 2, "south"), "no lease was granted")
	p.renew("north", 0)
	p.clock.Advance(4 * time.Second)
	require.Equal(t, 6*time.Second, p.claim("acct", 2, "south"))
	p.clock.Advance(time.Second)
	g := p.renew("north", 1)
	require.Equal(t, 10*time.Second, g.Life)
	require.Equal(t, []witness.Claim{{Account: "acct", Number: 2, Location: "south", Version: 2}}, g.Claims)
	require.Equal(t, 5*time.Second, p.claim("acct", 2, "south"), "again: what is left")
	p.clock.Advance(5 * time.Second)
	require.Zero(t, p.claim("acct", 2, "south"), "north has renewed since, which does not hold for the account")
	require.Empty(t, p.renew("north", g.Version).Claims)
	require.Len(t, p.renew("north", 0).Claims, 2)
	require.Equal(t, 10*time.Second, p.claim("another", 2, "south"), "for which north's lease holds")
}

// R21: a claim that was answered is listed after every crash, and a witness that starts waits for every lease that it may
// have granted before.
func TestR21ClaimsOutliveACrash(t *testing.T) {
	p := newPlace(t)
	p.renew("north", 0)
	require.Equal(t, 10*time.Second, p.claim("acct", 2, "south"))
	p.clock.Advance(time.Second)
	p.crash()
	require.Len(t, p.renew("south", 0).Claims, 1)
	require.Equal(t, 10*time.Second, p.claim("acct", 2, "south"))
	require.Equal(t, 10*time.Second, p.claim("other", 2, "south"), "north's lease may be of a moment ago")
	require.Len(t, p.renew("north", 0).Claims, 2)
	p.clock.Advance(10 * time.Second)
	require.Zero(t, p.claim("acct", 2, "south"))
	require.Equal(t, "life 2", p.renew("north", 0).Incarnation)
}

// R19, R21: of two claims of an account the higher epoch stays; a withdrawn one no longer counts, and is listed as such.
func TestR21HigherClaimStays(t *testing.T) {
	p := newPlace(t)
	p.claim("acct", 3, "south")
	_, err := p.Claim([]witness.Claim{{Account: "fresh", Number: 2, Location: "north"}, {Account: "acct", Number: 2, Location: "north"}}, p.Position())
	require.ErrorIs(t, err, witness.ErrPassed)
	require.Len(t, p.renew("north", 0).Claims, 1, "none of the two is registered")
	p.claim("acct", 4, "north")
	require.NoError(t, p.Withdraw("acct", geo.Epoch{Number: 3, Location: "south"}))
	require.Len(t, p.renew("south", 0).Claims, 1, "that one was replaced")
	at := p.renew("south", 0).Version
	require.NoError(t, p.Withdraw("acct", geo.Epoch{Number: 4, Location: "north"}))
	p.crash()
	g := p.renew("south", at)
	require.Empty(t, g.Claims)
	require.Equal(t, []geo.Account{"acct"}, g.Withdrawn)
	p.claim("acct", 5, "south")
	require.Empty(t, p.renew("south", at).Withdrawn)

	_, err = p.Renew("west", 0)
	require.ErrorIs(t, err, witness.ErrLocation)
	_, err = p.Claim([]witness.Claim{{Account: "acct", Number: 9, Location: "west"}}, p.Position())
	require.ErrorIs(t, err, witness.ErrLocation)
}

// A file that cannot be read keeps the witness from answering: without its claims it would renew for accounts that moved.
func TestR21DamagedFileRefusesToOpen(t *testing.T) {
	p := newPlace(t)
	p.claim("acct", 2, "south")
	f, err := p.fs.Create("w/claims.json", vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write([]byte(`{"v":1,`))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = witness.Open(witness.Options{FS: p.fs, Dir: "w", Locations: []geo.Location{"north"}, Clock: p.clock, Name: "two"})
	require.ErrorContains(t, err, "claims.json")
}
