package ranges

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/state"
)

// chained makes groups whose records follow each other in a stream, or not.
type chained struct {
	t *testing.T
	b change.Builder
}

// record encodes record n of a stream behind prev. Its row is named for the kind and n.
func (c *chained) record(s geo.Stream, n geo.Seq, prev geo.Hash, kind string) (*change.Record, []byte) {
	r := &change.Record{
		Service: geo.Table, Account: s.Account, Epoch: s.Epoch, Range: s.Range, Lane: s.Lane, Seq: n, Prev: prev,
		CommitTime: 100 + geo.Timestamp(n), Partition: []byte("p"), Ops: []change.Op{{Row: fmt.Append(nil, kind, n), Value: []byte("v")}},
	}
	var b change.Builder
	encoded, err := b.Record(r)
	require.NoError(c.t, err)
	return r, encoded
}

// own, received, moved and base stage a record of the kind, and return its head.
func (c *chained) own(s geo.Stream, n geo.Seq, prev geo.Hash) geo.Head {
	r, encoded := c.record(s, n, prev, "own")
	_, err := c.b.Record(r)
	require.NoError(c.t, err)
	return geo.Head{Seq: n, Hash: change.HashOf(encoded)}
}

func (c *chained) received(s geo.Stream, n geo.Seq, prev geo.Hash, whole bool) geo.Head {
	r, encoded := c.record(s, n, prev, "received")
	c.b.Received(encoded, r, whole)
	return geo.Head{Seq: n, Hash: change.HashOf(encoded)}
}

func (c *chained) base(s geo.Stream, n geo.Seq, prev geo.Hash) geo.Head {
	_, encoded := c.record(s, n, prev, "base")
	c.b.Base(encoded)
	return geo.Head{Seq: n, Hash: change.HashOf(encoded)}
}

// R1, R11: a group in which one record, numbered here or received, does not follow the one before it in its stream has no
// effect at all, on any replica: the record before it is the one that is applied, or one of the same group, or the base
// that the group sets the cursor to. Commit times of what took effect are below all later ones (R6).
func TestR1GroupWhoseRecordsDoNotFollow(t *testing.T) {
	const id = geo.RangeID(4)
	here := geo.Stream{Account: "here", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: id, Lane: 3}
	there := geo.Stream{Account: "there", Epoch: geo.Epoch{Number: 1, Location: "south"}, Range: id, Lane: 3}
	for name, c := range map[string]struct {
		// stage stages a group on top of one with two records of each stream, whose last are head and cursor.
		stage func(c *chained, head, cursor geo.Head)
		// at are the numbers afterwards; zero: the group has no effect.
		at, received geo.Seq
	}{
		"the next one":          {func(c *chained, head, _ geo.Head) { c.own(here, 3, head.Hash) }, 3, 2},
		"a number is missing":   {func(c *chained, head, _ geo.Head) { c.own(here, 4, head.Hash) }, 0, 0},
		"a number again":        {func(c *chained, head, _ geo.Head) { c.own(here, 2, head.Hash) }, 0, 0},
		"of another chain":      {func(c *chained, head, _ geo.Head) { c.own(here, 3, head.Hash+1) }, 0, 0},
		"two":                   {func(c *chained, head, _ geo.Head) { c.own(here, 4, c.own(here, 3, head.Hash).Hash) }, 4, 2},
		"the second is not":     {func(c *chained, head, _ geo.Head) { c.own(here, 4, c.own(here, 3, head.Hash).Hash+1) }, 0, 0},
		"the second alone is":   {func(c *chained, head, _ geo.Head) { c.own(here, 5, c.own(here, 4, head.Hash).Hash) }, 0, 0},
		"the next received":     {func(c *chained, _, at geo.Head) { c.received(there, 3, at.Hash, true) }, 2, 3},
		"the next one's cursor": {func(c *chained, _, at geo.Head) { c.received(there, 3, at.Hash, false) }, 2, 3},
		"a received is missing": {func(c *chained, _, at geo.Head) { c.received(there, 4, at.Hash, true) }, 0, 0},
		"a cursor leaps":        {func(c *chained, _, at geo.Head) { c.received(there, 4, at.Hash, false) }, 0, 0},
		"received of a fork":    {func(c *chained, _, at geo.Head) { c.received(there, 3, at.Hash+1, true) }, 0, 0},
		"two received":          {func(c *chained, _, at geo.Head) { c.received(there, 4, c.received(there, 3, at.Hash, true).Hash, true) }, 2, 4},
		"a base":                {func(c *chained, _, _ geo.Head) { c.base(there, 9, 77) }, 2, 9},
		"the next after a base": {func(c *chained, _, _ geo.Head) { c.received(there, 10, c.base(there, 9, 77).Hash, true) }, 2, 10},
		"a base was set before": {func(c *chained, _, at geo.Head) { c.base(there, 9, 77); c.received(there, 3, at.Hash, true) }, 0, 0},
		"one of each is not": {func(c *chained, head, at geo.Head) {
			c.own(here, 4, head.Hash)
			c.received(there, 3, at.Hash, true)
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
			require.NoError(t, err)
			defer func() { require.NoError(t, store.Close()) }()
			var out Applied
			m, err := OpenMachine(id, store, func(a Applied) { out = a }, 1)
			require.NoError(t, err)
			apply := func(index uint64, b *change.Builder) {
				pred := m.AppliedState().Group
				data := b.Finish(change.GroupID{Term: 1, Number: index}, pred, 0)
				require.NoError(t, m.Apply([]*pb.Entry{{Index: proto.Uint64(index), Term: proto.Uint64(1), Data: data}}))
			}
			first := &chained{t: t}
			head := first.own(here, 2, first.own(here, 1, 0).Hash)
			at := first.received(there, 2, first.received(there, 1, 0, true).Hash, true)
			apply(1, &first.b)
			require.Len(t, out.Records, 2)
			require.Equal(t, head, m.Head(here))
			require.Equal(t, at, m.Cursor(there).Applied)
			before := m.AppliedState()
			require.EqualValues(t, 102, before.Last)

			g := &chained{t: t}
			_, err = g.b.Record(&change.Record{
				Service: geo.Table, Account: "alone", CommitTime: 90, Partition: []byte("q"), Ops: []change.Op{{Value: []byte("v")}},
			})
			require.NoError(t, err)
			c.stage(g, head, at)
			apply(2, &g.b)
			after := m.AppliedState()
			require.EqualValues(t, 2, after.Index)
			_, written, err := store.Get([]byte("q"))
			require.NoError(t, err)
			effective := c.at != 0
			require.Equal(t, effective, written, "the whole of it, or nothing")
			require.Equal(t, effective, out.Effective)
			if !effective {
				require.Equal(t, before.Group, after.Group)
				require.Equal(t, before.Last, after.Last)
				require.Equal(t, head, m.Head(here))
				require.Equal(t, at, m.Cursor(there).Applied)
				require.Empty(t, out.Records)
				return
			}
			require.Equal(t, c.at, m.Head(here).Seq)
			require.Len(t, out.Records, int(c.at-2))
			require.Equal(t, c.received, m.Cursor(there).Applied.Seq)
			require.EqualValues(t, 100+max(c.at, c.received), after.Last)
			_, written, err = store.Get([]byte("preceived3"))
			require.NoError(t, err)
			require.Equal(t, name == "the next received" || name == "two received", written, "a cursor alone sets no row (R14)")
		})
	}
}

