package primary

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// writesOf are writes of values to one row.
func writesOf(values ...string) (ws []services.Write, of []*write) {
	for _, v := range values {
		w := &write{value: v, fail: v == "fail"}
		ws, of = append(ws, w), append(of, w)
	}
	return ws, of
}

// Writes that are made together are evaluated in their order, each on what those before it have left, and have one group. One
// that fails changes nothing, and stops none.
//
// Capability: Blobs: Batches.
func TestWriteAll(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Table)
	p := New(s)
	ws, of := writesOf("a", "b", "fail", "c")
	for _, err := range p.WriteAll(t.Context(), ws) {
		require.ErrorIs(t, err, ErrGateClosed)
	}
	gate := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true}
	stamptest.Submit(t, s, geo.FirstRange(geo.Table), stamptest.Gate{Account: "acct", Gate: gate})
	before := s.Leader(geo.FirstRange(geo.Table)).Machine.AppliedState().Index
	errs := p.WriteAll(t.Context(), ws)
	require.Equal(t, []error{nil, nil, errFailed, nil}, errs)
	require.Less(t, s.Leader(geo.FirstRange(geo.Table)).Machine.AppliedState().Index, before+3, "fewer groups than changes")
	require.Equal(t, []string{"", "a", "b"}, []string{of[0].saw, of[1].saw, of[3].saw})
	require.Empty(t, p.WriteAll(t.Context(), nil))
}

// inService is a write to a blob, which is in another range than those to tables.
type inService struct{ write }

func (*inService) Partition() keys.Partition {
	return keys.Partition{Service: geo.Blob, Account: "acct", Object: "b"}
}

// unsure records what is submitted together, and does not confirm the first commands.
type unsure struct {
	routed
	not int
	got []string
}

func (*unsure) Submit(context.Context, geo.RangeID, ranges.Command) error { return errFailed }

func (u *unsure) SubmitAll(_ context.Context, r geo.RangeID, cmds []ranges.Command) []error {
	errs, text := make([]error, len(cmds)), fmt.Sprint(r, ":")
	for i, c := range cmds {
		if u.not > 0 {
			u.not--
			errs[i] = ErrUnconfirmed
		}
		if of, plain := c.(*command).w.(*write); plain {
			text += " " + of.value
		}
	}
	u.got = append(u.got, text)
	return errs
}

// Writes of two ranges are submitted to each. Those that are refused while the location is not confirmed are tried once more
// if it is meanwhile, and no others.
//
// Capability: Blobs: Batches.
func TestWriteAllOfTwoRangesUnconfirmed(t *testing.T) {
	t.Parallel()
	ws, _ := writesOf("a", "b", "c")
	ws = slices.Insert(ws, 1, services.Write(&inService{}))
	tables, blobs := fmt.Sprint(geo.FirstRange(geo.Table), ":"), fmt.Sprint(geo.FirstRange(geo.Blob), ":")
	for _, c := range []struct {
		not   int
		await func(context.Context) bool
		got   []string
		errs  []error
	}{
		{0, nil, []string{tables + " a b c", blobs}, []error{nil, nil, nil, nil}},
		{2, nil, []string{tables + " a b c", blobs}, []error{ErrUnconfirmed, nil, ErrUnconfirmed, nil}},
		{2, func(context.Context) bool { return false }, []string{tables + " a b c", blobs}, []error{ErrUnconfirmed, nil, ErrUnconfirmed, nil}},
		{2, func(context.Context) bool { return true }, []string{tables + " a b c", tables + " a b", blobs}, []error{nil, nil, nil, nil}},
		{4, func(context.Context) bool { return true }, []string{tables + " a b c", tables + " a b c", blobs}, []error{ErrUnconfirmed, nil, nil, nil}},
	} {
		u := &unsure{not: c.not}
		p := New(u)
		p.Await = c.await
		require.Equal(t, c.errs, p.WriteAll(t.Context(), ws))
		require.Equal(t, c.got, u.got)
	}
}

// Writes of a late account to a service that are made together are delayed as one, or refused; those to another service are not.
func TestLateWritesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &counted{Routed: routed{}}
		p := New(s)
		held := 0
		ws, _ := writesOf("a", "b", "c")
		ws = append(ws, &inService{})
		set := func(l Late) {
			p.SetLate(map[Written]Late{{"acct", geo.Table}: l}, func(bool) { held++ })
		}
		set(Late{Delay: time.Second})
		began := time.Now()
		require.Equal(t, make([]error, 4), p.WriteAll(t.Context(), ws))
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, 1, held)
		require.EqualValues(t, 4, s.commands.Load())
		set(Late{Refuse: true})
		errs := p.WriteAll(t.Context(), ws)
		require.Equal(t, []error{ErrLate, ErrLate, ErrLate, nil}, errs)
		require.EqualValues(t, 5, s.commands.Load())
		e, known := storageerr.Of(errs[0])
		require.True(t, known)
		require.Equal(t, storageerr.ServerBusy.Code, e.Code)
	})
}
