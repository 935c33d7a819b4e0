package confirm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/failover/confirm"
)

// R21: after the other location was out of reach it is asked for higher epochs at once, and again until it answers. An answer
// to a question of before counts for nothing. The confirmation itself stays: this node ran all the time.
func TestR21AsksAfterTheLinkWasAway(t *testing.T) {
	o := newOwner(t)
	o.run(time.Second, false)
	o.step(confirm.Exchanged{})
	require.False(t, o.m.State().Parted)
	o.run(31*time.Second, false)
	o.step(confirm.Exchanged{})
	o.run(10*time.Second, false)
	asks := o.asks
	began := o.now
	o.step(confirm.Parted{})
	require.True(t, o.m.State().Parted)
	o.run(confirm.LookEvery, false)
	require.Equal(t, asks+1, o.asks, "it asks at once")
	o.run(time.Second, false)
	o.step(confirm.Parted{})
	o.step(confirm.Exchanged{})
	require.True(t, o.m.State().Parted, "the question is of before")
	require.Equal(t, began, o.m.State().PartedSince, "another failure does not begin it again")
	o.run(time.Second, false)
	require.Equal(t, asks+2, o.asks)
	o.step(confirm.Exchanged{Err: errors.New("no link")})
	require.True(t, o.m.State().Parted)
	require.True(t, o.writes())
	o.run(time.Second, false)
	require.Equal(t, asks+3, o.asks)
	o.step(confirm.Exchanged{Above: confirm.Epochs{"moved": epoch(2, "south")}})
	require.False(t, o.m.State().Parted)
	require.Equal(t, confirm.Epochs{"moved": epoch(2, "south")}, o.above)
	o.run(10*time.Second, false)
	require.Equal(t, asks+3, o.asks, "with no failure it asks as seldom as before")
}

// R21: where the bus takes what is sent, and the question fails all the same for 10 s, nothing waits for an answer.
func TestR21PartedEndsWhereCallsAloneFail(t *testing.T) {
	o := newOwner(t)
	o.run(time.Second, false)
	o.step(confirm.Exchanged{})
	o.step(confirm.Parted{})
	o.run(time.Second, false)
	o.step(confirm.Exchanged{Err: errors.New("no catalog")})
	require.True(t, o.m.State().Parted)
	for second := range 11 {
		require.True(t, o.m.State().Parted, "after %d s", second)
		o.step(confirm.Reached{})
		o.run(time.Second, false)
		o.step(confirm.Exchanged{Err: errors.New("no catalog")})
	}
	o.run(time.Second, false)
	o.step(confirm.Exchanged{Err: errors.New("no catalog")})
	require.False(t, o.m.State().Parted)
}
