package primary

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/blobs"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// counted takes commands and evaluates none.
type counted struct {
	ranges.Routed
	commands atomic.Int64
}

// routed has the table of a new stamp.
type routed struct{}

func (routed) Route() *route.Table { return route.First() }

func (c *counted) Submit(context.Context, geo.RangeID, ranges.Command) error {
	c.commands.Add(1)
	return nil
}

func (c *counted) SubmitAll(_ context.Context, _ geo.RangeID, cmds []ranges.Command) []error {
	c.commands.Add(int64(len(cmds)))
	return make([]error, len(cmds))
}

// Writes of an account whose changes are late are delayed or refused, before they are submitted; those of other
// accounts and services are not.
//
// Capability: Two locations: An account may slow or refuse its writes while changes are late.
func TestLateWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &counted{Routed: routed{}}
		p := New(s)
		refused := map[bool]int{}
		try := func() (took time.Duration, err error) {
			began := time.Now()
			err = p.Write(t.Context(), &write{})
			return time.Since(began), err
		}
		set := func(late map[Written]Late) { p.SetLate(late, func(r bool) { refused[r]++ }) }
		own := Written{"acct", geo.Table}

		took, err := try()
		require.NoError(t, err)
		require.Zero(t, took)

		set(map[Written]Late{own: {Delay: 700 * time.Millisecond}})
		took, err = try()
		require.NoError(t, err)
		require.Equal(t, 700*time.Millisecond, took)
		require.EqualValues(t, 2, s.commands.Load())

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.Write(ctx, &write{}), kv.ErrBusy, "nothing happened")
		require.EqualValues(t, 2, s.commands.Load())

		set(map[Written]Late{own: {Refuse: true}})
		took, err = try()
		require.ErrorIs(t, err, ErrLate)
		require.Zero(t, took)
		require.EqualValues(t, 2, s.commands.Load())
		require.Equal(t, map[bool]int{true: 1, false: 2}, refused)

		set(map[Written]Late{{"acct", geo.Blob}: {Refuse: true}, {"other", geo.Table}: {Refuse: true}})
		_, err = try()
		require.NoError(t, err)
		require.EqualValues(t, 3, s.commands.Load())
	})
}

// writeOf is a write of an account.
type writeOf struct {
	write
	account geo.Account
}

func (w *writeOf) Partition() keys.Partition {
	return keys.Partition{Service: geo.Table, Account: w.account, Container: "t", Object: "p"}
}

// R18: a write that is delayed keeps the place of its request and its body for as long. So an account, and all
// slowed accounts together, have so many of them at once; one more is refused at once, and is done nothing
// with. The other accounts' writes go on, and places that end are free again, given up ones too.
//
// Capability: Two locations: An account may slow or refuse its writes while changes are late.
func TestR18SlowedWritesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(&counted{Routed: routed{}})
		late := map[Written]Late{}
		var refused atomic.Int64
		names := []geo.Account{"a", "b", "c", "d", "e", "f"}
		for _, a := range names {
			late[Written{a, geo.Table}] = Late{Delay: 2 * time.Second}
		}
		p.SetLate(late, func(r bool) {
			if r {
				refused.Add(1)
			}
		})
		var results [6][]error
		var mu sync.Mutex
		ended := func(i int) []error {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(results[i])
		}
		fill := func(ctx context.Context, i, n int) {
			for range n {
				go func() {
					err := p.Write(ctx, &writeOf{account: names[i]})
					mu.Lock()
					defer mu.Unlock()
					results[i] = append(results[i], err)
				}()
			}
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		for i, atOnce := range []int{1, 1, 1, 1, slowedAccountMax + 1} { // The fifth finds all places taken.
			fill(ctx, i, slowedAccountMax+1)
			require.Len(t, ended(i), atOnce, "%s: refused at once", names[i])
			for _, err := range ended(i) {
				require.ErrorIs(t, err, ErrSlowed)
			}
		}
		require.Equal(t, slowedMax, 4*slowedAccountMax)
		require.EqualValues(t, slowedAccountMax+5, refused.Load())
		began := time.Now()
		require.NoError(t, p.Write(t.Context(), &writeOf{account: "other"}))
		require.Equal(t, began, time.Now())
		cancel()
		synctest.Wait()
		require.Len(t, ended(0), slowedAccountMax+1)
		fill(t.Context(), 5, slowedAccountMax)
		require.Empty(t, ended(5), "the places are free again")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, ended(5), slowedAccountMax)
		for _, err := range ended(5) {
			require.NoError(t, err)
		}
		require.Zero(t, p.slowed.all)
		require.Empty(t, p.slowed.of)
	})
}

// What a committed write has left over is not held: its client waits for it, and would take the write to have failed.
func TestLateRemainder(t *testing.T) {
	t.Parallel()
	s := &counted{Routed: routed{}}
	p := New(s)
	p.SetLate(map[Written]Late{{"acct", geo.Blob}: {Refuse: true}}, func(bool) {})
	of := blobs.Command{Name: blobs.Name{Account: "acct", Container: "c", Blob: "b"}}
	require.ErrorIs(t, p.Write(t.Context(), &blobs.PutBlock{Command: of}), ErrLate)
	require.NoError(t, p.Write(t.Context(), &blobs.DropDead{Command: of}))
	require.EqualValues(t, 1, s.commands.Load())
}
