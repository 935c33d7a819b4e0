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
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/state"
)

// What has changed since a version of the data is known of the newest changes of the catalog, of one history, and not after a
// wipe: else who follows it would miss a change (R5).
//
// Capability: The primary location: Reads at any node (R5).
// Capability: Failover: A failover of a whole location.
func TestR5RecentChanges(t *testing.T) {
	store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	m, err := OpenMachine(4, store, func(Applied) {}, 1)
	require.NoError(t, err)
	s := State{&Range{Machine: m, o: Options{State: store}}}
	last, index := change.GroupID{}, uint64(0)
	apply := func(build func(*change.Builder)) kv.Version {
		t.Helper()
		index++
		var b change.Builder
		build(&b)
		id := change.GroupID{Term: 1, Number: index}
		data := b.Finish(id, last, 0)
		last = id
		require.NoError(t, m.Apply([]*pb.Entry{{Index: proto.Uint64(index), Term: proto.Uint64(1), Data: data}}))
		return s.Version()
	}
	of := func(service geo.Service, name string) keys.Partition {
		return keys.Partition{Service: service, Account: geo.Account(name), Object: "account"}
	}
	write := func(service geo.Service, names ...string) kv.Version {
		return apply(func(b *change.Builder) {
			for _, name := range names {
				_, err := b.Record(&change.Record{
					Account: geo.Account(name), CommitTime: 7, Partition: of(service, name).Append(nil), Ops: []change.Op{{Value: []byte("v")}},
				})
				require.NoError(t, err)
			}
		})
	}
	changed := func(since kv.Version, known bool, want ...string) {
		t.Helper()
		now, got, ok := s.Changed(since)
		require.Equal(t, s.Version(), now)
		require.Equal(t, known, ok)
		var names []string
		for _, p := range got {
			at, _, err := keys.ParsePartition([]byte(p))
			require.NoError(t, err)
			names = append(names, string(at.Account))
		}
		require.ElementsMatch(t, want, names)
	}
	changed(0, false)
	begun := s.Version()
	m.version.Store(0) // An entry is being committed.
	changed(0, false)
	m.version.Store(uint64(begun))
	changed(begun, true)
	first := write(geo.Catalog, "aaa", "bbb")
	second := write(geo.Catalog, "ccc")
	write(geo.Table, "ddd")
	changed(begun, true, "aaa", "bbb", "ccc")
	changed(first, true, "ccc")
	changed(second, true)

	// More than are remembered: those of half of that are forgotten, and what was before is not known.
	for i := range 2 {
		names := make([]string, recentMax/2)
		for n := range names {
			names[n] = fmt.Sprintf("x%d%05d", i, n)
		}
		write(geo.Catalog, names...)
	}
	require.LessOrEqual(t, len(m.recent.list), recentMax)
	changed(begun, false)
	changed(first, false)
	at := write(geo.Catalog, "eee")
	changed(at-1, true, "eee")

	wiped := apply(func(b *change.Builder) {
		lower := keys.AppendAccount(nil, geo.Catalog, "aaa")
		b.Wipe(lower, keys.PrefixEnd(lower))
	})
	changed(at, false)
	changed(wiped, true)
	after := write(geo.Catalog, "fff")
	changed(wiped, true, "fff")

	require.NoError(t, m.Replace(func() error { return nil }))
	changed(after, false)
	at = s.Version()
	changed(at, true)
	changed(at+1<<historyShift, false) // Of a machine that was opened later: a reader may have come from there.
	last = m.AppliedState().Group
	require.NotEqual(t, at, write(geo.Catalog, "ggg"))
	changed(at, true, "ggg")
	m.version.Store(0)
	changed(at, false)
	changed(0, false)
}
