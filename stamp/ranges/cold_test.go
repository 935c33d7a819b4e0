package ranges

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/state"
)

// coldRange is a Range that leads, without a scheduler, over a store with rows in no cache.
type coldRange struct {
	*Range
	clock *clock.Manual
	// ran is the running time, woken how often the scheduler was woken, next the next row in no cache.
	ran         time.Duration
	woken, next int
}

func newColdRange(t *testing.T) *coldRange {
	t.Helper()
	const rows = 4
	fs := vfs.NewMem()
	open := func() *state.Store {
		store, err := state.Open("state", state.Options{FS: fs})
		require.NoError(t, err)
		return store
	}
	store := open()
	for i := range rows { // A table each.
		b := store.NewBatch()
		require.NoError(t, b.Set(fmt.Append(nil, "row", i), []byte("v")))
		require.NoError(t, store.Commit(b))
		require.NoError(t, b.Close())
		require.NoError(t, store.Flush())
	}
	require.NoError(t, store.Close())
	store = open()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	for reads := uint64(0); ; { // Let it have read the statistics of its tables.
		<-time.After(20 * time.Millisecond)
		now := store.Reads()
		if now == reads {
			break
		}
		reads = now
	}
	c := &coldRange{clock: clock.NewManual(time.Unix(1_800_000_000, 0))}
	r, err := New(Options{
		Range: geo.FirstRange(geo.Table), State: store, Nodes: []geo.NodeID{1}, Clock: c.clock, Running: clock.NewRunning(coldFor),
		Wake: func() { c.woken++ }, Fence: &Fence{},
	})
	require.NoError(t, err)
	c.Range = r
	c.run(time.Minute)
	r.leading.Store(1)
	return c
}

// run lets running time pass.
func (c *coldRange) run(d time.Duration) {
	c.ran += d
	c.o.Running.Advance(c.ran)
}

// takes is a command that takes a time, and reads a row, if one is named.
type takes struct {
	c         *coldRange
	time      time.Duration
	row       string
	evaluated int
	during    func(tx *Tx)
}

func (c *takes) Evaluate(tx *Tx) error {
	c.evaluated++
	c.c.clock.Advance(c.time)
	if c.during != nil {
		c.during(tx)
	}
	if c.row != "" {
		_, _, err := tx.Get([]byte(c.row))
		return err
	}
	return nil
}

// may is takes for a caller that may evaluate it first, or does at all times.
type may struct {
	takes
	always bool
}

func (c *may) Rehearses() bool { return c.always }

func (c *coldRange) takes(d time.Duration, reads bool) *takes {
	cmd := &takes{c: c, time: d}
	if reads {
		cmd.row = fmt.Sprint("row", c.next)
		c.next++
	}
	return cmd
}

// Commands are rehearsed from one that was slow and read from the disk, for coldFor: one that is slow on a busy machine,
// or quick, begins nothing.
func TestRehearsalFindsColdRows(t *testing.T) {
	c := newColdRange(t)
	require.False(t, c.cold())
	for tries := 0; ; tries++ { // For a moment the store itself reads, for the statistics of its tables.
		require.NoError(t, c.rehearse(t.Context(), c.takes(coldCommand, false)))
		if !c.cold() {
			break
		}
		require.Less(t, tries, 1000, "it read nothing")
		c.run(coldFor)
	}
	before := c.o.State.Reads()
	require.NoError(t, c.rehearse(t.Context(), c.takes(coldCommand-1, true)))
	require.Greater(t, c.o.State.Reads(), before)
	require.False(t, c.cold(), "it was quick")
	require.NoError(t, c.rehearse(t.Context(), c.takes(coldCommand, true)))
	require.True(t, c.cold())
	c.run(coldFor - 1)
	require.True(t, c.cold())
	c.run(1)
	require.False(t, c.cold())
}

// A rehearsal that the caller does not wait for any more, or on a replica that does not lead, ends with an error by which
// nothing happened, and each gives its place back. What it asks a fence is asked again when the command is evaluated (R21).
func TestRehearsalChangesNothing(t *testing.T) {
	c := newColdRange(t)
	c.Machine.gates.set("acct", change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true})
	c.o.Fence.Set(Confirmed{Until: time.Hour})
	cmd := c.takes(0, false)
	confirmed := false
	cmd.during = func(tx *Tx) { confirmed = tx.Confirmed("acct"); tx.Closed() }
	for range rehearsalsMax + 1 {
		require.NoError(t, c.rehearse(t.Context(), cmd))
	}
	require.True(t, confirmed)
	require.Equal(t, rehearsalsMax+1, cmd.evaluated)
	require.Zero(t, c.Queued())
	require.Zero(t, c.last, "its time was not given")

	ctx, cancel := context.WithCancel(t.Context())
	cmd.during = func(*Tx) { cancel() }
	require.ErrorIs(t, c.rehearse(ctx, cmd), kv.ErrBusy)
	for range rehearsalsMax {
		c.rehearsals <- struct{}{}
	}
	require.ErrorIs(t, c.rehearse(ctx, cmd), kv.ErrBusy)
	require.Equal(t, rehearsalsMax+2, cmd.evaluated)
	for range rehearsalsMax {
		<-c.rehearsals
	}
	c.leading.Store(0)
	require.ErrorIs(t, c.rehearse(t.Context(), cmd), ErrNotLeader)
	require.Equal(t, rehearsalsMax+2, cmd.evaluated)
}

