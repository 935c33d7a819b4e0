package node_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/snapshot"
)

// steered is a transport whose range snapshots to the node away a test watches, holds and cuts: see steer.
type steered struct {
	*memtransport.Transport
	// early: the ends do not know what they have of a stream before, as in an earlier version.
	early bool

	mu     sync.Mutex
	away   geo.NodeID
	before func(fragment int) error
	hold   func() bool
	// streams has what each stream was resumed with, sources of which view it was, bytes the rows that were sent, events
	// what nodes reported.
	streams   []string
	sources   []uint64
	fragments int
	bytes     int
	events    []EventKind
	sent      bool
}

// steer begins to watch what goes to a node. before is called before each fragment, with its number among all, and may
// end the stream. hold reports, once all rows were sent, whether appends are kept from the node; it may be nil.
func (t *steered) steer(away geo.NodeID, before func(fragment int) error, hold func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.away, t.before, t.hold = away, before, hold
}

func (t *steered) Send(from, to geo.NodeID, batch []Envelope) {
	t.mu.Lock()
	holds := t.sent && to == t.away && t.hold != nil && t.hold()
	t.mu.Unlock()
	if holds {
		batch = slices.DeleteFunc(slices.Clone(batch), func(e Envelope) bool { return e.Range == testRange && e.Message.GetType() == pb.MsgApp })
	}
	t.Transport.Send(from, to, batch)
}

func (t *steered) Snapshot(from, to geo.NodeID, h snapshot.Header) (snapshot.Stream, error) {
	source := h.Source
	if t.early {
		h.Source = 0
	}
	s, err := t.Transport.Snapshot(from, to, h)
	if err != nil {
		return nil, err
	}
	after, _ := s.Resume()
	t.mu.Lock()
	defer t.mu.Unlock()
	if to != t.away {
		return s, nil
	}
	t.streams, t.sources = append(t.streams, string(after)), append(t.sources, source)
	return &steeredStream{s, t}, nil
}

func (t *steered) onEvent(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Range == testRange && e.Node == t.away {
		t.events = append(t.events, e.Kind)
	}
}

// count returns how often a kind was reported.
func (t *steered) count(kind EventKind) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.events {
		if k == kind {
			n++
		}
	}
	return n
}

type steeredStream struct {
	snapshot.Stream
	t *steered
}

func (s *steeredStream) Send(ctx context.Context, f snapshot.Fragment) error {
	s.t.mu.Lock()
	n := s.t.fragments
	s.t.fragments++
	s.t.mu.Unlock()
	if err := s.t.before(n); err != nil {
		return err
	}
	s.t.mu.Lock()
	s.t.bytes += len(f.Rows)
	s.t.mu.Unlock()
	return s.Stream.Send(ctx, f)
}

func (s *steeredStream) Finish(ctx context.Context, progressed func()) error {
	s.t.mu.Lock()
	s.t.sent = true
	s.t.mu.Unlock()
	return s.Stream.Finish(ctx, progressed)
}

// longRows is how many rows of 100 KiB fill makes: some MiB, with the outbox twice as much.
const longRows = 30

// fill stops a follower and writes until the log does not reach back to it.
func (s *snapStamp) fill() (away geo.NodeID) {
	s.t.Helper()
	away = s.follower()
	require.NoError(s.t, s.Stop(away, true))
	for i := range longRows {
		s.submit(&put{p: partition(i), value: strings.Repeat(fmt.Sprint(i%10), 100<<10)})
	}
	at := s.Leader(testRange).Machine.AppliedState().Index
	s.write(100, 150, "a")
	s.dropLog(at)
	return away
}

// A range much larger than the budget of its log is rebuilt by one snapshot while clients write: their writes wait once
// the log is at its bound, but do not stop, and go beyond what the log would have kept. What makes room does not wait, and
// nobody waits before or after. What the peer lacks when it has the snapshot is kept until it is in sync. The operator
// sees it.
//
// Capability: Storage on a node: A replica of a range of any size is rebuilt by one snapshot while clients write.
func TestLargeRangeIsRebuiltUnderLoad(t *testing.T) {
	const writers = 32
	reg := prometheus.NewPedanticRegistry()
	slowed := func() int {
		n, err := testutil.GatherAndCount(reg, "antipode_writes_slowed")
		require.NoError(t, err)
		return n
	}
	transport := &steered{Transport: memtransport.New()}
	s := newSnapStamp(t, transport, func(o *Options) { o.OnEvent, o.Registerer = transport.onEvent, reg })
	var written atomic.Int64
	var grown atomic.Uint64 // the longest log while the snapshot was sent
	var followed atomic.Bool
	before := func(n int) error {
		began := written.Load()
		enough := func() bool {
			if lead := s.leader(); lead != 0 {
				grown.Store(max(grown.Load(), s.Node(lead).LogBytes(testRange)))
			}
			return transport.count(WritesSlowed) > 0 && written.Load() >= began+writers
		}
		if n < 4 { // The peer is slow.
			assert.Eventually(t, enough, electionWait, time.Millisecond)
		} else {
			followed.Store(true)
		}
		return nil
	}
	began := int64(-1)
	hold := func() bool { // It is slow to take what was written since, too.
		if began < 0 {
			began = written.Load()
		}
		return written.Load() < began+2*logBytes/1000
	}
	away := s.fill()
	require.Zero(t, slowed())
	require.Zero(t, transport.count(WritesSlowed))

	transport.steer(away, before, hold)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var load sync.WaitGroup
	for w := range writers {
		load.Go(func() {
			for ctx.Err() == nil && (w < 2 || !followed.Load()) { // Few are no faster than a replica in sync.
				if s.Submit(context.Background(), testRange, &put{p: partition(1000 + w), value: strings.Repeat("w", 1000)}) == nil {
					written.Add(1)
				}
			}
		})
	}
	s.start(away)
	require.Eventually(t, func() bool { return transport.count(WritesSlowed) > 0 }, electionWait, time.Millisecond)
	require.Equal(t, 1, slowed())
	s.submit(reclaim{})
	require.Eventually(t, func() bool { r := s.Leader(testRange); return r != nil && r.InSync() == 3 }, 3*electionWait, time.Millisecond)
	cancel()
	require.LessOrEqual(t, transport.count(SnapshotSent), 1) // The peer is in sync before the leader has its answer.
	transport.mu.Lock()
	require.Len(t, transport.streams, 1)
	transport.mu.Unlock()
	load.Wait()
	s.same()
	require.Eventually(t, func() bool { return transport.count(WritesNotSlowed) == 1 && slowed() == 0 }, electionWait, time.Millisecond)
	require.Greater(t, grown.Load(), uint64(4*logBytes), "the log that the peer needed was longer than any fixed budget")
}

