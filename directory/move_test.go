package directory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/failover/planned"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// Moves of one account between both locations, their ends, writes, and records that arrive go on in any order, one step at a
// time. Steps are commits and calls; any may be lost, its answer too, come again late, and any caller may end at any step.
// Then (R19):
//
//   - in each range one location at most takes writes, and one location at most serves the primary's name;
//   - a location that takes writes has every write that was acknowledged;
//   - when all has come to rest, the locations agree, no operation is left, and both have every acknowledged write.
//
// Runs have up to three accounts, whose steps go on side by side: see together.
// It holds invariant 4.
//
// Capability: Failover: A planned failover of an account (R19).
func TestR19MovesInterleaved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runs, moved, ended := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		var all movings
		goes := &underWay{}
		for i := range rapid.IntRange(1, 3).Draw(rt, "accounts") {
			m := &moving{
				name: &name{
					world: w, underWay: goes, rt: rt, name: geo.Account(fmt.Sprintf("move%dx%d", runs, i)), last: map[geo.Location]known{},
				},
				acked: map[geo.Service][]string{},
			}
			made, err := w.locations[0].directory.Create(context.Background(), m.name.name, nil, nil)
			require.NoError(rt, err)
			m.epoch = made.GeoEpoch()
			m.ship()
			all = append(all, m)
		}
		for range rapid.IntRange(20, 600).Draw(rt, "steps") {
			all[all[0].draw("account", len(all))].step()
			all.check()
		}
		all.rest()
		for _, call := range goes.late { // All calls come once more, when all has ended.
			_ = call(context.Background())
			all.check()
		}
		all.rest()
		for _, m := range all {
			moved, ended = moved+m.moved, ended+m.ended
		}
	})
	t.Logf("%d runs: %d moves, %d without effect", runs, moved, ended)
	require.Positive(t, moved)
	require.Positive(t, ended)
}

// movings are the accounts of a run.
type movings []*moving

func (all movings) check() {
	for _, m := range all {
		m.check()
	}
}

// rest lets all calls end, and operations go on, until nothing is under way.
func (all movings) rest() {
	for len(all[0].callers) > 0 {
		all[0].resume(all[0].callers[0], run)
		all.check()
	}
	for _, m := range all {
		m.rest()
		all.check()
	}
}

// moving is one account of a run.
type moving struct {
	*name
	// acked are the rows that were written, by service.
	acked map[geo.Service][]string
	// moved and ended count moves.
	moved, ended int
	epoch        geo.Epoch
	phase        catalog.MovePhase
}

// step begins a call, or does one step of a call that goes on.
func (m *moving) step() {
	where := m.locations[m.draw("location", 2)]
	begin := m.draw("begin", 16)
	switch {
	case begin == 0 && len(m.callers) < 6:
		within := rapid.SampledFrom([]time.Duration{1, planned.MoveWithinMax, planned.MoveWithinMax}).Draw(m.rt, "within")
		m.start("move from "+string(where.name), func(ctx context.Context) { _, _ = where.directory.Mover().Move(ctx, m.name.name, within) })
	case begin == 1 && len(m.callers) < 6 && m.draw("end", 5) == 0:
		m.start("end at "+string(where.name), func(ctx context.Context) { _, _ = where.directory.Mover().EndMove(ctx, m.name.name) })
	case begin == 2 && len(m.late) > 0:
		call := m.late[m.draw("late", len(m.late))]
		m.start("late call", func(ctx context.Context) { _ = call(ctx) })
	case begin <= 5:
		m.ship()
	case begin <= 7 && len(m.callers) < 6:
		m.start("resume at "+string(where.name), func(ctx context.Context) { _, _ = where.directory.Resume(ctx) })
	case begin == 8:
		m.write(where)
	case len(m.callers) > 0:
		c := m.callers[m.draw("caller", len(m.callers))]
		do := run
		if m.draw("fault", 6) == 0 {
			do = action(m.draw("action", int(actions)))
		}
		m.resume(c, do)
	}
}

var errClosed = errors.New("the gate is closed")

