package directory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/stamp"
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
	*stamp.Stamp
	*Sweeper
	// service has the containers.
	service geo.Service
	// reads counts the reads of the catalog. before is called before each, if it is set.
	reads  int
	before func()
}

func newSwept(t *testing.T, role change.Role) *swept { return newSweptOf(t, geo.Table, role) }

func newSweptOf(t *testing.T, service geo.Service, role change.Role) *swept {
	s := &swept{t: t, service: service, Stamp: stamptest.New(t, "north", geo.Catalog, service)}
	s.Sweeper = NewSweeper(SweeperOptions{
		Stamp: s, Leader: s.Leader, Catalog: geo.FirstRange(geo.Catalog), Ranges: []geo.RangeID{geo.FirstRange(s.service)},
	})
	s.gates(change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: role, Open: true})
	return s
}

// gates sets the gate of the account in both ranges.
func (s *swept) gates(g change.Gate) {
	for _, of := range []geo.Service{geo.Catalog, s.service} {
		stamptest.Submit(s.t, s.Stamp, geo.FirstRange(of), stamptest.Gate{Account: "acct", Gate: g})
	}
}

// Read implements ranges.Reader.
func (s *swept) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	if s.reads++; s.before != nil {
		s.before()
	}
	return s.Stamp.Read(ctx, r, f)
}

// catalogWrite does a write of the catalog.
type catalogWrite struct{ services.Write }

func (c catalogWrite) Evaluate(tx *ranges.Tx) error {
	at := tx.Timestamp(0)
	if f, begins := c.Write.(services.Founder); begins {
		f.InEpoch(tx.Gate("acct").Epoch.Number)
	}
	out, err := c.Write.Evaluate(tx, at)
	if err != nil {
		return err
	}
	return tx.Change(c.Partition(), change.Record{CommitTime: at, Partition: c.Partition().Append(nil), Ops: out.Ops})
}

// create makes a table and returns its partition of the object p, with one row.
func (s *swept) create(name string) keys.Partition {
	s.t.Helper()
	made := &catalog.Create{Service: s.service, Account: "acct", Name: name}
	stamptest.Submit(s.t, s.Stamp, geo.FirstRange(geo.Catalog), catalogWrite{made})
	p := keys.Partition{Service: s.service, Account: "acct", Container: name, Generation: made.Created.Generation(), Object: "p"}
	s.put(p)
	return p
}

func (s *swept) put(p keys.Partition) {
	s.t.Helper()
	row := change.Record{Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}}}
	stamptest.Submit(s.t, s.Stamp, geo.FirstRange(s.service), stamptest.Change{Partition: p, Record: row})
}

func (s *swept) drop(name string) {
	s.t.Helper()
	gone := &catalog.Delete{Service: s.service, Account: "acct", Name: name}
	stamptest.Submit(s.t, s.Stamp, geo.FirstRange(geo.Catalog), catalogWrite{gone})
}

// has reports whether the row of a partition is there.
func (s *swept) has(p keys.Partition) bool {
	s.t.Helper()
	_, ok, err := s.Leader(geo.FirstRange(s.service)).State().Get(append(p.Append(nil), 'r'))
	require.NoError(s.t, err)
	return ok
}

// closed reports whether the range takes no more changes of a partition's generation.
func (s *swept) closed(p keys.Partition) bool {
	s.t.Helper()
	id := geo.FirstRange(s.service)
	_, ok, err := s.Leader(id).State().Get(keys.ClosedGeneration(id, p.Service, p.Account, p.Container, p.Generation))
	require.NoError(s.t, err)
	return ok
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
	lives, dies, first := s.create("lives"), s.create("dies"), s.create("again")
	require.Zero(t, s.round())
	s.drop("dies")
	s.drop("again")
	second := s.create("again")
	require.False(t, s.closed(dies))
	require.EqualValues(t, 2, s.round())
	require.True(t, s.has(lives))
	require.True(t, s.has(second))
	require.False(t, s.has(dies))
	require.False(t, s.has(first))
	for _, p := range []keys.Partition{dies, first} {
		require.True(t, s.closed(p))
	}
	for _, p := range []keys.Partition{lives, second} {
		require.False(t, s.closed(p))
	}
	require.Zero(t, s.round(), "they are swept once")
	require.True(t, s.closed(dies))
}

