package ranges

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/keys"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// R4: an entry of a later version stops the node, which an upgrade mends. One of a version that never was, whose
// checksum is right, is damaged like any other that cannot be decoded: no upgrade mends it, so that it costs the
// replica and not its node, with all other ranges.
//
// Capability: Two locations: A folder names its node, stamp and use, and is refused to another one (R4).
func TestR4EntryOfNoVersion(t *testing.T) {
	for version, later := range map[byte]bool{0: false, 2: true} {
		store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
		require.NoError(t, err)
		m, err := OpenMachine(4, store, func(Applied) {}, 1)
		require.NoError(t, err)
		var b change.Builder
		b.Closed(4)
		entry := b.Finish(change.GroupID{Term: 1, Number: 1}, change.GroupID{}, 0)
		entry[0] = version
		body := entry[:len(entry)-4]
		entry = binary.LittleEndian.AppendUint32(body, crc.Of(body))
		err = m.Apply([]*pb.Entry{{Index: proto.Uint64(1), Term: proto.Uint64(1), Data: entry}})
		require.Error(t, err)
		if later {
			require.ErrorIs(t, err, replica.ErrLater)
		} else {
			require.NotErrorIs(t, err, replica.ErrLater)
			require.ErrorIs(t, err, change.ErrMalformed)
		}
		require.NoError(t, store.Close())
	}
}

// R4: a state that has what a later version wrote, a value or a row of a kind, is not loaded, and says so. It is no damage,
// for which the store would be set aside. The same rows are refused in a range snapshot.
//
// Capability: Two locations: A folder names its node, stamp and use, and is refused to another one (R4).
// Capability: Two locations: Two versions at once.
func TestR4StateOfALaterVersion(t *testing.T) {
	s := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: 4}
	later := func(b []byte) []byte {
		b[0] += 7
		return b
	}
	record, err := change.AppendRecord(nil, &change.Record{Account: "acct", Epoch: s.Epoch, Range: 4, Seq: 1})
	require.NoError(t, err)
	unknown, _ := keys.Unknown(4)
	for name, c := range map[string]struct {
		key, value []byte
		lazy       bool // read when it is needed
	}{
		"applied":     {key: keys.Applied(4), value: later(change.AppendApplied(nil, change.AppliedState{}))},
		"members":     {key: keys.Members(4), value: later(replica.AppendMembers(nil, replica.FirstMembers([]geo.NodeID{1})))},
		"gate":        {key: keys.Gate(4, "acct"), value: later(change.AppendGate(nil, change.Gate{}))},
		"head":        {key: keys.Head(4, s), value: later(change.AppendOutboxHead(nil, change.OutboxHead{}))},
		"trimmed":     {key: keys.Trimmed(4, s), value: later(change.AppendOutboxHead(nil, change.OutboxHead{}))},
		"closed":      {key: keys.Closed(4), value: later(change.AppendHead(nil, geo.Head{}))},
		"cursor":      {key: keys.Cursor(4, s), value: later(change.AppendCursor(nil, &change.Cursor{}))},
		"received":    {key: keys.Received(4, "south", 4), value: later(change.AppendClosed(nil, &change.Closed{Origin: "south"}))},
		"stop":        {key: keys.Stop(4, s), value: later(change.AppendStop(nil, change.Stop{Reason: change.StopLost}))},
		"stop reason": {key: keys.Stop(4, s), value: change.AppendStop(nil, change.Stop{Reason: 99})},
		"answers":     {key: keys.Answers(4), value: later(change.AppendAnswers(nil, &change.Answers{}))},
		"image":       {key: keys.Image(4, "acct"), value: later(change.AppendImage(nil, change.Image{})), lazy: true},
		"outbox":      {key: keys.Outbox(4, s, 1), value: change.AppendOutboxRow(nil, change.Volume{}, later(record)), lazy: true},
		"a kind":      {key: append(unknown, "of a later version"...)},
	} {
		store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
		require.NoError(t, err)
		b := store.NewBatch()
		require.NoError(t, b.Set(c.key, c.value))
		require.NoError(t, store.Commit(b))
		_, err = OpenMachine(4, store, func(Applied) {}, 1)
		if !c.lazy {
			require.ErrorIs(t, err, feature.ErrLater, name)
			require.False(t, state.Damaged(err), name)
		}
		require.NoError(t, store.Close())
		require.ErrorIs(t, CheckRow(4, c.key, c.value, feature.NewGate(feature.Known)), feature.ErrLater, name)
		if len(c.value) > 0 && name != "stop reason" && name != "outbox" {
			c.value[0] -= 7
			require.NoError(t, CheckRow(4, c.key, c.value, feature.NewGate(feature.Known)), name)
		}
	}
	require.NoError(t, CheckRow(4, keys.AppendService(nil, geo.Table), []byte{99}, feature.NewGate(feature.Known)), "what clients stored")
}

// R4: an entry of a type that this version does not know is not skipped, and a change of the configuration of another form
// costs no replica.
//
// Capability: Two locations: Two versions at once.
func TestR4EntriesOfALaterForm(t *testing.T) {
	store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	m, err := OpenMachine(4, store, func(Applied) {}, 1, 2, 3)
	require.NoError(t, err)
	two, err := proto.Marshal(&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{NodeId: proto.Uint64(1)}, {NodeId: proto.Uint64(2)}}})
	require.NoError(t, err)
	update, err := proto.Marshal(&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeUpdateNode.Enum(), NodeId: proto.Uint64(1)}}})
	require.NoError(t, err)
	r := &Range{o: Options{Range: 4, Levels: feature.NewGate(feature.Known)}}
	for name, e := range map[string]*pb.Entry{
		"a type":       {Type: pb.EntryType(7).Enum(), Data: []byte("x")},
		"another one":  {Type: pb.EntryConfChange.Enum()},
		"two changes":  {Type: pb.EntryConfChangeV2.Enum(), Data: two},
		"another kind": {Type: pb.EntryConfChangeV2.Enum(), Data: update},
	} {
		e.Index, e.Term = proto.Uint64(1), proto.Uint64(1)
		require.ErrorIs(t, m.Apply([]*pb.Entry{e}), replica.ErrLater, name)
		require.False(t, r.Understands(2, []*pb.Entry{e}, 0), name)
	}
	require.Zero(t, m.AppliedState().Index)
	require.True(t, r.Understands(2, []*pb.Entry{{Type: pb.EntryConfChangeV2.Enum(), Data: []byte{0xff}}}, 0), "damage is for Apply")
}
