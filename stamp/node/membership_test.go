package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/kv"
	"antipode/stamp/membership"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
)

// witness is a transport that fails the test when a replica speaks in Raft that must not.
type witness struct {
	*memtransport.Transport
	mu     sync.Mutex
	silent map[geo.ReplicaID]bool
	spoke  []string
}

func (w *witness) Send(from, to geo.NodeID, batch []Envelope) {
	w.mu.Lock()
	for _, e := range batch {
		if m := e.Message; e.Range == testRange && m != nil && w.silent[replica.From(m)] {
			w.spoke = append(w.spoke, fmt.Sprintf("%s of replica %d", m.GetType(), m.GetFrom()))
		}
	}
	w.mu.Unlock()
	w.Transport.Send(from, to, batch)
}

func (w *witness) silence(id geo.ReplicaID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent[id] = true
}

// events collects the kinds of the events of testRange.
type events struct {
	mu   sync.Mutex
	list []Event
}

func (v *events) take(e Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Range == testRange {
		v.list = append(v.list, e)
	}
}

// takeAll takes the events of nodes and stores too.
func (v *events) takeAll(e Event) {
	if e.Range == 0 {
		e.Range = testRange
	}
	v.take(e)
}

func (v *events) has(kind EventKind, id geo.ReplicaID) bool { return v.times(kind, id) > 0 }

func (v *events) times(kind EventKind, id geo.ReplicaID) (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.list {
		if e.Kind == kind && e.Replica == id {
			n++
		}
	}
	return n
}

// replicaOf returns the id of the voter on a node in the leader's configuration, zero if there is none.
func (s *snapStamp) replicaOf(id geo.NodeID) geo.ReplicaID {
	lead := s.Leader(testRange)
	if lead == nil {
		return 0
	}
	if m, ok := lead.Machine.Members().On(id); ok && !m.Learner {
		return m.ID
	}
	return 0
}

// R4: a replica that lost what it had fsynced, in whatever way, never takes part again
// under its id, and comes back by itself under another one, with all data, while writes go on.
// It happens three times: to a follower, to the leader, and to the same node again.
// It holds invariant 5.
//
// Capability: Storage on a node: A lost replica is rebuilt under a new id, without an operator.
func TestLostReplicaIsRebuilt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		lose func(t *testing.T, fs vfs.FS, dir string)
	}{
		{"folder gone", func(t *testing.T, fs vfs.FS, dir string) { require.NoError(t, fs.RemoveAll(dir)) }},
		{"log gone", func(t *testing.T, fs vfs.FS, dir string) { require.NoError(t, fs.RemoveAll(dir+"/log")) }},
		{"state gone", func(t *testing.T, fs vfs.FS, dir string) { require.NoError(t, fs.RemoveAll(dir+"/state")) }},
		{"log and state gone", func(t *testing.T, fs vfs.FS, dir string) {
			require.NoError(t, fs.RemoveAll(dir+"/log"))
			require.NoError(t, fs.RemoveAll(dir+"/state"))
		}},
		{"state damaged", func(t *testing.T, fs vfs.FS, dir string) { damage(t, fs, dir+"/state", "MANIFEST") }},
		{"log damaged", func(t *testing.T, fs vfs.FS, dir string) { damage(t, fs, dir+"/log", "0") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &witness{Transport: memtransport.New(), silent: map[geo.ReplicaID]bool{}}
				var seen events
				s := newSnapStamp(t, w, func(o *Options) { o.OnEvent = seen.take })
				s.write(0, 60, "a") // Beyond the log budget: the logs begin above index 1.
				s.dropLog(5)
				next := geo.ReplicaID(4)
				id := geo.NodeID(0)
				again := func() geo.NodeID { return id } // Its newest id is not its number any more.
				for _, pick := range []func() geo.NodeID{s.follower, func() geo.NodeID { return s.follower()%3 + 1 }, again} {
					id = pick()
					old := s.replicaOf(id)
					require.NotZero(t, old)
					rebuilt := seen.times(ReplicaRebuilding, old)
					require.NoError(t, s.Stop(id, false))
					c.lose(t, s.fss[id], "data/"+Name("north", id))
					w.silence(old)
					s.start(id)
					s.write(int(next)*100, int(next)*100+30, "b")
					require.Eventually(t, func() bool { return s.replicaOf(id) == next }, 3*electionWait, time.Millisecond)
					require.True(t, seen.has(ReplicaLost, old))
					require.True(t, seen.has(ReplicaRebuilding, next))
					require.Equal(t, rebuilt, seen.times(ReplicaRebuilding, old), "a second rebuild under the id that it had")
					s.same()
					require.Empty(t, w.spoke)
					requireNothingStaged(t, s, id)
					next++
				}
				for i := range 60 {
					require.NoError(t, s.Read(context.Background(), testRange, func(st ranges.State) error {
						v, ok, err := st.Get(append(partition(i).Append(nil), 'r'))
						require.True(t, ok && strings.HasPrefix(string(v), "a"), "row %d", i)
						return err
					}))
				}
			})
		})
	}
}

