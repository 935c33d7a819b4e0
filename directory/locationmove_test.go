package directory_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/failover/planned"
	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// house is a location with accounts that a failover moves.
type house struct {
	*world
	north, south *place
}

// newHouse makes accounts with a copy at the north, and one without.
func newHouse(t *testing.T, many int) *house {
	w := newWorld(t)
	w.remote(false)
	h := &house{world: w, north: w.locations[0], south: w.locations[1]}
	for i := range many {
		_, err := h.north.directory.CreateAs(t.Context(), directory.Wanted{Name: h.name(i), Redundancy: catalog.RAGRS})
		require.NoError(t, err)
	}
	_, err := h.north.directory.CreateAs(t.Context(), directory.Wanted{Name: "alone", Redundancy: catalog.LRS})
	require.NoError(t, err)
	w.goOn(t, func() bool { return w.at(t, "north") == many+1 })
	return h
}

func (*house) name(i int) geo.Account { return geo.Account(fmt.Sprintf("acct%04d", i)) }

// over reports whether the failover of the location has ended, as a location knows it.
func (h *house) over(t *testing.T, at *place) bool {
	m, err := at.directory.LocationMove(t.Context())
	require.NoError(t, err)
	return m.Phase == catalog.LocationOver
}

func (h *house) progress(t *testing.T, at *place) (*catalog.LocationMove, directory.LocationProgress) {
	m, err := at.directory.LocationMove(t.Context())
	require.NoError(t, err)
	p, err := at.directory.LocationProgress(t.Context(), m)
	require.NoError(t, err)
	return m, p
}

// R19: a planned failover of a location moves all accounts that have a copy, in waves, and leaves the others; another one is
// refused meanwhile, and its row says how it went.
//
// Capability: Failover: A failover of a whole location.
func TestR19LocationMoves(t *testing.T) {
	t.Parallel()
	const many = directory.MoveWave + 30
	h := newHouse(t, many)
	none, err := h.north.directory.LocationMove(t.Context())
	require.NoError(t, err)
	require.Nil(t, none)
	_, err = h.north.directory.EndLocation(t.Context())
	require.ErrorContains(t, err, "no failover of a location is under way")
	_, err = h.north.directory.MoveLocation(t.Context(), 0)
	require.ErrorContains(t, err, "a move takes up to")
	_, err = h.north.directory.MoveLocation(t.Context(), planned.MoveWithin)
	require.NoError(t, err)
	_, err = h.north.directory.MoveLocation(t.Context(), planned.MoveWithin)
	require.ErrorContains(t, err, "a failover of location north is under way")
	most := 0
	h.goOn(t, func() bool {
		_, p := h.progress(t, h.north)
		under := 0
		for _, n := range p.Moving {
			under += n
		}
		most = max(most, under)
		require.Equal(t, many, p.Waiting+under+p.Moved)
		require.Equal(t, 1, p.Alone)
		return h.over(t, h.north) && h.at(t, "south") == many
	})
	require.Equal(t, directory.MoveWave, most, "a wave is as large as that, and no larger")
	m, p := h.progress(t, h.north)
	require.Equal(t, directory.LocationProgress{Moved: many, Alone: 1, Moving: map[string]int{}}, p)
	require.Zero(t, m.RefusedCount)
	require.Greater(t, m.Over, m.Begun)

	// Back again. The row there is another one.
	_, err = h.south.directory.MoveLocation(t.Context(), planned.MoveWithin)
	require.NoError(t, err)
	h.goOn(t, func() bool { return h.over(t, h.south) && h.at(t, "north") == many+1 })
	m, p = h.progress(t, h.south)
	require.Equal(t, many, p.Moved)
	require.EqualValues(t, "north", m.To)

	// The report of the first one stays as it was.
	m, p = h.progress(t, h.north)
	require.EqualValues(t, "south", m.To)
	require.Equal(t, directory.LocationProgress{Moved: many, Alone: 1, Moving: map[string]int{}}, p)
}

