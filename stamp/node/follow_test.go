package node_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

// rough is a network that loses, doubles, delays and reorders, and cuts single directions.
type rough struct {
	rng   *rand.Rand
	nodes map[geo.NodeID]Member
	cut   map[[2]geo.NodeID]bool
	// calm loses nothing.
	calm bool
	// lose are the messages that are lost, nil for none but those of the network's own accord.
	lose func(Envelope) bool
	way  []func()
}

func (t *rough) Attach(id geo.NodeID, m Member) { t.nodes[id] = m }
func (t *rough) Peer(_, to geo.NodeID) ChunkPeer {
	if n := t.nodes[to]; n != nil {
		return n
	}
	return nil
}

func (t *rough) Send(from, to geo.NodeID, batch []Envelope) {
	for _, e := range batch {
		if t.lose != nil && t.lose(e) {
			continue
		}
		for range 1 + t.rng.IntN(20)/19 {
			e := Envelope{Range: e.Range, From: from, Report: e.Report, Message: proto.CloneOf(e.Message)}
			t.way = append(t.way, func() {
				if !t.cut[[2]geo.NodeID{from, to}] && (t.calm || t.rng.IntN(50) > 0) && t.nodes[to] != nil {
					t.nodes[to].Receive([]Envelope{e})
				}
			})
		}
	}
}

// deliver lets some of what is under way arrive, not always the oldest first.
func (t *rough) deliver(n int) {
	for ; n > 0 && len(t.way) > 0; n-- {
		i := 0
		if !t.calm && t.rng.IntN(4) == 0 {
			i = t.rng.IntN(len(t.way))
		}
		f := t.way[i]
		t.way = append(t.way[:i:i], t.way[i+1:]...)
		f()
	}
}

// increment adds one to the counter of these tests.
type increment struct{ value uint64 }

func counterKey() []byte { return append(partition(0).Append(nil), 'r') }

func (c *increment) Evaluate(tx *ranges.Tx) error {
	v, _, err := tx.Get(counterKey())
	if err != nil {
		return err
	}
	c.value = counterOf(v) + 1
	return tx.Change(partition(0), change.Record{
		CommitTime: tx.Timestamp(0), Partition: partition(0).Append(nil),
		Ops: []change.Op{{Row: []byte("r"), Value: binary.BigEndian.AppendUint64(nil, c.value)}},
	})
}

func counterOf(v []byte) uint64 {
	if len(v) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(v)
}

// stepped is a stamp whose nodes are stepped from one goroutine over a rough network.
type stepped struct {
	t      *testing.T
	rng    *rand.Rand
	clock  *clock.Manual
	net    *rough
	nodes  map[geo.NodeID]*Node
	paused map[geo.NodeID]time.Duration // until when
	clocks map[geo.NodeID]*stopping
	events []Event
	// floor is what a read that begins now must see: acknowledged, or read before.
	floor uint64
	// reads and follower reads that ended well; rounds that were refused.
	reads, followed, refused int
}

func newStepped(t *testing.T, seed uint64) *stepped { return newSteppedWith(t, seed, 10) }

func newSteppedWith(t *testing.T, seed uint64, electionTicks int, change ...func(*Options)) *stepped {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &stepped{
		t: t, rng: rng, clock: clock.NewManual(time.Unix(1_800_000_000, 0)), nodes: map[geo.NodeID]*Node{},
		net:    &rough{rng: rng, nodes: map[geo.NodeID]Member{}, cut: map[[2]geo.NodeID]bool{}, calm: true},
		paused: map[geo.NodeID]time.Duration{}, clocks: map[geo.NodeID]*stopping{},
	}
	for id := geo.NodeID(1); id <= 3; id++ {
		s.clocks[id] = &stopping{Manual: s.clock}
		o := Options{
			Location: "north", ID: id, Peers: []geo.NodeID{1, 2, 3}, Dir: "data", State: state.Options{FS: vfs.NewMem()},
			Clock: s.clocks[id], Transport: s.net, Seed: seed + uint64(id), Tick: 10 * time.Millisecond, ElectionTicks: electionTicks, InSyncTimeout: 100 * time.Millisecond, Stepped: true,
			Logger: slog.New(slog.DiscardHandler), OnEvent: func(e Event) { s.events = append(s.events, e) },
		}
		for _, f := range change {
			f(&o)
		}
		n, err := Open(o)
		require.NoError(t, err)
		s.nodes[id] = n
	}
	t.Cleanup(func() {
		for _, n := range s.nodes {
			require.NoError(t, n.Close(false))
		}
	})
	return s
}

// step lets a moment pass at one node that is not paused.
func (s *stepped) step() {
	s.clock.Advance(time.Duration(s.rng.IntN(1000)) * time.Microsecond)
	s.net.deliver(s.rng.IntN(6))
	id := geo.NodeID(1 + s.rng.IntN(3))
	if s.clock.Mono() >= s.paused[id] {
		_, err := s.nodes[id].Pass()
		require.NoError(s.t, err)
	}
}

