package primary

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/blobs"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// counted takes commands and evaluates none.
type counted struct{ commands int }

func (c *counted) Submit(context.Context, geo.RangeID, ranges.Command) error {
	c.commands++
	return nil
}

// Writes of an account whose changes are late are delayed or refused, before they are submitted; those of other
// accounts and services are not.
func TestLateWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{}
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
		require.Equal(t, 2, s.commands)

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.Write(ctx, &write{}), kv.ErrBusy, "nothing happened")
		require.Equal(t, 2, s.commands)

		set(map[Written]Late{own: {Refuse: true}})
		took, err = try()
		require.ErrorIs(t, err, ErrLate)
		require.Zero(t, took)
		require.Equal(t, 2, s.commands)
		require.Equal(t, map[bool]int{true: 1, false: 2}, refused)

		set(map[Written]Late{{"acct", geo.Blob}: {Refuse: true}, {"other", geo.Table}: {Refuse: true}})
		_, err = try()
		require.NoError(t, err)
		require.Equal(t, 3, s.commands)
	})
}

// What a committed write has left over is not held: its client waits for it, and would take the write to have failed.
func TestLateRemainder(t *testing.T) {
	s := &counted{}
	p := New(s)
	p.SetLate(map[Written]Late{{"acct", geo.Blob}: {Refuse: true}}, func(bool) {})
	of := blobs.Command{Name: blobs.Name{Account: "acct", Container: "c", Blob: "b"}}
	require.ErrorIs(t, p.Write(t.Context(), &blobs.PutBlock{Command: of}), ErrLate)
	require.NoError(t, p.Write(t.Context(), &blobs.DropDead{Command: of}))
	require.Equal(t, 1, s.commands)
}
