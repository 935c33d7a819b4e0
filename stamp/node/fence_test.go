package node_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
)

var errRefused = errors.New("refused")

// fencedWrite is an increment that asks for confirmed epochs, as a write of a client does. then runs once it has been
// evaluated.
type fencedWrite struct {
	increment
	fails error // after it has asked
	then  func()
}

func (c *fencedWrite) Evaluate(tx *ranges.Tx) error {
	if !tx.Confirmed("acct") {
		return errRefused
	}
	if c.then != nil {
		defer c.then()
	}
	if c.fails != nil {
		return c.fails
	}
	return c.increment.Evaluate(tx)
}

// fencedStamp is a stepped stamp with a fence, and an account that has a copy.
type fencedStamp struct {
	*stepped
	fence *ranges.Fence
}

func newFenced(t *testing.T, numbered bool) *fencedStamp {
	f := &fencedStamp{fence: &ranges.Fence{}}
	f.stepped = newSteppedWith(t, 7, 10, func(o *Options) { o.Fence = f.fence })
	f.until("a leader", func() bool { return f.leading() != nil })
	gate := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: numbered}
	require.NoError(t, f.submit(setGate{gate}))
	return f
}

var errNone = errors.New("no answer")

// submit returns the answer to a command.
func (f *fencedStamp) submit(cmd ranges.Command) error {
	f.t.Helper()
	answer := errNone
	f.until("a leader", func() bool {
		r := f.leading()
		if r != nil {
			r.Submit(cmd, func(err error) { answer = err })
		}
		return r != nil
	})
	f.until("an answer", func() bool { return !errors.Is(answer, errNone) })
	return answer
}

// value is the counter as the leader has applied it.
func (f *fencedStamp) value() uint64 {
	f.t.Helper()
	var v []byte
	f.until("a leader", func() bool {
		r := f.leading()
		if r == nil {
			return false
		}
		var err error
		v, _, err = r.State().Get(counterKey())
		require.NoError(f.t, err)
		return true
	})
	return counterOf(v)
}

// hold confirms the epochs for a time.
func (f *fencedStamp) hold(d time.Duration, above map[geo.Account]geo.Epoch) {
	f.fence.Set(ranges.Confirmed{Until: f.clock.Mono() + d, Above: above})
}

// R21: without confirmed epochs a leader refuses a write of an account that has a copy, and commits nothing. With them
// it takes the write; with them and a higher epoch of the account it refuses.
//
// Capability: Two locations: A location that starts asks before it takes writes of accounts with a copy (R21).
func TestR21UnconfirmedWriteIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t, true)
		require.ErrorIs(t, f.submit(&fencedWrite{}), errRefused)
		require.Zero(t, f.value())
		f.hold(time.Hour, nil)
		require.NoError(t, f.submit(&fencedWrite{}))
		require.EqualValues(t, 1, f.value())
		f.hold(time.Hour, map[geo.Account]geo.Epoch{"acct": {Number: 2, Location: "south"}})
		require.ErrorIs(t, f.submit(&fencedWrite{}), errRefused)
		f.hold(time.Hour, map[geo.Account]geo.Epoch{"acct": {Number: 1, Location: "north"}, "other": {Number: 9, Location: "south"}})
		require.NoError(t, f.submit(&fencedWrite{}))
		require.EqualValues(t, 2, f.value())
	})
}

// R21: an account without a copy needs no confirmed epochs.
//
// Capability: Two locations: A location that starts asks before it takes writes of accounts with a copy (R21).
func TestR21AccountWithoutACopyIsNotFenced(t *testing.T) {
	f := newFenced(t, false)
	require.NoError(t, f.submit(&fencedWrite{}))
	require.EqualValues(t, 1, f.value())
}

