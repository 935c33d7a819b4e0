package ranges

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/change"
)

// fullFence confirms all but a thousand accounts.
func fullFence() *Fence {
	f, above := &Fence{}, map[geo.Account]geo.Epoch{}
	for i := range 1000 {
		above[geo.Account(rune('a'+i%26))+geo.Account(rune('0'+i))] = geo.Epoch{Number: 2, Location: "south"}
	}
	f.Set(Confirmed{Until: time.Hour, Above: above})
	return f
}

// R21: what every write of an account with a copy asks twice costs no allocation.
func TestR21FenceAllocatesNothing(t *testing.T) {
	f, e, c := fullFence(), change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}}, clock.System{}
	require.Zero(t, testing.AllocsPerRun(100, func() { f.Confirms("acct", e, c.Mono()) }))
	require.True(t, f.Confirms("acct", e, 0))
}

// R21: a fence confirms up to a moment, which is not included, and no account of which an epoch is known that passes its
// gate. One that was never set confirms nothing; a range without a second location has none, and confirms everything.
func TestR21FenceConfirms(t *testing.T) {
	gate := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}}
	f := &Fence{}
	require.False(t, f.Confirms("acct", gate, 0))
	require.True(t, (*Fence)(nil).Confirms("acct", gate, time.Hour))
	f.Set(Confirmed{Until: time.Hour, Above: map[geo.Account]geo.Epoch{
		"passed": {Number: 2, Location: "south"}, "former": {Number: 1, Location: "north"},
	}})
	require.True(t, f.Confirms("acct", gate, time.Hour-1))
	require.False(t, f.Confirms("acct", gate, time.Hour))
	require.False(t, f.Confirms("passed", gate, 0))
	require.True(t, f.Confirms("former", gate, 0))
}

// BenchmarkFence is what a write asks twice, and the reading of the clock that all answers of a pass share.
func BenchmarkFence(b *testing.B) {
	f, e, c := fullFence(), change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}}, clock.System{}
	b.Run("confirms", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.Confirms("acct", e, 0)
		}
	})
	b.Run("clock", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Mono()
		}
	})
}
