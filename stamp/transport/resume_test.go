package transport

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/node"
	"antipode/stamp/snapshot"
)

// heldFragment is the fragment that a holding holds. The receiver has written those that are not in flight.
const heldFragment = 3 * fragmentsInFlight

// holding is a Transport that holds one fragment of its first range snapshot until free is closed.
type holding struct {
	*Transport
	reached, free chan struct{}
	fragments     *atomic.Int64
	// resumed counts streams that went on behind rows that the receiver had.
	resumed *atomic.Int64
}

func (t holding) Snapshot(from, to geo.NodeID, h snapshot.Header) (snapshot.Stream, error) {
	s, err := t.Transport.Snapshot(from, to, h)
	if err != nil || h.Range != testRange {
		return s, err
	}
	if after, keeps := s.Resume(); keeps && len(after) > 0 {
		t.resumed.Add(1)
	}
	return held{s, t}, nil
}

type held struct {
	snapshot.Stream
	t holding
}

func (s held) Send(ctx context.Context, f snapshot.Fragment) error {
	if s.t.fragments.Add(1) == heldFragment {
		close(s.t.reached)
		<-s.t.free
	}
	return s.Stream.Send(ctx, f)
}

// A receiver whose process ends in the middle of a range snapshot, and comes back, goes on where it was, over the network
// too: it is fed by one snapshot.
//
// Capability: Storage on a node: A replica of a range of any size is rebuilt by one snapshot while clients write.
func TestSnapshotGoesOnOverTheNetwork(t *testing.T) {
	t.Parallel()
	reached, free := make(chan struct{}), make(chan struct{})
	var fragments, resumed, sent atomic.Int64
	s := newStamps(t, func(o *node.Options) {
		o.RowChunks, o.LogBytesMax, o.FlushEntries, o.ElectionTicks, o.SnapshotFragmentBytes = chunkRow, 16<<10, 50, 30, 1<<10
		o.Transport = holding{o.Transport.(*Transport), reached, free, &fragments, &resumed}
		o.OnEvent = func(e node.Event) {
			if e.Kind == node.SnapshotSent && e.Range == testRange {
				sent.Add(1)
			}
		}
	})
	s.submit(1, portableGate{})
	away := s.leader()%3 + 1
	s.end(away)
	lead := s.leader()
	for i := range 200 { // Beyond the budget of the log.
		s.submit(lead, &portable{put: put{i}})
	}
	s.start(away)
	<-reached
	s.end(away)
	close(free)
	s.start(away)
	require.Eventually(t, func() bool {
		r := s.by[s.leader()].Leader(testRange)
		return r != nil && r.InSync() == 3
	}, 2*testWait, time.Millisecond)
	require.Eventually(t, func() bool { return sent.Load() > 0 }, testWait, time.Millisecond)
	require.EqualValues(t, 1, resumed.Load())
	require.EqualValues(t, 1, sent.Load())
}
