package transport

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// received is a command that takes a closed record of the other location, with the head of
// a stream that nothing came of.
type received struct{}

func (received) closed() *change.Closed {
	return &change.Closed{
		Origin: "south", Range: testRange, Full: true, T: 1000,
		Heads: []change.StreamHead{{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "south"}, Lane: 3, Seq: 7}},
	}
}

func (c received) Evaluate(tx *ranges.Tx) error {
	tx.TakeClosed(c.closed())
	return nil
}
func (received) Kind() string              { return "test.closed" }
func (received) Encode() []byte            { return nil }
func (received) EncodeResult() []byte      { return nil }
func (received) DecodeResult([]byte) error { return nil }

// Over the network a node without a replica of a range forwards commands to its leader. It puts
// chunks where the range is and reads them there. It knows what the range has received of the other
// location as its replicas do. So it goes on when the leader ends.
//
// Capability: Storage on a node: Fault and upgrade domains.
func TestNodesWithoutReplica(t *testing.T) {
	s := newStampsOf(t, 5, func(o *node.Options) { o.RowChunks = chunkRow })
	s.submit(1, portableGate{})
	s.submit(1, received{})
	src := geo.SourceRange{Origin: "south", Range: testRange}
	closed := received{}.closed()
	behind := map[geo.Stream]geo.Seq{closed.Stream(closed.Heads[0]): 7}
	row := 0
	everywhere := func() {
		t.Helper()
		for id, stamp := range s.by {
			s.submit(id, &portable{put: put{row}})
			row++
			got, err := stamp.Progress(t.Context(), testRange, src, "acct")
			require.NoError(t, err)
			require.Equal(t, geo.Timestamp(1000), got.Closed)
			require.Equal(t, behind, got.Behind())
			require.Eventually(t, func() bool {
				p, ok := stamp.ProgressNow(testRange, src, "acct")
				return ok && maps.Equal(behind, p.Behind())
			}, testWait, time.Millisecond)
			data := bytes.Repeat([]byte{byte(row)}, 100_000)
			ref := extent.NewRef(extent.ChunkID{byte(row)}, data)
			require.NoError(t, stamp.PutChunk(t.Context(), ref, data))
			for at, other := range s.by {
				_, err := other.ReadChunk(ref, 0, make([]byte, len(data)))
				require.NoError(t, err, "node %d", at)
			}
		}
	}
	without := 0
	for id, stamp := range s.by {
		if stamp.Node(id).Range(testRange) == nil {
			without++
		}
	}
	require.Equal(t, 2, without)
	everywhere()
	lead := s.leader()
	s.end(lead)
	everywhere()
	s.start(lead)
	everywhere()
	r := s.by[s.leader()].Leader(testRange)
	require.NoError(t, r.Read(t.Context(), func(st ranges.State) error {
		for i := range row {
			_, ok, err := st.Get(append(put{i}.partition().Append(nil), 'r'))
			require.True(t, ok, "row %d", i)
			if err != nil {
				return err
			}
		}
		return nil
	}))
}
