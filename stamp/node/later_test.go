package node_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/kv"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// mixedStamp is a stamp some nodes of which run an older version: one that does not know change.PartImage.
type mixedStamp struct {
	*snapStamp
	older [4]atomic.Bool
	// newer is true while all nodes run a later version.
	newer atomic.Bool
	seen  events
	// known are the feature levels that the nodes know; 0 for those of this program.
	known [4]atomic.Uint32
}

func newMixedStamp(t *testing.T, with ...func(*Options)) *mixedStamp {
	t.Helper()
	s := &mixedStamp{snapStamp: &snapStamp{t: t, fss: map[geo.NodeID]vfs.FS{}}}
	s.o = Options{
		Location: "north", Peers: []geo.NodeID{1, 2, 3}, Dir: "data", Clock: new(clock.Runtime), Transport: memtransport.New(),
		Tick: 10 * time.Millisecond, ElectionTicks: 30, Seed: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		InSyncTimeout: 100 * time.Millisecond, RestartAfter: time.Hour, OnEvent: s.seen.takeAll,
		State: state.Options{LogSegmentBytes: 256 << 10},
	}
	for _, f := range with {
		f(&s.o)
	}
	s.Stamp = stamp.New(s.o, func(o *Options) {
		id := o.ID
		o.State.FS = s.fss[id]
		if known := s.known[id].Load(); known != 0 {
			o.Levels = feature.NewGate(feature.Level(known))
		}
		o.Understands = func(entry []byte) error {
			switch {
			case s.newer.Load():
				return nil
			case !s.older[id].Load():
				return change.Understood(entry)
			}
			g, err := change.ParseGroup(entry)
			if err != nil {
				return nil //nolint:nilerr // No group.
			}
			return g.Parts(func(kind change.PartKind, _ []byte) error {
				if kind == change.PartImage {
					return change.ErrVersion
				}
				return nil
			})
		}
	})
	for _, id := range s.Nodes() {
		s.fss[id] = vfs.NewCrashableMem()
		s.start(id)
	}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.submit(setGate{openGate})
	return s
}

// upgrade restarts a node with the version that knows all.
func (s *mixedStamp) upgrade(id geo.NodeID) {
	s.t.Helper()
	require.NoError(s.t, s.Stop(id, false))
	s.older[id].Store(false)
	s.start(id)
}

func (s *mixedStamp) lastIndex(id geo.NodeID) uint64 {
	s.t.Helper()
	last, err := s.Node(id).Log(testRange).LastIndex()
	require.NoError(s.t, err)
	return last
}

// newerImage commits a part that the older version does not know.
type newerImage struct{}

func (newerImage) Evaluate(tx *ranges.Tx) error {
	tx.SetImage("acct", change.Image{Epoch: openGate.Epoch})
	return nil
}

// R1, R4: a node of an older version neither skips an entry that it does not know nor loses its replica for it:
// the replica takes no more entries, says so once, and the two others go on; so do the node's other ranges. After
// the upgrade of the node it holds the same as they do, under the same id.
//
// Capability: Two locations: Two versions at once.
func TestR1LaterEntryWaitsForTheUpgrade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMixedStamp(t)
		s.write(0, 10, "a")
		s.same()
		old := s.follower()
		was := s.replicaOf(old)
		s.older[old].Store(true)
		s.submit(newerImage{})
		s.write(10, 20, "b")
		require.Equal(t, 2, s.Leader(testRange).InSync())
		require.Eventually(t, func() bool { return s.seen.times(LaterVersion, 0) == 1 }, electionWait, time.Millisecond)
		require.Less(t, s.lastIndex(old), s.lastIndex(s.leader()))

		// Another range of the same node.
		const other = geo.RangeID(geo.Blob)
		require.Eventually(t, func() bool { return s.Submit(context.Background(), other, setGate{openGate}) == nil }, electionWait, time.Millisecond)
		require.Eventually(t, func() bool { return s.Node(old).Range(other).Machine.Gate("acct") == openGate }, electionWait, time.Millisecond)

		s.upgrade(old)
		s.write(20, 30, "c")
		s.same()
		require.Equal(t, was, s.replicaOf(old))
		require.Equal(t, 1, s.seen.times(LaterVersion, 0))
	})
}

