package ranges

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// A range sends closed records exactly while one of its gates is numbered and primary, and expects some
// while one is open and secondary (R12): the counts that are kept beside the gates agree with a walk over all
// of them, after every change of a gate, after a replacement of the state and after a restart (property).
func TestR12Numbered(t *testing.T) {
	store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	open := func() *Machine {
		m, err := OpenMachine(4, store, func(Applied) {}, 1)
		require.NoError(t, err)
		return m
	}
	m, rng := open(), rand.New(rand.NewPCG(1, 2))
	check := func() {
		sends, expects := false, false
		for _, g := range m.Gates() {
			sends = sends || g.Numbered && g.Role == change.RolePrimary
			expects = expects || g.Open && g.Role == change.RoleSecondary
		}
		require.Equal(t, sends, m.Numbered())
		require.Equal(t, expects, m.Receiving())
	}
	var seen [2]int
	for i := range 300 {
		var b change.Builder
		b.Gate(geo.Account(rune('a'+rng.IntN(3))), change.Gate{
			Epoch: geo.Epoch{Number: geo.EpochNumber(i + 1), Location: "north"}, Role: change.Role(rng.IntN(3)), Numbered: rng.IntN(3) == 0, Open: rng.IntN(3) == 0,
		})
		id := change.GroupID{Term: 1, Number: uint64(i) + 1}
		pred := change.GroupID{Term: 1, Number: uint64(i)}
		if i == 0 {
			pred = change.GroupID{}
		}
		data := b.Finish(id, pred, 0)
		require.NoError(t, m.Apply([]*pb.Entry{{Index: proto.Uint64(uint64(i) + 1), Term: proto.Uint64(1), Data: data}}))
		check()
		if m.Numbered() {
			seen[1]++
		} else {
			seen[0]++
		}
		switch rng.IntN(10) {
		case 0:
			m = open()
		case 1:
			g := change.Gate{Role: change.RolePrimary, Numbered: rng.IntN(2) == 0}
			require.NoError(t, m.Replace(func() error {
				b := store.NewBatch()
				for _, a := range []geo.Account{"a", "b", "c"} {
					require.NoError(t, b.Set(keys.Gate(4, a), change.AppendGate(nil, g)))
				}
				return errors.Join(store.Commit(b), b.Close())
			}))
		}
		check()
	}
	require.Positive(t, seen[0])
	require.Positive(t, seen[1])
}