// A snapshot whose link is cut goes on behind the rows that the peer has, over a restart of the peer, too: one snapshot,
// and hardly more bytes than without. What was overwritten meanwhile is as it was in its rows, and comes by the log. If
// the peer lost what it had, or is of an earlier version, all begins again, with another view.
//
// Capability: Storage on a node: A replica of a range of any size is rebuilt by one snapshot while clients write.
func TestCutSnapshotGoesOn(t *testing.T) {
	for name, meanwhile := range map[string]func(s *snapStamp, away geo.NodeID){
		"link":  func(*snapStamp, geo.NodeID) {},
		"early": func(*snapStamp, geo.NodeID) {},
		"restart": func(s *snapStamp, away geo.NodeID) {
			require.NoError(t, s.Stop(away, false))
			s.start(away)
		},
		"lost": func(s *snapStamp, away geo.NodeID) {
			require.NoError(t, s.Stop(away, false))
			require.NoError(t, s.fss[away].RemoveAll(fmt.Sprintf("data/%s/snap/r%d", Name("north", away), testRange)))
			s.start(away)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				transport := &steered{Transport: memtransport.New(), early: name == "early"}
				s := newSnapStamp(t, transport, func(o *Options) { o.OnEvent = transport.onEvent })
				away := s.fill()
				cut := transport.cuts(away)
				var whole int
				for _, row := range rowsOf(t, s.Node(s.leader()).State(), testRange) {
					whole += (len(row) - 1) / 2
				}
				s.start(away)
				<-cut
				meanwhile(s, away)
				s.write(0, 5, "b")
				s.same()
				require.Eventually(t, func() bool { return transport.count(SnapshotSent) > 0 }, electionWait, time.Millisecond)
				require.Equal(t, 1, transport.count(SnapshotSent))
				transport.mu.Lock()
				defer transport.mu.Unlock()
				require.Empty(t, transport.streams[0])
				last := len(transport.streams) - 1
				if name == "lost" || name == "early" {
					require.NotEqual(t, transport.sources[0], transport.sources[last])
					require.Empty(t, transport.streams[last])
				} else {
					require.Len(t, transport.streams, 2)
					require.Equal(t, transport.sources[0], transport.sources[last])
					require.NotEmpty(t, transport.streams[last], "it began again")
					require.Less(t, transport.bytes, whole+whole/8, "bytes sent of %d", whole)
				}
				requireNothingStaged(t, s, away)
			})
		})
	}
}

// cuts has the stream to a node break off before its fourth fragment; what it returns is closed then.
func (t *steered) cuts(away geo.NodeID) <-chan struct{} {
	cut := make(chan struct{})
	t.steer(away, func(n int) error {
		if n == 3 {
			close(cut)
			return errCut
		}
		return nil
	}, nil)
	return cut
}

// Another leader begins again: what the peer has of the former one's view is not gone on with.
//
// Capability: Storage on a node: A replica of a range of any size is rebuilt by one snapshot while clients write.
func TestCutSnapshotOfAnotherLeaderBeginsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := &steered{Transport: memtransport.New()}
		s := newSnapStamp(t, transport, func(o *Options) { o.OnEvent = transport.onEvent })
		away := s.fill()
		cut := transport.cuts(away)
		former := s.leader()
		s.start(away)
		<-cut
		require.NoError(t, s.Stop(former, false))
		s.write(0, 5, "b")
		s.start(former)
		s.same()
		transport.mu.Lock()
		defer transport.mu.Unlock()
		require.GreaterOrEqual(t, len(transport.streams), 2)
		require.False(t, slices.ContainsFunc(transport.streams, func(after string) bool { return after != "" }), "%q", transport.streams)
	})
}
