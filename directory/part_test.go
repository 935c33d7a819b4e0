package directory_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/directory/record"
	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// recovered is a stamp whose table range was recovered with loss, once, as what is asked of copies shows it.
type recovered struct {
	record.Stamp
	once bool
	// silent: it does not say.
	silent bool
}

func (s *recovered) Submit(ctx context.Context, r geo.RangeID, cmd ranges.Command) error {
	if p, ok := cmd.(ranges.Portable); ok && s.silent && p.Kind() == "directory.freeze" {
		return kv.ErrBusy
	}
	err := s.Stamp.Submit(ctx, r, cmd)
	if p, ok := cmd.(ranges.Portable); err == nil && ok && s.once && r == table && p.Kind() == "directory.freeze" {
		return p.DecodeResult(bytes.Replace(p.EncodeResult(), []byte(`"fork":{`), []byte(`"fork":{"recovered":true,`), 1))
	}
	return err
}

// regains is a directory of the south, for an account whose copy was made before a range of it was recovered with loss.
func regains(t *testing.T, copied geo.Timestamp) (*apart, *recovered, *clock.Manual) {
	a := newApart(t)
	row := *a.at(t)
	row.Copied = copied
	a.store(t, row)
	now := clock.NewManual(time.Now())
	s := &recovered{Stamp: a.stamps["south"], once: true}
	a.pair.south = directory.NewDirectory(s, "north")
	a.pair.south.SetPace(now, 0)
	a.pair.south.SetPeer(linked{a.pair, a.north})
	a.cut = true
	return a, s, now
}

// R4, R20: a copy of which a recovery with loss may have left a part is not promoted: the operator learns of which
// services, and a dry run says so, too. One who insists gets what is there.
//
// Capability: Proofs: A copy of which a recovery with loss left a part (R4, R17).
func TestR20PartOfACopyIsRefused(t *testing.T) {
	t.Parallel()
	a, s, now := regains(t, 1<<62)
	refused := func(err error) {
		t.Helper()
		requireCode(t, storageerr.InvalidInput, err)
		require.ErrorContains(t, err, "table (")
		require.NotContains(t, err.Error(), "blob (")
		require.ErrorContains(t, err, "--accept-part")
	}
	refused(a.pair.south.Promoter().Check(t.Context(), a.name, unplanned.Insisted{WithoutWitness: true}))
	_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
	refused(err)
	_, err = a.pair.south.Promoter().PromoteWithoutWitness(t.Context(), a.name)
	refused(err)
	require.Empty(t, a.phase(t))

	// The recovery comes after the beginning: what counts is the copy that is frozen.
	s.once = false
	require.NoError(t, a.pair.south.Promoter().Check(t.Context(), a.name, unplanned.Insisted{}))
	require.Empty(t, a.phase(t), "a check begins nothing")
	var ended string
	a.pair.south.OnMove(func(m record.Moved) {
		if m.Step == record.MoveEnded {
			ended = m.Reason
		}
	})
	_, err = a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	s.once = true
	for range 8 {
		_, err = a.pair.south.Resume(t.Context())
		require.NoError(t, err)
		now.Advance(time.Second)
	}
	require.Contains(t, ended, "table (")
	require.Empty(t, a.phase(t))
	require.Equal(t, geo.Location("north"), a.at(t).Primary)

	insisted := unplanned.Insisted{AcceptPart: true}
	require.NoError(t, a.pair.south.Promoter().Check(t.Context(), a.name, insisted))
	_, err = a.pair.south.Promoter().PromoteAs(t.Context(), a.name, insisted)
	require.NoError(t, err)
	for range 6 {
		_, _ = a.pair.south.Resume(t.Context())
		now.Advance(time.Second)
	}
	require.Equal(t, geo.Location("south"), a.at(t).Primary)
}

// R4, R20: so it is where a whole location is promoted: the account is passed over, and the reason is kept.
//
// Capability: Proofs: A copy of which a recovery with loss left a part (R4, R17).
func TestR20LocationPassesOverAPart(t *testing.T) {
	t.Parallel()
	for _, accepts := range []bool{false, true} {
		a, _, now := regains(t, 1<<62)
		_, err := a.pair.south.PromoteLocation(t.Context(), unplanned.Insisted{AcceptPart: accepts})
		require.NoError(t, err)
		for range 20 {
			_, _ = a.pair.south.Resume(t.Context())
			now.Advance(time.Second)
		}
		m, err := a.pair.south.LocationMove(t.Context())
		require.NoError(t, err)
		require.Equal(t, catalog.LocationOver, m.Phase)
		if accepts {
			require.Empty(t, m.Refused)
			require.Equal(t, geo.Location("south"), a.at(t).Primary)
			continue
		}
		require.Len(t, m.Refused, 1)
		require.Contains(t, m.Refused[0].Why, "recovered with a loss")
		require.Equal(t, geo.Location("north"), a.at(t).Primary)
	}
}

