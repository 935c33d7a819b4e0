package ranges

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/kv"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// staging is a command that stages a part.
type staging struct {
	kind change.PartKind
	asks bool // whether it may, first
}

func (c staging) Evaluate(tx *Tx) error {
	if !c.asks || tx.Allows(c.kind.Level()) {
		tx.b.Raw(c.kind, nil)
	}
	return nil
}

// A part of a kind that needs a level is not proposed before that is active: a command that does not ask is refused, and
// changes nothing. Every kind that is written today needs no more than feature.Base.
//
// Capability: Two locations: Feature levels.
func TestLevelGatesKinds(t *testing.T) {
	gate := feature.NewGate(feature.Known + 1)
	tx := &Tx{r: &Range{o: Options{Levels: gate}}, g: &group{}}
	begin := func() { tx.begin(&waiter{}) }
	begin()
	require.ErrorIs(t, tx.run(staging{kind: change.PartSplit}), ErrLevel)
	require.ErrorIs(t, ErrLevel, kv.ErrBusy, "a client may try again")
	tx.undo()
	require.Zero(t, tx.b.Count())
	require.Zero(t, tx.b.Needs())
	begin()
	require.NoError(t, tx.run(staging{kind: change.PartSplit, asks: true}))
	require.True(t, tx.unchanged())

	gate.Raise(feature.Known+1, feature.Known)
	require.ErrorIs(t, tx.run(staging{kind: change.PartSplit}), ErrLevel, "the floor alone lets nobody write")
	tx.undo()
	gate.Raise(feature.Known+1, feature.Known+1)
	require.NoError(t, tx.run(staging{kind: change.PartSplit, asks: true}))
	require.False(t, tx.unchanged())

	for kind := change.PartChange; kind <= change.PartLevels; kind++ {
		if kind != change.PartFreeze && kind != change.PartWaiting && kind != change.PartSplit {
			require.Equal(t, feature.Base, kind.Level(), "kind %d", kind)
		}
	}
}

// The levels of the catalog are durable in its state, they only rise, and a program that does not know the floor loads no
// such state and applies no such entry.
//
// Capability: Two locations: Feature levels.
func TestLevelsAreKept(t *testing.T) {
	const catalog = geo.RangeID(1)
	require.Equal(t, geo.Catalog, Service(catalog))
	store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	open := func(known feature.Level) (*Range, error) {
		return New(Options{Range: catalog, State: store, Nodes: []geo.NodeID{1}, Levels: feature.NewGate(known)})
	}
	entry := func(number uint64, l change.Levels) *pb.Entry {
		var b change.Builder
		b.Levels(l)
		pred := change.GroupID{}
		if number > 1 {
			pred = change.GroupID{Term: 1, Number: number - 1}
		}
		return &pb.Entry{Index: proto.Uint64(number), Term: proto.Uint64(1), Data: b.Finish(change.GroupID{Term: 1, Number: number}, pred, 0)}
	}
	r, err := open(7)
	require.NoError(t, err)
	require.Equal(t, feature.Base, r.o.Levels.Floor())
	require.NoError(t, r.Machine.Apply([]*pb.Entry{entry(1, change.Levels{Floor: 3, Active: 2})}))
	require.EqualValues(t, 3, r.o.Levels.Floor())
	require.EqualValues(t, 2, r.o.Levels.Active())

	tx := &Tx{r: r, g: &group{}}
	require.NoError(t, tx.RaiseLevels(change.Levels{Floor: 2, Active: 1}))
	require.Zero(t, tx.b.Count(), "nothing rises")
	require.ErrorIs(t, tx.RaiseLevels(change.Levels{Floor: 8, Active: 2}), feature.ErrFloor)
	require.NoError(t, tx.RaiseLevels(change.Levels{Floor: 2, Active: 3}))
	require.Equal(t, 1, tx.b.Count())

	r, err = open(3)
	require.NoError(t, err)
	require.EqualValues(t, 3, r.o.Levels.Floor())
	require.EqualValues(t, 2, r.o.Levels.Active())
	err = r.Machine.Apply([]*pb.Entry{entry(2, change.Levels{Floor: 4, Active: 2})})
	require.ErrorIs(t, err, replica.ErrLater)
	require.ErrorIs(t, err, feature.ErrFloor)

	_, err = open(2)
	require.ErrorIs(t, err, feature.ErrFloor)
	require.False(t, state.Damaged(err))
	for _, bad := range []change.Levels{{Floor: 2, Active: 3}, {Floor: 2}} {
		_, err := change.ParseLevels(change.AppendLevels(nil, bad))
		require.ErrorIs(t, err, change.ErrMalformed)
	}
}