// R1: an entry that only a minority knows is not committed: no replica that may have to apply it, and to lead
// after it, is without the version. It is committed as soon as a second node is upgraded.
//
// Capability: Two locations: Two versions at once.
func TestR1LaterEntryNeedsAQuorumOfItsVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMixedStamp(t)
		s.write(0, 10, "a")
		s.same()
		lead := s.leader()
		olds := []geo.NodeID{lead%3 + 1, (lead+1)%3 + 1}
		for _, id := range olds {
			s.older[id].Store(true)
		}
		applied := s.Node(lead).Range(testRange).Machine.AppliedState().Index
		done := make(chan error, 1)
		s.Node(lead).Range(testRange).Submit(newerImage{}, func(err error) { done <- err })
		require.Eventually(t, func() bool { return s.seen.times(LaterVersion, 0) == 2 }, electionWait, time.Millisecond)
		require.Equal(t, applied, s.Node(lead).Range(testRange).Machine.AppliedState().Index)
		for _, id := range olds {
			require.Equal(t, applied, s.lastIndex(id))
		}
		s.upgrade(olds[0])
		require.Condition(t, func() bool { err := <-done; return err == nil || errors.Is(err, kv.ErrUnknown) })
		s.submit(newerImage{})
		s.write(10, 20, "b")
		s.upgrade(olds[1])
		s.same()
		require.Empty(t, s.seen.reasons(ReplicaLost))
	})
}

// R4: a node whose log holds an entry that its version does not know, as after a return to an older
// version, stops and names the cause, as often as it is started. Its replica is not lost, nor its log.
//
// Capability: Storage on a node: A range without a quorum is re-formed from its best survivor.
// Capability: Two locations: A folder names its node, stamp and use, and is refused to another one (R4).
// Capability: Two locations: Two versions at once.
func TestR4LaterEntryInTheLogLosesNoReplica(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind change.PartKind
		body []byte
		says string
	}{
		"a part of a later kind":                {99, []byte("of a later version"), "part kind 99"},
		"a change of a later version":           {change.PartChange, later(appendChange(t)), "format version"},
		"a received record of a later version":  {change.PartReceived, later(appendChange(t)), "format version"},
		"the base of a fork of a later version": {change.PartReceivedBase, later(appendChange(t)), "format version"},
		"a gate of a later version":             {change.PartGate, append([]byte("\x04acct"), later(change.AppendGate(nil, openGate))...), "format version"},
		"a closed record of a later version":    {change.PartReceivedClosed, later(change.AppendClosed(nil, &change.Closed{Origin: "south", Range: 4})), "format version"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testLaterEntryInTheLog(t, c.kind, c.body, c.says) })
		})
	}
}

// later gives a value, which begins with its version, that of a later one. The checksum of a record is then wrong: within
// a group that has its own, nobody looks at it.
func later(b []byte) []byte {
	b[0] += 7
	return b
}

func appendChange(t *testing.T) []byte {
	t.Helper()
	b, err := change.AppendRecord(nil, &change.Record{Account: "acct", Epoch: openGate.Epoch, Range: testRange, Seq: 1, CommitTime: 2, Partition: []byte("p")})
	require.NoError(t, err)
	return b
}

func testLaterEntryInTheLog(t *testing.T, kind change.PartKind, body []byte, says string) {
	t.Helper()
	s := newMixedStamp(t)
	s.write(0, 10, "a")
	s.same()
	s.newer.Store(true)
	n := s.Node(s.leader())
	r := n.Range(testRange)
	err := n.Work(t.Context(), func() (refusal, failure error) {
		var b change.Builder
		b.Raw(kind, body)
		_, term := r.Replica().Leader()
		pred := r.Machine.AppliedState().Group
		entry := b.Finish(change.GroupID{Term: term, Number: pred.Number + 1}, pred, 0)
		if change.Understood(entry) == nil {
			return errors.New("the kind is known"), nil
		}
		return nil, r.Replica().Propose(entry)
	})
	if !errors.Is(err, ErrUnreachable) { // The entry may have stopped the node by then.
		require.NoError(t, err)
	}
	failed := 0
	for range 2 { // The last node may not get to know that the entry is committed.
		require.Eventually(t, func() bool { return len(s.seen.reasons(StoreFailed)) > failed }, electionWait, time.Millisecond)
		for _, id := range s.Nodes() {
			require.NoError(t, s.Stop(id, false))
		}
		failed = len(s.seen.reasons(StoreFailed))
		for _, id := range s.Nodes() {
			s.start(id)
		}
	}
	require.Eventually(t, func() bool { return len(s.seen.reasons(StoreFailed)) > failed }, electionWait, time.Millisecond)
	for _, reason := range s.seen.reasons(StoreFailed) {
		require.Contains(t, reason, replica.ErrLater.Error())
		require.Contains(t, reason, says)
	}
	require.Empty(t, s.seen.reasons(ReplicaLost))
}

// reasons are those of the events of a kind.
func (v *events) reasons(kind EventKind) (out []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.list {
		if e.Kind == kind {
			out = append(out, e.Reason)
		}
	}
	return out
}