// R1: a group takes effect only in the term in which it was evaluated, and on top of the group that was the last one then,
// also where no record of it has a number.
func TestR1GroupOfAnotherTermOrPredecessor(t *testing.T) {
	last := change.GroupID{Term: 2, Number: 1}
	for name, c := range map[string]struct {
		id, pred  change.GroupID
		term      uint64
		effective bool
	}{
		"the next one":                 {change.GroupID{Term: 2, Number: 2}, last, 2, true},
		"the first of a new term":      {change.GroupID{Term: 3, Number: 1}, last, 3, true},
		"evaluated before its term":    {change.GroupID{Term: 2, Number: 2}, last, 3, false},
		"evaluated after its term":     {change.GroupID{Term: 3, Number: 1}, last, 2, false},
		"behind one that is not there": {change.GroupID{Term: 2, Number: 3}, change.GroupID{Term: 2, Number: 2}, 2, false},
		"behind the one before":        {change.GroupID{Term: 2, Number: 2}, change.GroupID{}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
			require.NoError(t, err)
			defer func() { require.NoError(t, store.Close()) }()
			var out Applied
			m, err := OpenMachine(4, store, func(a Applied) { out = a }, 1)
			require.NoError(t, err)
			apply := func(index, term uint64, id, pred change.GroupID) {
				var b change.Builder
				_, err := b.Record(&change.Record{
					Service: geo.Table, Account: "alone", CommitTime: 90, Partition: fmt.Append(nil, "q", index), Ops: []change.Op{{Value: []byte("v")}},
				})
				require.NoError(t, err)
				data := b.Finish(id, pred, 0)
				require.NoError(t, m.Apply([]*pb.Entry{{Index: proto.Uint64(index), Term: proto.Uint64(term), Data: data}}))
			}
			apply(1, 2, last, change.GroupID{})
			require.True(t, out.Effective)
			apply(2, c.term, c.id, c.pred)
			require.Equal(t, c.effective, out.Effective)
			_, written, err := store.Get([]byte("q2"))
			require.NoError(t, err)
			require.Equal(t, c.effective, written)
			want := last
			if c.effective {
				want = c.id
			}
			require.Equal(t, want, m.AppliedState().Group)
			require.EqualValues(t, 2, m.AppliedState().Index)
		})
	}
}