// R21: an account that is on its way to LRS is fenced as in the last epoch that the other location knows of, until that
// knows of its epoch: a claim that is above the former and not above the latter refuses its writes.
func TestR21AccountOnItsWayToLRSIsFenced(t *testing.T) {
	f := newFenced(t, true)
	gate := change.Gate{Epoch: geo.Epoch{Number: 4, Location: "north"}, Role: change.RolePrimary, Open: true, Agreed: 1}
	require.NoError(t, f.submit(setGate{gate}))
	require.ErrorIs(t, f.submit(&fencedWrite{}), errRefused)
	f.hold(time.Hour, map[geo.Account]geo.Epoch{"acct": {Number: 4, Location: "north"}}) // Its own.
	require.NoError(t, f.submit(&fencedWrite{}))
	claim := map[geo.Account]geo.Epoch{"acct": {Number: 2, Location: "south"}}
	err := f.submit(&fencedWrite{then: func() { f.hold(time.Hour, claim) }})
	require.ErrorIs(t, err, kv.ErrUnknown)
	require.ErrorIs(t, f.submit(&fencedWrite{}), errRefused)
	gate.Agreed = 0
	require.NoError(t, f.submit(setGate{gate}))
	require.NoError(t, f.submit(&fencedWrite{}))
}

// R1, R2, R21: epochs that are no longer confirmed when the write is committed: the answer is that it may have happened, and
// it has. The time that counts is that of the answer and not that at which the pass began.
func TestR21CheckedAgainAfterTheCommit(t *testing.T) {
	t.Parallel()
	for name, lapse := range map[string]func(*fencedStamp){
		"the process stands still": func(f *fencedStamp) { f.clock.Advance(2 * time.Second) },
		"a higher epoch comes": func(f *fencedStamp) {
			f.hold(time.Hour, map[geo.Account]geo.Epoch{"acct": {Number: 2, Location: "south"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFenced(t, true)
				f.hold(time.Second, nil)
				err := f.submit(&fencedWrite{then: func() { lapse(f) }})
				require.ErrorIs(t, err, kv.ErrUnknown)
				f.hold(time.Hour, nil)
				require.EqualValues(t, 1, f.value())
				require.NoError(t, f.submit(&fencedWrite{}))
			})
		})
	}
}

// R5, R21: a leader that stands still after its pass has begun, for longer than the epochs are confirmed, acknowledges
// nothing in that pass: the time that is compared is read after the pause.
func TestR21PauseWithinThePass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t, true)
		acked, unknown := 0, 0
		for steps := range 80 {
			f.hold(time.Second, nil)
			answer, stood, leader := errNone, false, f.leading()
			for ; leader == nil; leader = f.leading() {
				f.step()
				f.hold(time.Second, nil)
			}
			leader.Submit(&fencedWrite{}, func(err error) {
				if answer = err; err == nil {
					acked++
					require.False(t, stood, "after %d steps", steps)
				} else if errors.Is(err, kv.ErrUnknown) {
					unknown++
				}
			})
			for range steps {
				f.step()
			}
			if !errors.Is(answer, errNone) {
				continue
			}
			f.clocks[leader.Leader()].stop = func() {
				stood = true
				f.clock.Advance(2 * time.Second)
			}
			f.until("an answer", func() bool { return !errors.Is(answer, errNone) })
		}
		require.NotZero(t, acked)
		require.NotZero(t, unknown)
	})
}

// R5, R21: a command that was refused for what it saw, such as a failed condition, is answered so only while the epochs
// are confirmed: the other location may have acknowledged what makes the condition hold. Nothing happened.
func TestR21RefusalIsFencedToo(t *testing.T) {
	f := newFenced(t, true)
	f.hold(time.Hour, nil)
	failed := errors.New("the condition does not hold")
	require.ErrorIs(t, f.submit(&fencedWrite{fails: failed}), failed)
	f.hold(time.Second, nil)
	err := f.submit(&fencedWrite{fails: failed, then: func() { f.clock.Advance(2 * time.Second) }})
	require.ErrorIs(t, err, kv.ErrBusy)
	require.Zero(t, f.value())
}