// R4, R13: a service has a part only where one of its ranges, or the catalog, was recovered, and not all has arrived since
// that the copy was made of. A stream that is behind counts by its sync time. A copy that was the primary since has
// everything, whatever was recovered.
//
// Capability: Proofs: A copy of which a recovery with loss left a part (R4, R17).
func TestR20WhatIsAPart(t *testing.T) {
	t.Parallel()
	fork := func(s geo.Service, closed geo.Timestamp, recovered bool, streams ...catalog.ForkStream) catalog.Fork {
		return catalog.Fork{Range: geo.FirstRange(s), Closed: closed, Recovered: recovered, Streams: streams}
	}
	forks := func(cat, blob, queue, tables catalog.Fork) []catalog.Fork {
		return []catalog.Fork{cat, blob, queue, tables}
	}
	whole := func(s geo.Service) catalog.Fork { return fork(s, 150, false) }
	for name, c := range map[string]struct {
		a     catalog.Account
		forks []catalog.Fork
		want  []geo.Service
	}{
		"nothing was recovered": {
			catalog.Account{Copied: 100}, forks(fork(geo.Catalog, 9, false), fork(geo.Blob, 9, false), whole(geo.Queue), whole(geo.Table)), nil,
		},
		"all is there again": {
			catalog.Account{Copied: 100}, forks(fork(geo.Catalog, 100, true), fork(geo.Blob, 100, true), whole(geo.Queue), whole(geo.Table)), nil,
		},
		"a range": {
			catalog.Account{Copied: 100},
			forks(whole(geo.Catalog), fork(geo.Blob, 99, true), whole(geo.Queue), whole(geo.Table)),
			[]geo.Service{geo.Blob},
		},
		"a stream": {
			catalog.Account{Copied: 100},
			forks(whole(geo.Catalog), whole(geo.Blob), fork(geo.Queue, 150, true, catalog.ForkStream{Seq: 1, Behind: 2, Sync: 99}), whole(geo.Table)),
			[]geo.Service{geo.Queue},
		},
		"the catalog": {
			catalog.Account{Copied: 100},
			forks(fork(geo.Catalog, 0, true), whole(geo.Blob), whole(geo.Queue), whole(geo.Table)),
			geo.Services[:],
		},
		"it was the primary since": {
			catalog.Account{Copied: 100, LastFailover: 100}, forks(fork(geo.Catalog, 0, true), whole(geo.Blob), whole(geo.Queue), whole(geo.Table)), nil,
		},
	} {
		require.ElementsMatch(t, c.want, directory.PartsOf(&c.a, c.forks), name)
	}
}

// R4, R20: the plan of the unplanned failover of a location finds what that would refuse, by the same checks: a part of a copy,
// unless an operator accepts it, and an account whose copy was deleted. It changes nothing.
func TestR20LocationPlanFindsRefused(t *testing.T) {
	t.Parallel()
	a, s, _ := regains(t, 1<<62)
	d := a.pair.south
	check := func(by unplanned.Insisted) directory.LocationCheck {
		c, err := d.CheckLocation(t.Context(), by)
		require.NoError(t, err)
		m, err := d.LocationMove(t.Context())
		require.NoError(t, err)
		require.Nil(t, m, "a check begins nothing")
		require.Empty(t, a.phase(t))
		require.Equal(t, 1, c.Waiting)
		return c
	}
	c := check(unplanned.Insisted{})
	require.Equal(t, 1, c.Move.RefusedCount)
	require.Equal(t, a.name, c.Move.Refused[0].Account)
	require.Contains(t, c.Move.Refused[0].Why, "recovered with a loss")
	require.Equal(t, d.Promoter().Check(t.Context(), a.name, unplanned.Insisted{}).Error(), c.Move.Refused[0].Why)
	require.Zero(t, check(unplanned.Insisted{AcceptPart: true}).Move.RefusedCount)
	s.once = false
	require.Zero(t, check(unplanned.Insisted{}).Move.RefusedCount)

	s.silent = true // The ranges do not say what they have.
	c = check(unplanned.Insisted{})
	require.Zero(t, c.Move.RefusedCount)
	require.Equal(t, 1, c.Unchecked)
	s.silent = false

	row := *a.at(t)
	row.Operation = &catalog.Operation{Kind: catalog.OperationBootstrap, Copying: true}
	a.store(t, row)
	c = check(unplanned.Insisted{AcceptPart: true})
	require.Equal(t, 1, c.Move.RefusedCount)
	require.Contains(t, c.Move.Refused[0].Why, storageerr.OperationInProgress.Code)
	row.Operation = nil
	a.store(t, row)

	_, err := d.PromoteLocation(t.Context(), unplanned.Insisted{})
	require.NoError(t, err)
	_, err = d.CheckLocation(t.Context(), unplanned.Insisted{})
	requireCode(t, storageerr.OperationInProgress, err)
}