// until steps until f holds.
func (s *stepped) until(what string, f func() bool) {
	s.t.Helper()
	for range 100_000 {
		if f() {
			return
		}
		s.step()
	}
	s.t.Fatalf("it never came: %s", what)
}

func (s *stepped) leading() *ranges.Range {
	for id := geo.NodeID(1); id <= 3; id++ {
		if r := s.nodes[id].Range(testRange); r.Leading() && s.rng.IntN(2) == 0 {
			return r
		}
	}
	return nil
}

// write begins an increment at a node that thinks it leads.
func (s *stepped) write() {
	r := s.leading()
	if r == nil {
		return
	}
	cmd := &increment{}
	r.Submit(cmd, func(err error) {
		if err == nil {
			s.floor = max(s.floor, cmd.value)
		}
	})
}

// read begins a read at a node, by lease where it thinks it leads.
func (s *stepped) read(id geo.NodeID) (done *bool) {
	r, floor, ended := s.nodes[id].Range(testRange), s.floor, false
	how, led := r.CatchUp, r.Leading()
	if led {
		how = r.Confirm
	}
	how(func(err error) {
		if err != nil {
			s.refused++
			return
		}
		v, _, err := r.State().Get(counterKey())
		require.NoError(s.t, err)
		got := counterOf(v)
		require.GreaterOrEqual(s.t, got, floor, "stale read at node %d, leading %t", id, led)
		s.floor = max(s.floor, got)
		s.reads++
		if !led {
			s.followed++
		}
		ended = true
	})
	return &ended
}

// R5: no read at any node is ever stale: it sees every write acknowledged before it
// began and everything that another read saw before, while leaders are paused and go on, single
// directions are cut, and messages are lost, doubled and reordered. Once all is well, every
// node serves reads.
func TestR5FollowerReadsAreLinearizable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seeds := uint64(24)
		if testing.Short() {
			seeds = 4
		}
		reads, followed, refused := 0, 0, 0
		for seed := range seeds {
			s := newStepped(t, seed)
			s.until("a leader", func() bool { return s.leading() != nil })
			gate := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}
			opened := false
			s.until("the gate", func() bool {
				if r := s.leading(); r != nil {
					r.Submit(setGate{gate}, func(err error) { opened = opened || err == nil })
				}
				return opened
			})
			s.net.calm = false
			for range 12_000 {
				s.step()
				switch s.rng.IntN(100) {
				case 0, 1, 2, 3:
					s.write()
				case 4, 5, 6, 7, 8, 9:
					s.read(geo.NodeID(1 + s.rng.IntN(3)))
				case 10:
					s.disturb()
				}
			}
			s.net.calm = true
			clear(s.net.cut)
			clear(s.paused)
			for id := geo.NodeID(1); id <= 3; id++ {
				done := s.read(id)
				s.until(fmt.Sprintf("a read at node %d", id), func() bool {
					if !*done && s.rng.IntN(200) == 0 {
						done = s.read(id)
					}
					return *done
				})
			}
			reads, followed, refused = reads+s.reads, followed+s.followed, refused+s.refused
		}
		t.Logf("%d reads, %d of them at followers; %d refused", reads, followed, refused)
		require.Positive(t, refused)
		require.Greater(t, followed, reads/10)
	})
}

// R5: what a read at a follower has shown, the leader shows under its lease. The follower takes each message of the
// leader at once, while the leader is between sending it and applying what it names.
func TestR5LeaderShowsWhatFollowersShowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 1)
		var lead *ranges.Range
		s.until("a leader", func() bool { lead = s.leading(); return lead != nil })
		opened := false
		lead.Submit(setGate{openGate}, func(err error) { opened = err == nil })
		s.until("an open gate", func() bool { return opened })
		at := lead.Leader()
		follower := s.nodes[at%3+1]
		f := follower.Range(testRange)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		shown, under := uint64(0), 0
		s.net.lose = func(e Envelope) bool {
			if e.Message == nil || e.Message.GetTo() != uint64(f.Replica().ID()) || e.Message.GetFrom() != uint64(lead.Replica().ID()) {
				return false
			}
			follower.Receive([]Envelope{{Range: e.Range, From: at, Message: proto.CloneOf(e.Message)}})
			before := shown
			for range 3 {
				_, err := follower.Pass()
				require.NoError(t, err)
			}
			_ = lead.Read(ended, func(st ranges.State) error { // It fails if a lease does not do.
				v, _, err := st.Get(counterKey())
				require.NoError(t, err)
				require.GreaterOrEqual(t, counterOf(v), shown)
				return nil
			})
			if shown > before {
				under++
			}
			return true
		}
		for range 4000 {
			s.step()
			if s.rng.IntN(4) == 0 {
				s.write()
			}
			f.CatchUp(func(err error) {
				if err != nil {
					return
				}
				v, _, err := f.State().Get(counterKey())
				require.NoError(t, err)
				shown = max(shown, counterOf(v))
			})
		}
		require.Greater(t, under, 100, "reads that showed a write while the leader was in its pass")
	})
}