// R19: an operator ends the failover of a location half-way. Accounts that were taken stay moved, the others go back or never
// left and take writes; the row says how many. A second failover goes on with the rest.
func TestR19HalfMovedLocation(t *testing.T) {
	t.Parallel()
	const many = directory.MoveWave + 30
	h := newHouse(t, many)
	_, err := h.north.directory.MoveLocation(t.Context(), planned.MoveWithin)
	require.NoError(t, err)
	h.goOn(t, func() bool { // The first wave has moved, and the second one has begun.
		_, p := h.progress(t, h.north)
		return p.Moved == directory.MoveWave && p.Waiting == 0
	})
	_, err = h.north.directory.EndLocation(t.Context())
	require.NoError(t, err)
	_, err = h.north.directory.MoveLocation(t.Context(), planned.MoveWithin)
	require.Error(t, err, "it has not ended yet")
	h.goOn(t, func() bool {
		return h.over(t, h.north) && h.at(t, "south") == directory.MoveWave && h.at(t, "north") == many+1-directory.MoveWave
	})
	m, p := h.progress(t, h.north)
	require.Equal(t, "an operator ended it", m.Reason)
	require.Equal(t, directory.LocationProgress{Waiting: many - directory.MoveWave, Moved: directory.MoveWave, Alone: 1, Moving: map[string]int{}}, p)

	_, err = h.north.directory.MoveLocation(t.Context(), planned.MoveWithin)
	require.NoError(t, err)
	h.goOn(t, func() bool { return h.over(t, h.north) && h.at(t, "south") == many })
}

// An account of which an operation is under way is passed over, and named with the reason; later rounds try it again.
func TestLocationMovePassesOver(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	bad := h.name(1)
	h.occupy(t, bad)
	_, err := h.north.directory.MoveLocation(t.Context(), planned.MoveWithin)
	require.NoError(t, err)
	rounds := 0
	h.goOn(t, func() bool {
		m, _ := h.progress(t, h.north)
		rounds = max(rounds, m.Round)
		return h.over(t, h.north) && h.at(t, "south") == 2
	})
	require.Equal(t, 3, rounds)
	m, p := h.progress(t, h.north)
	require.Equal(t, 1, m.RefusedCount)
	require.Equal(t, bad, m.Refused[0].Account)
	require.Contains(t, m.Refused[0].Why, storageerr.OperationInProgress.Code)
	require.Equal(t, 2, p.Moved)
	require.Equal(t, 1, p.Waiting)
}

// unsure is a stamp whose answers to many commands are lost.
type unsure struct{ *stamp.Stamp }

func (s unsure) SubmitAll(ctx context.Context, id geo.RangeID, cmds []ranges.Command) []error {
	s.Stamp.SubmitAll(ctx, id, cmds)
	return slices.Repeat([]error{kv.ErrUnknown}, len(cmds))
}

// agreeing is another location that answers.
type agreeing struct{ directory.Peer }

func (agreeing) Announce(context.Context, catalog.Account) error { return nil }

// An account whose failover may have begun, since the answer of the range was lost, is not reported as passed over: it moves.
func TestLocationMoveOfUnsureAnswers(t *testing.T) {
	t.Parallel()
	const many = 5
	h := newHouse(t, many)
	sure := h.north.directory
	h.north.directory = directory.NewDirectory(unsure{h.north.stamp}, "south")
	h.north.directory.SetPeer(agreeing{})
	_, err := h.north.directory.MoveLocation(t.Context(), planned.MoveWithin)
	require.NoError(t, err)
	_, err = h.north.directory.Resume(t.Context())
	require.NoError(t, err)
	h.north.directory = sure
	h.goOn(t, func() bool { return h.over(t, h.north) && h.at(t, "south") == many })
	m, p := h.progress(t, h.north)
	require.Zero(t, m.RefusedCount, "%+v", m.Refused)
	require.Equal(t, 1, m.Round)
	require.Equal(t, many, p.Moved)
}