// R4: only a leader reports the last replica id to a node whose folder is new. A follower may be behind
// and report an id under which the node took part.
func TestFollowerDoesNotReportLastID(t *testing.T) {
	transport := &lone{peers: map[geo.NodeID]ChunkPeer{}}
	n := loneNode(t, transport, func(f func()) { f() })
	n.Receive([]Envelope{{Range: testRange, From: 2, Report: membership.LossReport{Nonce: 7}}})
	work(t, n)
	require.NotZero(t, n.Range(testRange).Machine.Members().Next, "it has a last id to report")
	for _, e := range transport.sent {
		_, reported := e.Report.(membership.LastID)
		require.False(t, reported)
	}
}

// R4: a replica whose log ends below its durable state, as after the disk of the log went back to what it had been, is
// lost. Its log stays as it is, however far its peers are: the other ranges of the node go on, and a recovery with loss
// has what is left.
func TestR4LogOfALostReplicaIsNotTrimmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), func(o *Options) { o.LogBytesMax, o.FlushEntries = 1<<30, 1<<30 })
		id := s.follower()
		dir := "data/" + Name("north", id)
		fs := s.fss[id]
		s.write(0, 30, "a")
		s.same()
		require.NoError(t, s.Stop(id, false))
		_, err := vfs.Clone(fs, fs, dir+"/log", "former")
		require.NoError(t, err)
		s.start(id)
		s.write(30, 60, "b")
		s.same()
		require.NoError(t, s.Node(id).State().Flush())
		require.NoError(t, s.Stop(id, false))
		require.NoError(t, fs.RemoveAll(dir+"/log"))
		_, err = vfs.Clone(fs, fs, "former", dir+"/log")
		require.NoError(t, err)

		o := s.o
		o.ID, o.Dir, o.State.FS, o.Transport = id, dir, fs, memtransport.New()
		o.LogBytesMax = logBytes // What is left of the log is above it.
		n, err := Open(o)
		require.NoError(t, err)
		defer func() { require.NoError(t, n.Close(false)) }()
		r := n.Range(testRange)
		require.ErrorIs(t, r.Replica().Lost(), replica.ErrLost)
		last, err := n.Log(testRange).LastIndex()
		require.NoError(t, err)
		durable, err := r.Machine.DurableIndex()
		require.NoError(t, err)
		require.Less(t, last, durable)
		require.Greater(t, n.Log(testRange).Bytes(), uint64(logBytes))
		entries, _ := n.Log(testRange).UpTo(last)
		for from := id%3 + 1; from != id; from = from%3 + 1 {
			n.Receive([]Envelope{{Range: testRange, From: from, Report: membership.DurableIndex{Index: durable}}})
		}
		_, err = n.Pass()
		require.NoError(t, err)
		left, _ := n.Log(testRange).UpTo(last)
		require.Equal(t, entries, left)
	})
}

