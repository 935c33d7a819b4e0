package directory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/directory"
	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// R17, R19: whatever redundancy an account of the north gets and however often its copy is made again, with calls
// that are lost, late, repeated and left half way, clients that write and streams that flow in between: a copy that
// counts as complete has the rows of the primary once the streams have arrived, and no other.
//
// Capability: Two locations: The copy of an account is made while clients write, from LRS, and again (R17).
func TestR17BootstrapInterleaved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.locations[0].directory.NeverWait()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		n := &copying{name: &name{world: w, underWay: &underWay{}, rt: rt, name: geo.Account(fmt.Sprint("copy", runs)), last: map[geo.Location]known{}}}
		as := rapid.SampledFrom([]catalog.Redundancy{catalog.LRS, catalog.RAGRS}).Draw(rt, "redundancy")
		require.NoError(rt, persist(func() error {
			_, err := n.locations[0].directory.CreateAs(context.Background(), directory.Wanted{Name: n.name.name, Redundancy: as})
			return err
		}))
		for range rapid.IntRange(10, 80).Draw(rt, "steps") {
			n.step()
			n.check()
		}
		n.rest()
	})
}

// images is an Images whose next outcomes are given.
type images struct {
	steps int
	next  func(s geo.Service, step int) ranges.ImageStep
	// counted are the totals that the images began with, and begun their order.
	counted map[geo.Service]change.ImageSize
	begun   []geo.Service
	// closed are the containers of which a generation was closed.
	closed []string
	refuse error
	// rewind, if it is set, is Rewind.
	rewind func(s geo.Service, rows [][]byte, bytesMax uint64) (int, uint64, error)
	// stepErr is the error of each step.
	stepErr error
	// bytesMax bounds the last step.
	bytesMax uint64
	// rows are how many rows there are to count, a step for each, and a last one; steps are those that were made.
	rows       map[geo.Service]int
	countSteps int
}

func (i *images) CountRows(_ context.Context, d route.Range, _ geo.Account, from []byte) (size change.ImageSize, next []byte, err error) {
	i.countSteps++
	if len(from) == i.rows[d.Service] {
		return size, nil, nil
	}
	return change.ImageSize{Rows: 1, Bytes: 2, Payload: 3}, append(from[:len(from):len(from)], 'r'), nil
}

func (i *images) BeginImage(_ context.Context, d route.Range, _ geo.Account, _ geo.Epoch, counted change.ImageSize) error {
	if i.refuse != nil {
		return i.refuse
	}
	if i.counted == nil {
		i.counted = map[geo.Service]change.ImageSize{}
	}
	i.counted[d.Service] = counted
	i.begun = append(i.begun, d.Service)
	return nil
}

func (i *images) CloseGeneration(_ context.Context, _ geo.Service, _ geo.Account, container string, _ keys.Generation) error {
	i.closed = append(i.closed, container)
	return nil
}

func (i *images) Rewind(_ context.Context, d route.Range, _ geo.Account, _ geo.Epoch, rows [][]byte, bytesMax uint64) (int, uint64, error) {
	if i.rewind != nil {
		return i.rewind(d.Service, rows, bytesMax)
	}
	return len(rows), 0, i.refuse
}

func (i *images) StepImage(_ context.Context, d route.Range, _ geo.Account, _ geo.Epoch, bytesMax uint64) (ranges.ImageStep, error) {
	i.steps++
	i.bytesMax = bytesMax
	if i.stepErr != nil {
		return ranges.ImageStep{}, i.stepErr
	}
	return i.next(d.Service, i.steps), nil
}

// R17: a bootstrap ends when the other location has applied the images of all ranges, and not before. It takes turns
// with others, and waits while the other location is behind.
//
// Capability: Two locations: The copy of an account is made while clients write, from LRS, and again (R17).
func TestR17BootstrapEndsWhenAllIsApplied(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.north.NeverWait()
	_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: catalog.LRS})
	require.NoError(t, err)
	whole := change.Image{Done: make([]geo.Seq, geo.LaneCount)}
	fake := &images{next: func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{} }}
	b.north.SetImages(fake)
	_, behind := update(t, b.north, "acct", catalog.GRS)
	require.ErrorContains(t, behind, "(bootstrap)")
	require.Equal(t, 256, fake.steps, "a turn")
	resume := func(next func(s geo.Service, step int) ranges.ImageStep) time.Duration {
		fake.steps, fake.next = 0, next
		again, err := b.north.Resume(t.Context())
		require.NoError(t, err)
		return again
	}
	require.Equal(t, 10*time.Millisecond, resume(fake.next))
	require.Equal(t, 100*time.Millisecond, resume(func(_ geo.Service, step int) ranges.ImageStep { return ranges.ImageStep{Held: step == 9} }))
	require.Equal(t, 9, fake.steps)
	require.Equal(t, 10*time.Millisecond, resume(func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Image: whole} }), "all are complete")
	for _, behind := range every {
		require.Equal(t, 100*time.Millisecond, resume(func(s geo.Service, _ int) ranges.ImageStep {
			return ranges.ImageStep{Image: whole, Applied: s != behind}
		}), "%s", behind)
		require.Equal(t, 4, fake.steps)
	}
	a, err := b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.True(t, a.Copying())
	begun := a.Operation.After
	require.Zero(t, resume(func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Image: whole, Applied: true} }))
	a, err = b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Nil(t, a.Operation)
	require.GreaterOrEqual(t, a.Copied.Time().Sub(begun.Time()), 2*geo.ClockOffMax, "above what any range has committed of it (R4)")
}

