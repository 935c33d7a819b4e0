package ranges

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"antipode/internal/crc"
	"antipode/stamp/change"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// R4: an entry of a later version stops the node, which an upgrade mends. One of a version that never was, whose
// checksum is right, is damaged like any other that cannot be decoded: no upgrade mends it, so that it costs the
// replica and not its node, with all other ranges.
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
