package directory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory/record"
	"antipode/directory/record/recordtest"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// waitMax bounds how long a test waits for a commit.
const (
	waitMax   = time.Minute
	waitEvery = time.Millisecond
)

// swept is a stamp whose tables are swept by steps.
type swept struct {
	t *testing.T
	*recordtest.Containers
	*Sweeper
	// reads counts the reads of the catalog. before is called before each, if it is set.
	reads  int
	before func()
}

func newSwept(t *testing.T, role change.Role) *swept { return newSweptOf(t, geo.Table, role) }

func newSweptOf(t *testing.T, service geo.Service, role change.Role) *swept {
	s := &swept{t: t, Containers: recordtest.New(t, service)}
	s.Sweeper = NewSweeper(SweeperOptions{
		Stamp: s, Leader: s.Leader, Catalog: geo.FirstRange(geo.Catalog), Ranges: []geo.RangeID{geo.FirstRange(s.Service)},
	})
	s.Gates(change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: role, Open: true})
	return s
}

// Read implements ranges.Reader.
func (s *swept) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	if s.reads++; s.before != nil {
		s.before()
	}
	return s.Stamp.Read(ctx, r, f)
}

// step lets a step happen and its commands be answered.
func (s *swept) step() (wiped uint64) {
	s.t.Helper()
	before := s.Swept()
	s.Step(s.t.Context())
	require.Eventually(s.t, func() bool { return s.pending.Load() == 0 }, waitMax, waitEvery)
	return s.Swept() - before
}

// round lets a whole round happen.
func (s *swept) round() (wiped uint64) {
	s.t.Helper()
	for first := true; first || s.at != len(s.walks); first = false {
		wiped += s.step()
	}
	return wiped
}

// R8: at the primary the rows of a deleted table go, and those of the generation before of a name that was created
// again, also where the front end died before it closed the generation. The generation stays closed, and rows
// of living tables stay. So it is with queues.
//
// Capability: Queues: Rows of queues elsewhere.
// Capability: Storage on a node: Deleted tables and containers are swept.
func TestR8SweepAtThePrimary(t *testing.T) {
	t.Parallel()
	for _, service := range []geo.Service{geo.Table, geo.Queue} {
		t.Run(service.String(), func(t *testing.T) { requireSweep(t, newSweptOf(t, service, change.RolePrimary)) })
	}
}

func requireSweep(t *testing.T, s *swept) {
	lives, dies, first := s.Create("lives"), s.Create("dies"), s.Create("again")
	require.Zero(t, s.round())
	s.Drop("dies")
	s.Drop("again")
	second := s.Create("again")
	require.False(t, s.Closed(dies))
	require.EqualValues(t, 2, s.round())
	require.True(t, s.Has(lives))
	require.True(t, s.Has(second))
	require.False(t, s.Has(dies))
	require.False(t, s.Has(first))
	for _, p := range []keys.Partition{dies, first} {
		require.True(t, s.Closed(p))
	}
	for _, p := range []keys.Partition{lives, second} {
		require.False(t, s.Closed(p))
	}
	require.Zero(t, s.round(), "they are swept once")
	require.True(t, s.Closed(dies))
}

// R14: at the secondary its catalog alone says what is over: a generation that is not in it yet stays, and nothing
// is closed there. A record of a deleted generation that was applied late is found by a later round.
//
// Capability: Storage on a node: Deleted tables and containers are swept.
func TestR14SweepAtTheSecondary(t *testing.T) {
	t.Parallel()
	s := newSwept(t, change.RoleSecondary)
	lives, dies := s.Create("lives"), s.Create("dies")
	early := keys.Partition{Service: geo.Table, Account: "acct", Container: "early", Generation: keys.Generation{Epoch: 1, Created: 7}, Object: "p"}
	s.Put(early)
	later := lives
	later.Generation.Created++
	s.Put(later)
	next := dies // It was created again at the primary.
	next.Generation.Created++
	s.Put(next)
	s.Drop("dies")
	require.EqualValues(t, 1, s.round())
	require.False(t, s.Has(dies))
	for _, p := range []keys.Partition{lives, early, later, next} {
		require.True(t, s.Has(p))
		require.False(t, s.Closed(p))
	}
	require.False(t, s.Closed(dies))

	require.Zero(t, s.round())
	s.Put(dies)
	for range sweepSkips {
		require.Zero(t, s.round())
	}
	require.EqualValues(t, 1, s.round(), "the catalog is as it was")
	require.False(t, s.Has(dies))
}