// copying is one run with an account of the north.
type copying struct {
	*name
	writes int
	// complete counts the copies that were found complete.
	complete int
}

func (n *copying) step() {
	north := n.locations[0]
	switch begin := n.draw("begin", 12); {
	case begin == 0 && len(n.callers) < 4:
		to := rapid.SampledFrom([]catalog.Redundancy{catalog.LRS, catalog.GRS, catalog.RAGRS}).Draw(n.rt, "to")
		n.start("update to "+string(to), func(ctx context.Context) { _, _, _ = north.directory.Update(ctx, n.name.name, to, nil) })
	case begin == 1 && len(n.callers) < 4:
		n.start("rebuild", func(ctx context.Context) { _, _, _ = north.directory.Rebuild(ctx, n.name.name, nil) })
	case begin == 2 && len(n.late) > 0:
		call := n.late[n.draw("late", len(n.late))]
		n.start("late call", func(ctx context.Context) { _ = call(ctx) })
	case begin <= 4 && len(n.callers) < 4:
		n.start("resume", func(ctx context.Context) { _, _ = north.directory.Resume(ctx) })
	case begin <= 6:
		n.write()
	case begin == 7:
		n.flow()
	case len(n.callers) > 0:
		c := n.callers[n.draw("caller", len(n.callers))]
		do := run
		if n.draw("fault", 5) == 0 {
			do = action(n.draw("action", int(actions)))
		}
		n.resume(c, do)
	}
}

// write sets or deletes a row of a table at the primary.
func (n *copying) write() {
	n.writes++
	p := keys.Partition{Service: geo.Table, Account: n.name.name, Container: "t", Object: fmt.Sprint("p", n.draw("partition", 3))}
	op := change.Op{Row: []byte{byte('a' + n.draw("row", 4))}, Value: []byte(fmt.Sprint(n.writes))}
	op.Delete = n.draw("delete", 3) == 0
	rec := change.Record{Partition: p.Append(nil), Ops: []change.Op{op}}
	n.submit(n.locations[0], geo.Table, does(func(tx *ranges.Tx) error {
		rec.CommitTime = tx.Timestamp(0)
		return tx.Change(p, rec)
	}))
}

// does is a command made of one function.
type does func(tx *ranges.Tx) error

func (c does) Evaluate(tx *ranges.Tx) error { return c(tx) }

func (n *copying) submit(p *place, s geo.Service, cmd ranges.Command) {
	require.NoError(n.rt, persist(func() error { return p.stamp.Submit(context.Background(), geo.FirstRange(s), cmd) }))
}

// flow has the streams of the account arrive at the south as far as its gates take them, and be acknowledged.
func (n *copying) flow() {
	north, south := n.locations[0], n.locations[1]
	for _, s := range every {
		m := north.stamp.Leader(geo.FirstRange(s)).Machine
		heads, _ := m.Heads()
		for st := range heads {
			if st.Account != n.name.name || st.Epoch.Location != "north" {
				continue
			}
			records, err := m.Outbox(st, m.Trimmed(st)+1, 1<<20)
			require.NoError(n.rt, err)
			if len(records) == 0 {
				continue
			}
			var applied geo.Seq
			n.submit(south, s, does(func(tx *ranges.Tx) error {
				applied = 0
				if gate := tx.Gate(st.Account); gate.Epoch != st.Epoch || !gate.Open {
					return nil // It waits, or is refused.
				}
				for _, b := range records {
					rec, err := change.ParseRecord(b)
					if err != nil || rec.Seq <= tx.Cursor(st).Applied.Seq {
						continue
					}
					if err := tx.Received(b, &rec, true); err != nil {
						return err
					}
				}
				applied = tx.Cursor(st).Applied.Seq
				return nil
			}))
			n.submit(north, s, does(func(tx *ranges.Tx) error { return tx.Trim(st, applied) }))
		}
	}
}

// rows are the rows of the account's table at a location.
func (n *copying) rows(p *place) map[string]string {
	out := map[string]string{}
	snap := p.stamp.Leader(geo.FirstRange(geo.Table)).State().Snapshot()
	require.NoError(n.rt, keys.Each(snap, keys.AppendAccount(nil, geo.Table, n.name.name), func(k, v []byte) error {
		out[string(k)] = string(v)
		return nil
	}))
	require.NoError(n.rt, snap.Close())
	return out
}