// write writes a row of the account, as package primary does, if the location takes writes.
func (m *moving) write(p *place) {
	svc := rapid.SampledFrom([]geo.Service{geo.Blob, geo.Table}).Draw(m.rt, "service")
	row := fmt.Sprintf("%s%d", svc, len(m.acked[svc]))
	err := persist(func() error {
		return p.stamp.Submit(context.Background(), geo.FirstRange(svc), does(func(tx *ranges.Tx) error {
			if g := tx.Gate(m.name.name); g.Role != change.RolePrimary || !g.Open {
				return errClosed
			}
			at := m.partition(svc, row)
			return tx.Change(at, change.Record{CommitTime: tx.Timestamp(0), Partition: at.Append(nil), Ops: []change.Op{{Value: []byte(row)}}})
		}))
	})
	if !errors.Is(err, errClosed) {
		require.NoError(m.rt, err)
		m.acked[svc] = append(m.acked[svc], row)
	}
}

func (m *moving) partition(svc geo.Service, row string) keys.Partition {
	return keys.Partition{Service: svc, Account: m.name.name, Object: row}
}

// ship has what waits in the outboxes arrive, and be acknowledged.
func (m *moving) ship() {
	for _, p := range m.locations {
		p.ship(m.rt, func(a geo.Account) bool { return a == m.name.name })
	}
}

// ship has what waits in the outboxes of some accounts arrive at the other location, and be acknowledged.
func (p *place) ship(t require.TestingT, of func(geo.Account) bool) {
	for _, svc := range every {
		id := geo.FirstRange(svc)
		from := p.stamp.Leader(id).Machine
		heads, _ := from.Heads()
		for st := range heads {
			if of(st.Account) && st.Epoch.Location == p.name && from.Trimmed(st) < heads[st].Seq {
				p.shipStream(t, st)
			}
		}
	}
}

func (p *place) shipStream(t require.TestingT, st geo.Stream) {
	from := p.stamp.Leader(st.Range).Machine
	rows, err := from.Outbox(st, from.Trimmed(st)+1, 1<<20)
	require.NoError(t, err)
	submit := func(at *place, f func(tx *ranges.Tx) error) {
		require.NoError(t, persist(func() error { return at.stamp.Submit(context.Background(), st.Range, does(f)) }))
	}
	var applied geo.Seq
	submit(p.far, func(tx *ranges.Tx) error {
		gate := tx.Gate(st.Account)
		for _, row := range rows {
			rec, err := change.ParseRecord(row)
			if err != nil {
				return err
			}
			if gate.Epoch == st.Epoch && gate.Role == change.RoleSecondary && gate.Open && tx.Cursor(st).Applied.Seq+1 == rec.Seq {
				if err := tx.Received(row, &rec, true); err != nil {
					return err
				}
			}
		}
		applied = tx.Cursor(st).Applied.Seq
		return nil
	})
	submit(p, func(tx *ranges.Tx) error { return tx.Trim(st, applied) })
}

// check checks the promises that hold after each step.
func (m *moving) check() {
	serving := 0
	for _, p := range m.locations {
		k, was := m.look(p), m.last[p.name]
		require.LessOrEqual(m.rt, was.seen.Compare(k.seen), 0, "the highest epoch fell at %s", p.name)
		if was.account != nil {
			require.LessOrEqual(m.rt, was.account.GeoEpoch().Compare(k.account.GeoEpoch()), 0, "the epoch of the record fell at %s", p.name)
		}
		m.last[p.name] = k
		if k.account.Primary == p.name && !k.account.Offered() {
			serving++
		}
		if k.account.Primary == p.name {
			m.count(k.account)
		}
	}
	require.LessOrEqual(m.rt, serving, 1, "both locations serve the primary's name")
	for _, svc := range every {
		open := 0
		for _, p := range m.locations {
			g := p.stamp.Leader(geo.FirstRange(svc)).Machine.Gate(m.name.name)
			if g.Role == change.RolePrimary && g.Open {
				open++
				m.requireAcked(p, svc)
			}
		}
		require.LessOrEqual(m.rt, open, 1, "both locations take writes in the %s range", svc)
	}
}

