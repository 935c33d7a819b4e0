package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/seglog"
	"antipode/stamp/stamptest"
	"antipode/stamp/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testRange = geo.RangeID(geo.Table)

// electionWait bounds how long a test waits for a stamp to move.
const electionWait = 10 * time.Second

// put is a command that sets one key under an open gate.
type put struct {
	p     keys.Partition
	value string
	at    geo.Timestamp
}

func (c *put) Evaluate(tx *ranges.Tx) error {
	c.at = tx.Timestamp(0)
	return tx.Change(c.p, change.Record{
		CommitTime: c.at, Partition: c.p.Append(nil),
		Ops: []change.Op{{Row: []byte("r"), Value: []byte(c.value)}},
	})
}

type setGate struct{ g change.Gate }

func (c setGate) Evaluate(tx *ranges.Tx) error {
	tx.SetGate("acct", c.g)
	return nil
}

func partition(i int) keys.Partition {
	return keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: fmt.Sprintf("p%05d", i)}
}

// testStamp returns a started stamp of three nodes on one file system per node. Its leader stays: elections take a second.
func testStamp(t *testing.T, fs func(geo.NodeID) vfs.FS, changes ...func(*Options)) *stamp.Stamp {
	t.Helper()
	s := stamp.New(Options{
		Location: "north", Peers: []geo.NodeID{1, 2, 3}, Dir: "data", Clock: new(clock.Runtime), Transport: memtransport.New(),
		State: state.Options{LogSegmentBytes: 1 << 20},
		Tick:  10 * time.Millisecond, ElectionTicks: 100, Seed: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, append(changes, func(o *Options) { o.State.FS = fs(o.ID) })...)
	for _, id := range s.Nodes() {
		require.NoError(t, s.Start(id))
	}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	gate := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}
	stamptest.Submit(t, s, testRange, setGate{gate})
	return s
}

// At the moment of each acknowledgement (R2, R3; invariant 1) a crash that loses all
// unsynced data of every in-sync replica leaves the write on all three disks: each
// node's folder is cloned at that moment, opened alone, its log replayed, and read.
//
// Capability: The primary location: Three replicas.
func TestAcknowledgedWriteSurvivesOnEveryReplica(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := map[geo.NodeID]*vfs.MemFS{}
		s := testStamp(t, func(id geo.NodeID) vfs.FS {
			mem[id] = vfs.NewCrashableMem()
			return mem[id]
		}, func(o *Options) { o.InSyncTimeout = time.Hour }) // All three stay in sync, however slow one is.
		for i := range 20 {
			cmd := &put{p: partition(i), value: fmt.Sprintf("v%d", i)}
			require.NoError(t, s.Submit(context.Background(), testRange, cmd))
			for id, fs := range mem {
				clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0, RNG: rand.New(rand.NewPCG(1, 2))})
				requireInLog(t, clone, id, cmd)
			}
		}
	})
}

// requireInLog opens the clone of one node's folder and finds cmd's record in the
// log or in the state.
func requireInLog(t *testing.T, fs vfs.FS, id geo.NodeID, cmd *put) {
	t.Helper()
	dir := "data/" + Name("north", id)
	log, err := seglog.Open(dir+"/log", state.Options{FS: fs, ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	rl, err := log.Range(testRange, []uint64{1, 2, 3})
	require.NoError(t, err)
	first, err := rl.FirstIndex()
	require.NoError(t, err)
	last, err := rl.LastIndex()
	require.NoError(t, err)
	entries, err := rl.Entries(first, last+1, 1<<40)
	require.NoError(t, err)
	found := false
	for _, e := range entries {
		if len(e.Data) == 0 {
			continue
		}
		g, err := change.ParseGroup(e.Data)
		require.NoError(t, err)
		require.NoError(t, g.Parts(func(kind change.PartKind, body []byte) error {
			if kind != change.PartChange {
				return nil
			}
			r, err := change.ParseRecord(body)
			found = found || r.CommitTime == cmd.at && string(r.Ops[0].Value) == cmd.value
			return err
		}))
	}
	require.True(t, found, "node %d lost an acknowledged write: log %d..%d", id, first, last)
}

// Writes of many clients are evaluated in groups, every one is acknowledged, commit
// times differ, and all are read back; a stopped node leaves two in sync and rejoins.
func TestStampServesThroughNodeStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fss := map[geo.NodeID]vfs.FS{1: vfs.NewMem(), 2: vfs.NewMem(), 3: vfs.NewMem()}
		s := testStamp(t, func(id geo.NodeID) vfs.FS { return fss[id] })
		write := func(from, to int) {
			var wg sync.WaitGroup
			var mu sync.Mutex
			seen := map[geo.Timestamp]bool{}
			for i := from; i < to; i++ {
				wg.Add(1)
				go func() {
					defer wg.Done()
					cmd := &put{p: partition(i), value: "x"}
					if err := s.Submit(context.Background(), testRange, cmd); err != nil {
						t.Errorf("write %d: %v", i, err)
					}
					mu.Lock()
					defer mu.Unlock()
					if seen[cmd.at] {
						t.Errorf("commit time %s given twice", cmd.at)
					}
					seen[cmd.at] = true
				}()
			}
			wg.Wait()
		}
		write(0, 300)
		var follower geo.NodeID
		for _, id := range s.Nodes() {
			if !s.Node(id).Range(testRange).Leading() {
				follower = id
			}
		}
		require.NoError(t, s.Stop(follower, false))
		write(300, 400)
		require.Equal(t, 2, s.Leader(testRange).InSync())
		require.NoError(t, s.Start(follower))
		require.Eventually(t, func() bool {
			r := s.Leader(testRange)
			return r != nil && r.InSync() == 3
		}, 10*time.Second, 5*time.Millisecond)
		for i := range 400 {
			require.NoError(t, s.Read(context.Background(), testRange, func(st ranges.State) error {
				v, ok, err := st.Get(append(partition(i).Append(nil), 'r'))
				if !ok || string(v) != "x" {
					return errors.Join(err, fmt.Errorf("key %d is missing", i))
				}
				return err
			}))
		}
	})
}