// R14: at the secondary its catalog alone says what is over: a generation that is not in it yet stays, and nothing
// is closed there. A record of a deleted generation that was applied late is found by a later round.
//
// Capability: Storage on a node: Deleted tables and containers are swept.
func TestR14SweepAtTheSecondary(t *testing.T) {
	t.Parallel()
	s := newSwept(t, change.RoleSecondary)
	lives, dies := s.create("lives"), s.create("dies")
	early := keys.Partition{Service: geo.Table, Account: "acct", Container: "early", Generation: keys.Generation{Epoch: 1, Created: 7}, Object: "p"}
	s.put(early)
	later := lives
	later.Generation.Created++
	s.put(later)
	next := dies // It was created again at the primary.
	next.Generation.Created++
	s.put(next)
	s.drop("dies")
	require.EqualValues(t, 1, s.round())
	require.False(t, s.has(dies))
	for _, p := range []keys.Partition{lives, early, later, next} {
		require.True(t, s.has(p))
		require.False(t, s.closed(p))
	}
	require.False(t, s.closed(dies))

	require.Zero(t, s.round())
	s.put(dies)
	for range sweepSkips {
		require.Zero(t, s.round())
	}
	require.EqualValues(t, 1, s.round(), "the catalog is as it was")
	require.False(t, s.has(dies))
}

// R7: a sweep that was decided under another epoch of the account than the gate has when it is evaluated does nothing: a
// copy that began again may hold the generation. Neither does one of an account whose gate is closed.
//
// Capability: Storage on a node: Deleted tables and containers are swept.
func TestR7SweepOfAFormerEpoch(t *testing.T) {
	t.Parallel()
	s := newSwept(t, change.RoleSecondary)
	dies := s.create("dies")
	s.drop("dies")
	next := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "north"}, Role: change.RoleSecondary, Open: true}
	s.before = func() {
		if s.reads == 2 { // The catalog is about to be asked what is over.
			s.gates(next)
		}
	}
	require.Zero(t, s.round())
	require.True(t, s.has(dies))
	s.gates(change.Gate{Epoch: next.Epoch, Role: change.RoleSecondary})
	require.Zero(t, s.round())
	require.True(t, s.has(dies))
	s.gates(next)
	s.createAndDrop("other")
	require.EqualValues(t, 1, s.round())
	require.False(t, s.has(dies))
}

// createAndDrop creates and deletes a table without rows: the catalog changes.
func (s *swept) createAndDrop(name string) {
	s.t.Helper()
	stamptest.Submit(s.t, s.Stamp, geo.FirstRange(geo.Catalog), catalogWrite{&catalog.Create{Service: geo.Table, Account: "acct", Name: name}})
	s.drop(name)
}

// A step looks at few generations and wipes few, and goes on in the next one where it stopped (invariant 8). While
// the catalog stays as it was, rounds that would find nothing are left out.
func TestSweepIsPaced(t *testing.T) {
	t.Parallel()
	s := newSwept(t, change.RolePrimary)
	var all []keys.Partition
	for i := range sweepLooks + 2*sweepWipes {
		all = append(all, s.create(fmt.Sprintf("t%04d", i)))
	}
	for _, p := range all[:sweepWipes+1] {
		s.drop(p.Container)
	}
	s.drop(all[len(all)-1].Container)
	require.EqualValues(t, sweepWipes, s.step())
	require.EqualValues(t, 1, s.step())
	require.False(t, s.has(all[sweepWipes]))
	require.True(t, s.has(all[len(all)-1]))
	require.EqualValues(t, 1, s.round())
	for i, p := range all {
		require.Equal(t, i > sweepWipes && i < len(all)-1, s.has(p))
	}
	require.Zero(t, s.round())
	s.reads = 0
	for range 10 {
		require.Zero(t, s.round())
	}
	require.Equal(t, 10, s.reads, "one question each: whether the catalog has changed")
	s.drop(all[100].Container)
	require.EqualValues(t, 1, s.round())
}

// A sweep that fails, or whose catalog does not answer, is made up for by a later round, and a step does not begin
// before the commands of the last are answered.
func TestSweepIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSwept(t, change.RolePrimary)
	dies := s.create("dies")
	s.drop("dies")
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
	require.True(t, s.has(dies))
	require.EqualValues(t, 1, s.round())
	require.False(t, s.has(dies))
}

type silent struct{}

func (silent) Read(context.Context, geo.RangeID, func(ranges.State) error) error { return kv.ErrBusy }