// checkHeads: the primary knows every stream of which the secondary has a cursor (R16), and no other of a former epoch
// once no operation is under way (R13).
func (n *copying) checkHeads() {
	a := n.look(n.locations[0]).account
	for _, s := range every {
		id := geo.FirstRange(s)
		heads, _ := n.locations[0].stamp.Leader(id).Machine.Heads()
		src := geo.SourceRange{Origin: "north", Range: id}
		for st, at := range n.locations[1].stamp.Leader(id).Machine.Progress(src, n.name.name).Cursors() {
			require.GreaterOrEqual(n.rt, heads[st].Seq, at.Seq, "%s", st)
		}
		for st := range heads {
			if st.Account == n.name.name && a.Operation == nil {
				require.Equal(n.rt, a.GeoEpoch(), st.Epoch, "%s", st)
			}
		}
	}
}

// check: a copy that its location takes for complete is equal to the primary's rows but for what is in the
// outbox.
func (n *copying) check() {
	n.checkHeads()
	north, south := n.look(n.locations[0]), n.look(n.locations[1])
	if north.account == nil || south.account == nil || south.account.Operation != nil || north.account.Operation != nil ||
		!south.account.Redundancy.Geo() || south.account.GeoEpoch() != north.account.GeoEpoch() {
		return
	}
	n.complete++
	want, have := n.rows(n.locations[0]), n.rows(n.locations[1])
	m := n.locations[0].stamp.Leader(geo.FirstRange(geo.Table)).Machine
	for lane := range geo.Lane(geo.LaneCount) {
		st := geo.Stream{Account: n.name.name, Epoch: north.account.GeoEpoch(), Range: geo.FirstRange(geo.Table), Lane: lane}
		records, err := m.Outbox(st, m.Trimmed(st)+1, 1<<20)
		require.NoError(n.rt, err)
		for _, b := range records {
			rec, err := change.ParseRecord(b)
			require.NoError(n.rt, err)
			for _, op := range rec.Ops {
				delete(want, string(rec.Partition)+string(op.Row))
				delete(have, string(rec.Partition)+string(op.Row))
			}
		}
	}
	require.Equal(n.rt, want, have, "epoch %s", north.account.GeoEpoch())
}

// rest lets all calls end, and the account have a copy.
func (n *copying) rest() {
	for len(n.callers) > 0 {
		n.resume(n.callers[0], run)
		n.check()
	}
	north := n.locations[0].directory
	n.resumeAll()
	if a := n.look(n.locations[0]).account; !a.Redundancy.Geo() {
		require.NoError(n.rt, persist(func() error {
			_, _, err := north.Update(context.Background(), n.name.name, catalog.GRS, nil)
			return err
		}))
	}
	n.write()
	before := n.complete
	n.resumeAll()
	a, b := n.look(n.locations[0]).account, n.look(n.locations[1]).account
	require.Nil(n.rt, a.Operation, "%+v", a.Operation)
	require.Equal(n.rt, a.GeoEpoch(), b.GeoEpoch())
	require.Greater(n.rt, n.complete, before, "the copy is complete")
	require.Equal(n.rt, n.rows(n.locations[0]), n.rows(n.locations[1]))
}

// resumeAll goes on with the operation of the account while streams flow, until it has none and all has arrived.
func (n *copying) resumeAll() {
	for range 20 {
		n.flow()
		n.check()
		if n.look(n.locations[0]).account.Operation == nil {
			return
		}
		_, err := n.locations[0].directory.Resume(context.Background())
		require.True(n.rt, err == nil || record.Passing(err), "%v", err)
	}
}

// R17, R18: a copy that is made again before it was complete is a part of one: nobody may read it until the other
// location deletes it, however often it begins again. One that was complete may be read until then.
func TestR17PartOfACopyIsNotReadable(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	b.north.NeverWait()
	for name, as := range map[geo.Account]catalog.Redundancy{"part": catalog.LRS, "whole": catalog.RAGRS} {
		_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: name, Redundancy: as})
		require.NoError(t, err)
	}
	b.north.SetImages(&images{next: func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Held: true} }})
	a, _ := update(t, b.north, "part", catalog.RAGRS)
	require.True(t, a.Copying())
	require.True(t, a.Partial())
	b.cut = true
	for range 2 {
		for name, partial := range map[geo.Account]bool{"part": true, "whole": false} {
			a, behind, err := b.north.Rebuild(t.Context(), name, nil)
			require.NoError(t, err)
			require.Error(t, behind)
			require.False(t, a.Copying())
			require.Equal(t, partial, a.Partial(), "%s in epoch %s", name, a.GeoEpoch())
		}
	}
	a, _ = update(t, b.north, "part", catalog.LRS)
	require.False(t, a.Partial())
}