// disturb pauses a node, the leader more often, or cuts a direction, or mends all.
func (s *stepped) disturb() {
	id, other := geo.NodeID(1+s.rng.IntN(3)), geo.NodeID(1+s.rng.IntN(3))
	switch s.rng.IntN(8) {
	case 0, 1:
		if r := s.leading(); r != nil {
			id = r.Leader()
		}
		s.paused[id] = s.clock.Mono() + time.Duration(s.rng.IntN(400))*time.Millisecond
	case 2:
		s.net.cut[[2]geo.NodeID{id, other}] = true
	case 3, 4, 5:
		clear(s.net.cut)
	}
}

// R5: a replica that knows of no leader refuses at once, and one that was removed, or that
// learns, is not answered by the leader and serves nothing.
func TestR5WhoMayNotFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 7)
		refused := 0
		count := func(err error) {
			require.ErrorIs(t, err, ranges.ErrNotLeader)
			refused++
		}
		s.nodes[1].Range(testRange).CatchUp(count)
		_, err := s.nodes[1].Pass()
		require.NoError(t, err)
		require.Equal(t, 1, refused, "no leader is known")

		var lead *ranges.Range
		s.until("a leader", func() bool { lead = s.leading(); return lead != nil })
		away := lead.Leader()%3 + 1
		s.until("it follows", func() bool { return s.nodes[away].Range(testRange).Leader() != 0 })
		// The removal does not reach it: it goes on as if nothing were.
		n := s.nodes[away]
		require.NoError(t, lead.Replica().Remove(n.Range(testRange).Replica().ID()))
		s.until("the removal", func() bool {
			s.net.cut[[2]geo.NodeID{lead.Leader(), away}] = true
			return len(lead.Replica().Members().List) == 2
		})
		delete(s.net.cut, [2]geo.NodeID{lead.Leader(), away})
		own, ok := n.Range(testRange).Replica().Members().On(away)
		require.True(t, ok && !own.Learner, "it does not know")
		served := false
		for range 3000 {
			n.Range(testRange).CatchUp(func(err error) { served = served || err == nil })
			s.step()
			require.False(t, served, "a removed replica answered")
		}
	})
}

// A stamp of three processes with one node each: a read at a process that does not lead sees
// what any process had acknowledged before. Without a leader it is answered as busy within its time.
func TestReadAnywhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net := memtransport.New()
		by := map[geo.NodeID]*stamp.Stamp{}
		for id := geo.NodeID(1); id <= 3; id++ {
			by[id] = stamp.New(Options{
				Location: "north", Peers: []geo.NodeID{1, 2, 3}, Dir: "data", Clock: new(clock.Runtime), Transport: net,
				State: state.Options{FS: vfs.NewMem()}, Tick: 10 * time.Millisecond, Seed: uint64(id),
				Commands: ranges.Commands{"increment": func([]byte) (ranges.Portable, error) { return &portableIncrement{}, nil }},
				Logger:   slog.New(slog.DiscardHandler),
			})
			require.NoError(t, by[id].Start(id))
			defer func() { require.NoError(t, by[id].Close()) }()
		}
		gate := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}
		require.Eventually(t, func() bool {
			for _, s := range by {
				if r := s.Leader(testRange); r != nil {
					done := make(chan error, 1)
					r.Submit(setGate{gate}, func(err error) { done <- err })
					return <-done == nil
				}
			}
			return false
		}, electionWait, time.Millisecond)
		for i := uint64(1); i <= 60; i++ {
			cmd := &portableIncrement{}
			require.NoError(t, by[geo.NodeID(i%3+1)].Submit(t.Context(), testRange, cmd))
			require.Equal(t, i, cmd.value)
			require.NoError(t, by[geo.NodeID(i/3%3+1)].Read(t.Context(), testRange, func(s ranges.State) error {
				v, _, err := s.Get(counterKey())
				require.Equal(t, i, counterOf(v))
				return err
			}))
		}
		for id := geo.NodeID(1); id <= 2; id++ {
			require.NoError(t, by[id].Stop(id, false))
		}
		require.Eventually(t, func() bool { _, ok := by[3].LeaderNode(testRange); return !ok }, electionWait, time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		require.Error(t, by[3].Read(ctx, testRange, func(ranges.State) error { return nil }))
	})
}

type portableIncrement struct{ increment }

func (c *portableIncrement) Kind() string         { return "increment" }
func (c *portableIncrement) Encode() []byte       { return nil }
func (c *portableIncrement) EncodeResult() []byte { return binary.BigEndian.AppendUint64(nil, c.value) }

func (c *portableIncrement) DecodeResult(b []byte) error {
	c.value = counterOf(b)
	return nil
}