// Which commands are rehearsed before they are queued: those that may be, at all times or while rows are cold, or once they
// were given back, which happens once.
func TestWhatIsRehearsed(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		cold, may, always bool
		// rehearsed: once before it was queued; returns: it may be given back.
		rehearsed int
		returns   bool
	}{
		"not one that must not be":     {cold: true},
		"not one that may, if warm":    {may: true, returns: true},
		"one that may, if cold":        {may: true, cold: true, rehearsed: 1},
		"one that must, at all times":  {may: true, always: true, rehearsed: 1},
		"one that must, once, if cold": {may: true, always: true, cold: true, rehearsed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newColdRange(t)
				if x.cold {
					c.foundCold()
				}
				cmd := &may{takes: takes{c: c}, always: x.always}
				result := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					if x.may {
						result <- c.Do(ctx, cmd)
					} else {
						result <- c.Do(ctx, &cmd.takes)
					}
				}()
				next := func() *waiter {
					require.Eventually(t, func() bool { return c.Queued() == 1 }, time.Minute, time.Millisecond)
					return c.takeQueue(false)[0]
				}
				w := next()
				require.Equal(t, x.rehearsed, cmd.evaluated)
				require.Equal(t, x.returns, w.returns)
				if x.returns {
					w.done(errRehearse)
					w = next()
					require.Equal(t, 1, cmd.evaluated)
					require.False(t, w.returns)
				}
				w.done(kv.ErrBusy)
				require.ErrorIs(t, <-result, kv.ErrBusy)

				go func() { result <- c.Do(ctx, &cmd.takes) }()
				next()
				cancel()
				require.ErrorIs(t, <-result, kv.ErrUnknown, "it may be evaluated yet")
			})
		})
	}
	c := newColdRange(t)
	c.leading.Store(0)
	cmd := &may{takes: takes{c: c}, always: true}
	require.ErrorIs(t, c.Do(t.Context(), cmd), ErrNotLeader)
	require.Zero(t, cmd.evaluated)
}

// Commands that one caller submits together, and that come back out of order, as those do that a log without room has taken
// first, are queued in their order again. One that is not answered then has an unknown end: it is queued.
func TestGivenBackCommandsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newColdRange(t)
		var cmds []Command
		for range 3 {
			cmds = append(cmds, &may{takes: takes{c: c}})
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		result := make(chan []error, 1)
		go func() { result <- c.DoAll(ctx, cmds) }()
		synctest.Wait()
		ws := c.takeQueue(false)
		require.Len(t, ws, len(cmds))
		for _, w := range slices.Backward(ws) {
			require.True(t, w.returns)
			w.done(errRehearse)
		}
		synctest.Wait()
		ws = c.takeQueue(false)
		require.Len(t, ws, len(cmds))
		for i, w := range ws {
			require.Same(t, cmds[i], w.cmd)
			require.Equal(t, 1, cmds[i].(*may).evaluated)
			require.False(t, w.returns)
		}
		ws[1].done(nil)
		synctest.Wait()
		cancel()
		require.Equal(t, []error{kv.ErrUnknown, nil, kv.ErrUnknown}, <-result)
	})
}

// A pass ends with the command in which its time is over, and takes one at least. Then rows count as cold if the commands
// were slow and one in some of them has read from the disk; those that wait and may go back do.
func TestPassEndsInTime(t *testing.T) {
	c := newColdRange(t)
	for commands, want := range []bool{false, true} {
		s := &spell{clock: c.clock, began: c.clock.Now(), commands: commands}
		c.clock.Advance(evaluateMax - 1)
		require.False(t, s.over())
		c.clock.Advance(1)
		require.Equal(t, want, s.over())
	}
	for range 3 {
		require.NoError(t, c.rehearse(t.Context(), c.takes(0, true)))
	}
	require.Greater(t, c.o.State.Reads(), uint64(2*coldShare), "more than any pass below has read")
	for _, x := range []struct {
		commands, read int
		took           time.Duration
		cold           bool
	}{
		{2 * coldShare, 2, 2 * coldShare * coldCommand, true},
		{2 * coldShare, 1, 2 * coldShare * coldCommand, false},
		{2 * coldShare, 2, 2*coldShare*coldCommand - 1, false},
		{coldShare - 1, 0, time.Second, false},
		{coldShare - 1, 1, time.Second, true},
	} {
		for _, dropped := range []bool{false, true} {
			c.Warm()
			var done []error
			back := func(err error) { done = append(done, err) }
			stays := &waiter{}
			c.queue = []*waiter{{returns: true, done: back}, stays, {returns: true, done: back}}
			c.woken = 0
			c.rest(&spell{commands: x.commands, took: x.took, reads: c.o.State.Reads() - uint64(x.read), dropped: dropped})
			require.Equal(t, x.cold, c.cold(), x)
			if x.cold {
				require.Equal(t, []error{errRehearse, errRehearse}, done)
				require.Equal(t, []*waiter{stays}, c.queue)
			} else {
				require.Empty(t, done)
				require.Len(t, c.queue, 3)
			}
			require.Equal(t, !dropped, c.woken == 1, "while the log takes nothing another pass is for nothing")
		}
	}
	c.queue, c.woken = nil, 0
	c.rest(&spell{commands: 1})
	require.Zero(t, c.woken, "nothing waits")
}