// R7: a sweep that was decided under another epoch of the account than the gate has when it is evaluated does nothing: a
// copy that began again may hold the generation. Neither does one of an account whose gate is closed.
//
// Capability: Storage on a node: Deleted tables and containers are swept.
func TestR7SweepOfAFormerEpoch(t *testing.T) {
	t.Parallel()
	s := newSwept(t, change.RoleSecondary)
	dies := s.Create("dies")
	s.Drop("dies")
	next := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "north"}, Role: change.RoleSecondary, Open: true}
	s.before = func() {
		if s.reads == 2 { // The catalog is about to be asked what is over.
			s.Gates(next)
		}
	}
	require.Zero(t, s.round())
	require.True(t, s.Has(dies))
	s.Gates(change.Gate{Epoch: next.Epoch, Role: change.RoleSecondary})
	require.Zero(t, s.round())
	require.True(t, s.Has(dies))
	s.Gates(next)
	s.createAndDrop("other")
	require.EqualValues(t, 1, s.round())
	require.False(t, s.Has(dies))
}

// createAndDrop creates and deletes a table without rows: the catalog changes.
func (s *swept) createAndDrop(name string) {
	s.t.Helper()
	stamptest.Submit(s.t, s.Stamp, geo.FirstRange(geo.Catalog), recordtest.Write{Write: &catalog.Create{Service: geo.Table, Account: "acct", Name: name}})
	s.Drop(name)
}

// A step looks at few generations and wipes few, and goes on in the next one where it stopped (invariant 8). While
// the catalog stays as it was, rounds that would find nothing are left out.
func TestSweepIsPaced(t *testing.T) {
	t.Parallel()
	s := newSwept(t, change.RolePrimary)
	var all []keys.Partition
	for i := range sweepLooks + 2*record.WipesMax {
		all = append(all, s.Create(fmt.Sprintf("t%04d", i)))
	}
	for _, p := range all[:record.WipesMax+1] {
		s.Drop(p.Container)
	}
	s.Drop(all[len(all)-1].Container)
	require.EqualValues(t, record.WipesMax, s.step())
	require.EqualValues(t, 1, s.step())
	require.False(t, s.Has(all[record.WipesMax]))
	require.True(t, s.Has(all[len(all)-1]))
	require.EqualValues(t, 1, s.round())
	for i, p := range all {
		require.Equal(t, i > record.WipesMax && i < len(all)-1, s.Has(p))
	}
	require.Zero(t, s.round())
	s.reads = 0
	for range 10 {
		require.Zero(t, s.round())
	}
	require.Equal(t, 10, s.reads, "one question each: whether the catalog has changed")
	s.Drop(all[100].Container)
	require.EqualValues(t, 1, s.round())
}

// A sweep that fails, or whose catalog does not answer, is made up for by a later round, and a step does not begin
// before the commands of the last are answered.
func TestSweepIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSwept(t, change.RolePrimary)
	dies := s.Create("dies")
	s.Drop("dies")
	lead := s.o.Leader
	s.o.Leader = func(geo.RangeID) *ranges.Range { return nil }
	require.Zero(t, s.round())
	s.o.Leader = lead
	s.o.Stamp = silent{}
	require.Zero(t, s.round())
	s.o.Stamp = s
	s.pending.Add(1)
	require.Equal(t, sweepRest, s.Step(t.Context()))
	s.pending.Add(-1)
	require.True(t, s.Has(dies))
	require.EqualValues(t, 1, s.round())
	require.False(t, s.Has(dies))
}

type silent struct{}

func (silent) Read(context.Context, geo.RangeID, func(ranges.State) error) error { return kv.ErrBusy }
