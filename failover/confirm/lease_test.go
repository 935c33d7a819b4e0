package confirm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/failover/confirm"
	"antipode/failover/witness"
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// leased is an owner of a machine with a witness.
type leased struct {
	*owner
	renews []uint64 // After of each
}

func newLeased(t *testing.T) *leased {
	return &leased{owner: &owner{t: t, m: confirm.New(confirm.Options{Witness: true}), fence: &ranges.Fence{}, now: time.Hour}}
}

func (l *leased) step(e confirm.Event) {
	for _, e := range l.m.Step(l.now, e) {
		switch e := e.(type) {
		case confirm.Renew:
			l.renews = append(l.renews, e.After)
		case confirm.Exchange:
			l.asks++
		case confirm.AskNodes:
			l.nodes++
		case confirm.Changed:
			l.said = append(l.said, e)
		}
	}
	l.fence.Set(l.m.Held())
}

func (l *leased) run(d time.Duration) {
	for end := l.now + d; l.now < end; l.now += confirm.LookEvery {
		l.step(confirm.Look{})
	}
}

func grant(version uint64, claims ...witness.Claim) confirm.Renewed {
	return confirm.Renewed{Grant: witness.Grant{Life: 10 * time.Second, Claims: claims, Position: witness.Position{Version: version, Incarnation: "one"}}}
}

func claimOf(a string, n int, version uint64) witness.Claim {
	return witness.Claim{Account: geo.Account(a), Number: geo.EpochNumber(n), Location: "south", Version: version}
}

// R21: with a witness nothing confirms the epochs but its lease, or an operator: neither an exchange nor another node nor
// the policy. The lease ends four fifths of its life after the question was sent, whatever the process does meanwhile.
//
// Capability: Two locations: A location that starts asks before it takes writes of accounts with a copy (R21).
// Capability: Two locations: A witness at a third place (R21).
func TestR21LeaseEnds(t *testing.T) {
	l := newLeased(t)
	l.run(time.Second)
	require.Equal(t, []uint64{0}, l.renews)
	require.Zero(t, l.nodes)
	l.step(confirm.Exchanged{})
	l.step(confirm.NodesAsked{Holds: true})
	l.step(confirm.Look{Alone: true})
	l.step(confirm.Exchanged{Err: errAway})
	require.False(t, l.writes())

	sent := time.Hour
	l.step(grant(0))
	require.True(t, l.writes())
	require.Equal(t, confirm.ByWitness, l.m.State().Source)
	l.now = sent + 8*time.Second - 1
	require.True(t, l.writes(), "no step was taken since")
	l.now++
	require.False(t, l.writes())
	l.step(confirm.Look{})
	require.Equal(t, confirm.Changed{Was: confirm.ByWitness, Stood: 7 * time.Second}, l.said[1])
	l.run(confirm.LookEvery)
	l.step(confirm.Renewed{Err: errAway})
	require.False(t, l.writes(), "the witness is away")
	require.ErrorIs(t, l.m.State().Unwitnessed, errAway)
	l.step(confirm.Overridden{})
	require.True(t, l.writes(), "an operator says so")
}

// R21: an operator's word that is given while the last lease of a silent witness still holds outlives that lease. A lease of the
// witness takes its place again; while the witness answers the word changes nothing.
//
// Capability: Two locations: A location that starts asks before it takes writes of accounts with a copy (R21).
// Capability: Two locations: A witness at a third place (R21).
func TestR21WordBeforeTheLeaseEnds(t *testing.T) {
	l := newLeased(t)
	l.run(confirm.LookEvery)
	l.step(grant(0))
	l.step(confirm.Overridden{})
	require.Equal(t, confirm.ByWitness, l.m.State().Source)
	l.run(2 * time.Second)
	l.step(confirm.Renewed{Err: errAway})
	require.True(t, l.writes(), "the lease holds")
	l.step(confirm.Overridden{})
	require.Equal(t, confirm.ByOverride, l.m.State().Source)
	l.run(time.Minute)
	require.True(t, l.writes())
	l.step(confirm.Renewed{Err: errAway})
	l.run(time.Second)
	l.step(grant(0))
	require.Equal(t, confirm.ByWitness, l.m.State().Source)
	l.run(time.Minute)
	require.False(t, l.writes(), "it was the word for the witness that was away then")
}

// R21: a lease is renewed several times within its life, and lives from renewal to renewal; an answer that comes after
// its lease has ended grants nothing.
//
// Capability: Two locations: A location that starts asks before it takes writes of accounts with a copy (R21).
// Capability: Two locations: A witness at a third place (R21).
func TestR21LeaseIsRenewed(t *testing.T) {
	l := newLeased(t)
	for range 300 {
		asked := len(l.renews)
		l.run(confirm.LookEvery)
		if len(l.renews) > asked {
			l.step(grant(0))
		}
		require.True(t, l.writes())
	}
	require.InDelta(t, 30, len(l.renews), 3, "every two seconds, in a minute")
	l.run(4 * time.Second)
	l.stand(9 * time.Second)
	l.step(grant(0))
	require.False(t, l.writes(), "the question was sent before the pause")
	require.Equal(t, confirm.None, l.m.State().Source)
}

// R21: the lease does not hold for accounts that another location has claimed, in this answer or in an earlier one, until
// the claim is withdrawn. A renewal names the newest claim that is known; a witness with another file is asked from the
// beginning, and grants nothing before.
func TestR21LeaseDoesNotHoldForClaims(t *testing.T) {
	l := newLeased(t)
	l.run(time.Second)
	l.step(grant(7, claimOf("acct", 2, 7)))
	require.False(t, l.writes())
	require.True(t, l.fence.Confirms("other", change.Gate{Epoch: epoch(1, "north")}, l.now))
	l.run(2 * time.Second)
	require.Equal(t, []uint64{0, 7}, l.renews)
	l.step(grant(7))
	require.False(t, l.writes(), "the claim is of an earlier answer")

	l.run(2 * time.Second)
	again := grant(1)
	again.Grant.Incarnation = "two"
	until := l.m.Held().Until
	l.step(again)
	require.Equal(t, until, l.m.Held().Until, "it grants nothing yet")
	l.run(confirm.LookEvery)
	require.Equal(t, []uint64{0, 7, 7, 0}, l.renews)
	l.step(again)
	require.False(t, l.writes(), "the other file does not name the claim: what is known of it stays")
	l.run(2 * time.Second)
	again.Grant.Withdrawn = []geo.Account{"acct"}
	l.step(again)
	require.True(t, l.writes())
}

// R21: where the witness has forgotten withdrawals since the version that was named, its claims are all that there are.
// Those of another incarnation are not: that may have lost some.
func TestR21ForgottenWithdrawals(t *testing.T) {
	l := newLeased(t)
	l.run(time.Second)
	l.step(grant(7, claimOf("acct", 2, 7)))
	l.run(2 * time.Second)
	all := grant(3000, claimOf("other", 2, 9))
	all.Grant.All = true
	again := all
	again.Grant.Incarnation = "two"
	l.step(again)
	l.run(confirm.LookEvery)
	l.step(again)
	require.False(t, l.writes(), "what is known of another incarnation stays")
	l.run(2 * time.Second)
	l.step(again)
	require.True(t, l.writes())
	require.Equal(t, confirm.Epochs{"other": epoch(2, "south")}, l.m.Claims())
}
