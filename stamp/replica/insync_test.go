package replica

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/room"
)

// R2, DESIGN 2.3: a replica leaves the in-sync set only after it stood behind one
// index for longer than the timeout; it returns when it keeps up, also under a load
// in which nobody is ever seen at the end of the log; with fewer than two nothing is
// acknowledged.
// It holds invariant 1.
func TestInSyncSet(t *testing.T) {
	s := &inSync{}
	var moves []string
	s.init(Options{InSyncTimeout: time.Second, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	s.configure(FirstMembers([]geo.NodeID{1, 2, 3}))
	s.moved = func(n geo.NodeID, in bool) { moves = append(moves, fmt.Sprint(n, in)) }
	now := time.Duration(0)
	step := func(after time.Duration, match ...uint64) {
		now += after
		for i := range s.peers {
			s.peers[i].match = match[i]
		}
		s.decide(now, now)
	}
	step(0, 10, 10, 10)
	require.Equal(t, 3, s.count())
	require.EqualValues(t, 10, s.index())

	step(time.Millisecond, 20, 20, 10) // 3 falls silent
	require.EqualValues(t, 10, s.index(), "a silent replica still counts: not acknowledged")
	step(900*time.Millisecond, 30, 30, 10)
	require.Equal(t, 3, s.count())
	step(200*time.Millisecond, 40, 40, 10)
	require.Equal(t, 2, s.count(), "silent for longer than the timeout")
	require.EqualValues(t, 40, s.index())

	step(time.Second, 50, 50, 25) // it catches up from far behind
	require.Equal(t, 2, s.count())
	step(600*time.Millisecond, 60, 60, 55) // reaches 50 after more than half the timeout
	require.Equal(t, 2, s.count())
	step(10*time.Millisecond, 70, 70, 65) // reaches 60 at once, never the very end
	require.Equal(t, 3, s.count(), "it keeps up")
	require.EqualValues(t, 65, s.index())

	step(time.Millisecond, 80, 65, 65)
	step(1100*time.Millisecond, 90, 65, 65)
	require.Equal(t, 1, s.count())
	require.Zero(t, s.index(), "never fewer than two")
	require.Equal(t, []string{"3 false", "3 true", "2 false", "3 false"}, moves, "each step is reported once")
	require.Equal(t, now, s.peers[1].since, "since it left")
}

// A replica that is slow and stays in sync shows for how long it lacked what the leader had, while it does and
// until it was faster; one that keeps up shows no more than that takes.
func TestInSyncTook(t *testing.T) {
	s := &inSync{}
	s.init(Options{InSyncTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	s.configure(FirstMembers([]geo.NodeID{1, 2, 3}))
	now := time.Second
	step := func(after time.Duration, match ...uint64) {
		now += after
		for i := range s.peers {
			s.peers[i].match = match[i]
		}
		s.decide(now, now)
	}
	took := func() (out [3]time.Duration) {
		for i, p := range s.peers {
			out[i] = p.took
		}
		return out
	}
	step(0, 10, 10, 10)
	require.Zero(t, took())
	step(0, 20, 10, 10)
	step(5*time.Millisecond, 20, 20, 10)
	step(2*time.Second, 30, 20, 10)
	require.Equal(t, [3]time.Duration{0, 5 * time.Millisecond, 2005 * time.Millisecond}, took(), "it still lacks it")
	step(0, 30, 30, 30)
	require.Equal(t, [3]time.Duration{0, 0, 2005 * time.Millisecond}, took(), "it has it now")
	step(0, 40, 40, 30)
	step(time.Second, 50, 50, 40)
	require.Equal(t, time.Second, took()[2], "faster this time")
	step(3*time.Millisecond, 50, 50, 50)
	require.Equal(t, 3*time.Millisecond, took()[2])
}

// A new leader counts its predecessor out as soon as that was silent for the timeout, its
// silence before the election included; a replica of which nothing is known has all of it,
// and so has a predecessor that answers.
func TestInSyncPredecessor(t *testing.T) {
	s := &inSync{}
	s.init(Options{InSyncTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)})
	s.configure(FirstMembers([]geo.NodeID{1, 2, 3}))
	step := func(now time.Duration, match ...uint64) {
		for i := range s.peers {
			s.peers[i].match = match[i]
		}
		s.decide(now, now)
	}
	s.reset(1, 8800*time.Millisecond)
	step(9700*time.Millisecond, 0, 10, 0)
	step(9800*time.Millisecond, 0, 11, 11)
	require.Equal(t, 3, s.count())
	require.Zero(t, s.index(), "it still counts")
	step(9801*time.Millisecond, 0, 11, 11)
	require.Equal(t, 2, s.count())
	require.EqualValues(t, 11, s.index())
	step(9802*time.Millisecond, 0, 12, 11)
	step(10802*time.Millisecond, 0, 12, 11)
	require.Equal(t, 2, s.count(), "the third has the whole timeout")

	s.reset(1, 20*time.Second)
	step(30*time.Second, 0, 20, 20)
	step(30*time.Second, 20, 20, 20)
	require.Equal(t, 3, s.count(), "it answers at once")
	step(31*time.Second, 20, 21, 21)
	step(31900*time.Millisecond, 20, 21, 21)
	require.Equal(t, 3, s.count(), "it answered, so its silence is over")
}

// A replica whose node is not reachable has a fifth of the timeout.
func TestInSyncUnreachable(t *testing.T) {
	s := &inSync{}
	away := map[geo.NodeID]bool{}
	s.init(Options{
		InSyncTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
		Reachable: func(n geo.NodeID) bool { return !away[n] },
	})
	s.configure(FirstMembers([]geo.NodeID{1, 2, 3}))
	step := func(now time.Duration) {
		s.peers[0].match = 10
		s.decide(now, now)
	}
	away[2] = true
	step(time.Second)
	step(1200 * time.Millisecond)
	require.Equal(t, 3, s.count(), "its connection may come back")
	step(1201 * time.Millisecond)
	require.Equal(t, 2, s.count())
	away[3] = true
	step(1202 * time.Millisecond)
	require.Equal(t, 1, s.count(), "nobody is left to acknowledge")
}

// R2: only the replica of a clone acknowledges what it alone has.
func TestInSyncAlone(t *testing.T) {
	for _, alone := range []bool{false, true} {
		s := &inSync{}
		s.init(Options{Alone: alone, Logger: slog.New(slog.DiscardHandler)})
		s.configure(FirstMembers([]geo.NodeID{1}))
		s.peers[0].match = 7
		s.decide(1, 1)
		want := uint64(0)
		if alone {
			want = 7
		}
		require.Equal(t, want, s.index())
	}
}

// R2: a replica whose disk is nearly full leaves the in-sync set at once, and stays away however well it keeps up, while
// two others have room; where they are fewer it counts, and comes back. A leader does not leave by itself.
//
// Capability: Storage on a node: A disk that is nearly full.
func TestInSyncRoom(t *testing.T) {
	levels := map[geo.NodeID]room.Level{}
	s, moves := &inSync{}, 0
	s.init(Options{
		ID: 1, InSyncTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
		Room:     func(n geo.NodeID) room.Level { return levels[n] },
		OnInSync: func(geo.NodeID, bool) { moves++ },
	})
	s.configure(FirstMembers([]geo.NodeID{1, 2, 3}))
	now, last := time.Second, uint64(0)
	// step lets time pass in which all but the silent keep up, and returns who is in sync.
	step := func(silent ...geo.NodeID) (in []geo.NodeID) {
		for range 3 {
			now, last = now+600*time.Millisecond, last+10
			for i := range s.peers {
				if p := &s.peers[i]; !slices.Contains(silent, p.node) {
					p.match = last
				}
			}
			s.decide(now, now)
		}
		for _, p := range s.peers {
			if !p.out {
				in = append(in, p.node)
			}
		}
		return in
	}
	require.Equal(t, []geo.NodeID{1, 2, 3}, step())
	levels[2] = room.Full
	s.decide(now, now)
	require.True(t, s.peers[1].out, "at once")
	require.Equal(t, []geo.NodeID{1, 3}, step())
	require.Equal(t, 1, moves, "it does not come and go")
	levels[3] = room.Bare
	require.Equal(t, []geo.NodeID{1, 2, 3}, step(), "nobody is to spare")
	levels[2] = room.Plenty
	require.Equal(t, []geo.NodeID{1, 2}, step())
	require.Equal(t, []geo.NodeID{1, 3}, step(2), "the full one is needed again")
	require.Equal(t, []geo.NodeID{1, 2}, step())
	levels[1], levels[3] = room.Full, room.Plenty
	require.Equal(t, []geo.NodeID{1, 2, 3}, step(), "it leads")
	levels[2] = room.Spent
	require.Equal(t, []geo.NodeID{1, 2, 3}, step())
}