// damage overwrites the middle of the files of a folder that begin with name.
func damage(t *testing.T, fs vfs.FS, dir, name string) {
	t.Helper()
	list, err := fs.List(dir)
	require.NoError(t, err)
	for _, file := range list {
		if !strings.HasPrefix(file, name) {
			continue
		}
		f, err := fs.Open(dir + "/" + file)
		require.NoError(t, err)
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		used := len(bytes.TrimRight(b, "\x00")) // A segment has zeros taken ahead.
		for i := used / 2; i < used/2+8; i++ {
			b[i] ^= 0x55
		}
		g, err := fs.Create(dir+"/"+file, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = g.Write(b)
		require.NoError(t, err)
		require.NoError(t, g.Sync())
		require.NoError(t, g.Close())
	}
}

// Without a quorum of trusted replicas nothing is rebuilt and nobody leads: requests
// get the busy answer. When a trusted one returns, both come back.
// It holds invariant 5.
//
// Capability: Storage on a node: A lost replica is rebuilt under a new id, without an operator.
func TestNoQuorumOfTrustedReplicas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), nil)
		s.write(0, 40, "a")
		s.dropLog(5)
		kept := s.follower()
		trusted, wiped := kept%3+1, (kept+1)%3+1
		for _, id := range s.Nodes() {
			require.NoError(t, s.Stop(id, true))
		}
		require.NoError(t, s.fss[wiped].RemoveAll("data/"+Name("north", wiped)))
		s.start(kept)
		s.start(wiped)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.Submit(ctx, testRange, &put{p: partition(1), value: "x"}), kv.ErrBusy)
		require.Nil(t, s.Leader(testRange))
		require.Zero(t, s.Node(wiped).Range(testRange).Machine.AppliedState().Index)
		s.start(trusted)
		require.Eventually(t, func() bool { return s.replicaOf(wiped) == 4 }, 3*electionWait, time.Millisecond)
		s.same()
	})
}

// Nodes of a new stamp wait for each other: two empty ones of three elect nobody, since
// the third may hold what was acknowledged.
func TestNewStampWaitsForAllNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := memtransport.New()
		s := newSnapStamp(t, memory, nil)
		require.NoError(t, s.Stop(3, true))
		for _, id := range []geo.NodeID{1, 2} {
			require.NoError(t, s.Stop(id, true))
			require.NoError(t, s.fss[id].RemoveAll("data"))
			s.start(id)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, s.Submit(ctx, testRange, setGate{openGate}), kv.ErrBusy)
		s.start(3)
		// Both were lost: one trusted replica is no quorum.
		require.Eventually(t, func() bool {
			return s.Node(1).Range(testRange).View().Lost != nil && s.Node(2).Range(testRange).View().Lost != nil
		}, electionWait, time.Millisecond)
		require.Nil(t, s.Leader(testRange))
	})
}

// A crash at any sync while a replica is rebuilt leaves one that is lost under its old id
// or whole under the new one: it never votes under the old one, and comes back.
// It holds invariant 5.
func TestCrashWhileRebuilding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &witness{Transport: memtransport.New(), silent: map[geo.ReplicaID]bool{}}
		s := newSnapStamp(t, w, nil)
		s.write(0, 40, "a")
		s.dropLog(5)
		id := s.follower()
		require.NoError(t, s.Stop(id, true))
		mem := s.fss[id].(*vfs.MemFS)
		require.NoError(t, mem.RemoveAll("data/"+Name("north", id)+"/log"))
		folder, err := mem.OpenDir("data/" + Name("north", id))
		require.NoError(t, err)
		require.NoError(t, errors.Join(folder.Sync(), folder.Close())) // Else a crash before the next one brings the log back.
		w.silence(replica.FirstID(id))
		rec := &recordingFS{FS: mem, mem: mem}
		s.fss[id] = rec
		s.start(id)
		s.same()
		require.NoError(t, s.Stop(id, false))
		clones := rec.take()
		require.Greater(t, len(clones), 10)
		step := 1
		if testing.Short() {
			step = 5
		}
		for i := 0; i < len(clones); i += step {
			o := s.o
			o.ID, o.Dir, o.State.FS, o.Transport = id, "data/"+Name("north", id), clones[i], w
			n, err := Open(o)
			require.NoError(t, err)
			if rep := n.Range(testRange).Replica(); rep.ID() == replica.FirstID(id) {
				require.Error(t, rep.Lost(), "crash %d", i)
			} else {
				require.EqualValues(t, 4, rep.ID())
				require.NoError(t, rep.Lost(), "crash %d", i)
				require.Equal(t, membership.Member, n.Identity(testRange).Phase)
			}
			require.NoError(t, n.Close(false))
		}
		s.fss[id] = clones[len(clones)/2]
		s.start(id)
		s.same()
		require.Empty(t, w.spoke)
	})
}