// count counts moves as they end.
func (m *moving) count(a *catalog.Account) {
	if m.epoch != a.GeoEpoch() {
		m.moved, m.epoch, m.phase = m.moved+1, a.GeoEpoch(), ""
	}
	phase := catalog.MovePhase("")
	if a.Moves() {
		phase = a.Operation.Move.Phase
	}
	if m.phase == catalog.MoveEnding && phase != m.phase {
		m.ended++
	}
	m.phase = phase
}

// requireAcked checks that a location has every row that was acknowledged.
func (m *moving) requireAcked(p *place, svc geo.Service) {
	require.NoError(m.rt, persist(func() error {
		return p.stamp.Read(context.Background(), geo.FirstRange(svc), func(s ranges.State) error {
			for _, row := range m.acked[svc] {
				v, ok, err := s.Get(m.partition(svc, row).Append(nil))
				if err != nil {
					return err
				}
				require.True(m.rt, ok && string(v) == row, "%s, which was acknowledged, is not at %s", row, p.name)
			}
			return nil
		})
	}))
}

// rest has operations go on until nothing is under way.
func (m *moving) rest() {
	at := func(p *place) *catalog.Account { return m.look(p).account }
	busy := func(p *place) bool { return at(p).Operation != nil }
	for n := 0; slices.ContainsFunc(m.locations, busy) || at(m.locations[0]).GeoEpoch() != at(m.locations[1]).GeoEpoch(); n++ {
		require.Less(m.rt, n, 100, "%+v and %+v", at(m.locations[0]), at(m.locations[1]))
		for _, p := range m.locations {
			_, _ = p.directory.Resume(context.Background()) // Not all steps are possible before the next records arrive.
			m.ship()
			m.check()
		}
	}
	m.ship()
	require.Equal(m.rt, at(m.locations[0]), at(m.locations[1]))
	for _, svc := range []geo.Service{geo.Blob, geo.Table} {
		for _, p := range m.locations {
			m.requireAcked(p, svc)
		}
	}
	a := at(m.locations[0])
	for _, p := range m.locations {
		for _, svc := range every {
			want := change.Gate{Epoch: a.GeoEpoch(), Role: change.RoleSecondary, Open: true}
			g := p.stamp.Leader(geo.FirstRange(svc)).Machine.Gate(a.Name)
			if a.Primary == p.name {
				want.Role, want.Numbered, want.Turn = change.RolePrimary, true, g.Turn
				require.Zero(m.rt, g.Turn%2)
			}
			require.Equal(m.rt, want, g, "%s at %s", svc, p.name)
		}
	}
}

// R16, R19: a range that was recovered to before its location became the secondary of an account has lost rows that the new
// primary has, and no cursor of the epoch shows it. Its streams are stopped as lost, which `-secondary` says, until the copy
// is made again.
func TestR19LostMoveStopsTheCopy(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	first := b.shipped(t, "acct1")
	moved := *first
	moved.Primary, moved.Secondary, moved.Epoch, moved.LastFailover = "south", "north", first.Epoch+1, first.Created+2
	moved.Operation = &catalog.Operation{Kind: catalog.OperationTaken, After: moved.LastFailover}
	for _, s := range every { // The south has everything.
		m := b.stamps["north"].Leader(geo.FirstRange(s)).Machine
		heads, _ := m.Heads()
		for st, head := range heads {
			stamptest.Submit(t, b.stamps["north"], st.Range, does(func(tx *ranges.Tx) error { return tx.Trim(st, head.Seq) }))
		}
	}
	require.NoError(t, b.north.Adopt(t.Context(), rejoin.Taken{Account: moved}))
	machine := b.stamps["north"].Leader(table).Machine
	require.Empty(t, machine.Stops())
	b.compare(t, b.north, "north")
	require.Empty(t, machine.Stops(), "nothing was lost")
	b.setBack(t, "north", "acct1", change.Gate{Epoch: first.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true})
	b.compare(t, b.north, "north")
	require.Equal(t, change.Gate{Epoch: moved.GeoEpoch(), Role: change.RoleSecondary, Open: true}, machine.Gate("acct1"))
	require.Len(t, machine.Stops(), geo.LaneCount)
	for st, why := range machine.Stops() {
		require.Equal(t, moved.GeoEpoch(), st.Epoch)
		require.Equal(t, change.StopLost, why.Reason)
	}
}