// R20: an unplanned failover of a location is one of its other location, which asks the former primary nothing.
//
// Capability: Failover: An unplanned failover of an account (R20).
func TestR20LocationMoves(t *testing.T) {
	t.Parallel()
	const many = 20
	h := newHouse(t, many)
	now := clock.NewManual(time.Now())
	h.south.directory.SetPace(now, 0)
	c, err := h.south.directory.CheckLocation(t.Context(), unplanned.Insisted{})
	require.NoError(t, err)
	require.Equal(t, directory.LocationProgress{Waiting: many, Alone: 1, Moving: map[string]int{}}, c.LocationProgress)
	require.Zero(t, c.Move.RefusedCount)
	_, err = h.south.directory.PromoteLocation(t.Context(), unplanned.Insisted{})
	require.NoError(t, err)
	for n := 0; !h.over(t, h.south); n++ {
		require.Less(t, n, 100)
		_, err := h.south.directory.Resume(t.Context())
		require.NoError(t, err)
		now.Advance(time.Second)
	}
	m, p := h.progress(t, h.south)
	require.True(t, m.Unplanned)
	require.Equal(t, directory.LocationProgress{Moved: many, Alone: 1, Moving: map[string]int{}}, p)
}

// farther is a stamp whose commands go to another process of its location, as far as they can.
type farther struct {
	*stamp.Stamp
	sent map[string]int
}

func (s *farther) Submit(ctx context.Context, id geo.RangeID, cmd ranges.Command) error {
	p, ok := cmd.(ranges.Portable)
	if !ok {
		return s.Stamp.Submit(ctx, id, cmd)
	}
	s.sent[p.Kind()]++
	there, err := directory.Commands()[p.Kind()](p.Encode())
	if err == nil {
		err = s.Stamp.Submit(ctx, id, there)
	}
	if err != nil {
		return err
	}
	return p.DecodeResult(there.EncodeResult())
}

// R20: the plan of the unplanned failover of a location counts all accounts that would be refused, and names the first ones. Any
// process of the location makes it: 250 accounts are looked at in a command. What is not such a command is refused.
//
// Capability: Failover: A failover of a whole location.
func TestR20LocationPlanIsBounded(t *testing.T) {
	t.Parallel()
	const many = directory.CheckMax + 30
	h := newHouse(t, many)
	for i := range many - 1 { // All but the last one.
		a, err := h.south.directory.Account(t.Context(), h.name(i))
		require.NoError(t, err)
		row := *a
		row.Operation = &catalog.Operation{Kind: catalog.OperationBootstrap, Copying: true}
		v, err := row.Encode()
		require.NoError(t, err)
		part := catalog.AccountPartition(row.Name)
		stamptest.Submit(t, h.south.stamp, geo.FirstRange(geo.Catalog), does(func(tx *ranges.Tx) error {
			return tx.Local(part, change.Record{CommitTime: tx.Timestamp(0), Partition: part.Append(nil), Ops: []change.Op{{Value: v}}})
		}))
	}
	far := &farther{h.south.stamp, map[string]int{}}
	c, err := directory.NewDirectory(far, "north").CheckLocation(t.Context(), unplanned.Insisted{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"directory.checkPromotions": 2}, far.sent)
	require.Equal(t, many-1, c.Move.RefusedCount)
	require.Len(t, c.Move.Refused, catalog.LocationRefusedMax)
	require.Equal(t, many, c.Waiting)

	parse := directory.Commands()["directory.checkPromotions"]
	_, err = parse([]byte(`{`))
	require.Error(t, err)
	_, err = parse([]byte(`{"names":["` + strings.Repeat(`a","`, directory.CheckMax) + `a"]}`))
	require.ErrorContains(t, err, "a check of 251 accounts")
	short, err := parse([]byte(`{"names":["acct0001"]}`))
	require.NoError(t, err)
	require.Error(t, short.DecodeResult([]byte(`[]`)))
}
