package snapshot

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/room"
	"antipode/stamp/state"
)

// leaderNode is a Node whose range is led here, with a log of a given length.
type leaderNode struct {
	Node
	log    *logOf
	disk   *disk
	events []string
}

// disk has so many bytes left; if it has a size, which is else not known.
type disk struct {
	vfs.FS
	left, size uint64
}

// full is how much is left on a disk that counts as full, were it full before.
const full = room.ReserveBytes + 512<<20

// GetDiskUsage implements vfs.FS.
func (d *disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	if d.size == 0 {
		return vfs.DiskUsage{}, errors.New("not known")
	}
	return vfs.DiskUsage{AvailBytes: d.left, TotalBytes: d.size}, nil
}

func (n *leaderNode) Log(geo.RangeID) state.RangeLog { return n.log }
func (n *leaderNode) Slowed(_ geo.RangeID, _ geo.ReplicaID, slowed bool, _ string) {
	n.events = append(n.events, map[bool]string{true: "slowed", false: "not slowed"}[slowed])
}

type logOf struct {
	state.RangeLog
	entries, bytes uint64
}

func (l *logOf) Bytes() uint64             { return l.bytes }
func (l *logOf) UpTo(uint64) (_, _ uint64) { return l.entries, l.bytes }

// fed is a Manager that feeds a peer of testRange, and its log.
type fed struct {
	*Manager
	n   *leaderNode
	o   *outgoing
	now time.Duration
}

const budget = 1 << 20

func newFed() *fed {
	n := &leaderNode{log: &logOf{}, disk: &disk{}}
	m := NewManager(context.Background(), Options{
		Node: n, Room: room.New(room.Options{FS: n.disk, ReserveBytes: room.ReserveBytes}), LogBytesMax: budget, Clock: clock.NewManual(time.Unix(1, 0)), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	o := &outgoing{id: testRange, to: 7, phase: sending, pinned: pinned{pin: 5}, cancel: func() {}}
	m.outgoing[testRange] = o
	return &fed{Manager: m, n: n, o: o}
}

// look lets d pass; moved says whether the peer did something meanwhile.
func (f *fed) look(d time.Duration, bytes uint64, moved bool) (pinned bool) {
	f.now += d
	f.n.log.bytes = bytes
	if moved {
		f.o.moved.Add(1)
	}
	f.Manager.look(f.o, f.now)
	_, pinned = f.Pin(testRange)
	return pinned
}

// Writers wait from half of the bound on, longer the fuller it is, a second at most, and in proportion to what they
// write: at the bound the log grows by a part of its budget in a second. All of it shows: in a metric, and as events.
func TestWritersAreSlowedSmoothly(t *testing.T) {
	f := newFed()
	require.Zero(t, f.Slow(testRange+1, 1000), "nothing is sent")
	before := time.Duration(0)
	for part := uint64(1); part <= 40; part++ {
		require.True(t, f.look(time.Second, part*pinFactor*budget/20, true))
		wait := f.Slow(testRange, 1000)
		switch {
		case part <= 10:
			require.Zero(t, wait)
			require.Empty(t, f.n.events)
		case part <= 20:
			require.Greater(t, wait, before)
			require.InDelta(t, float64(wait), float64(f.Slow(testRange, 2000))/2, 2, "twice as many bytes")
		default:
			require.Equal(t, before, wait)
			require.Equal(t, 256*1000*time.Second/budget, wait)
		}
		require.Less(t, wait-before, 100*time.Millisecond)
		before = wait
	}
	require.Equal(t, slowMax, f.Slow(testRange, 1<<30))
	require.InDelta(t, 1, testutil.ToFloat64(f.Manager), 0)
	require.Equal(t, []string{"slowed"}, f.n.events)
	f.unpin(f.o)
	require.Zero(t, f.Slow(testRange, 1000))
	require.Zero(t, testutil.CollectAndCount(f.Manager))
	require.Equal(t, []string{"slowed", "not slowed"}, f.n.events)
}

// A peer that does nothing slows nobody after a while, and has no log kept for it after another while, or as soon as the
// log is at its bound; its stream ends, since it holds a view of the state. One behind the last row goes on.
func TestStalledReceiverLosesItsPin(t *testing.T) {
	const high, over = pinFactor * budget * 3 / 4, pinFactor * budget
	f := newFed()
	canceled := false
	f.o.cancel = func() { canceled = true }
	require.True(t, f.look(time.Second, high, true))
	require.True(t, f.look(slowFor-1, high, false))
	require.NotZero(t, f.Slow(testRange, 1000))
	require.True(t, f.look(measureAfter, high, false))
	require.Zero(t, f.Slow(testRange, 1000))
	require.True(t, f.look(time.Second, high, true), "it goes on")
	require.NotZero(t, f.Slow(testRange, 1000))
	require.True(t, f.look(stalledAfter-1, high, false))
	require.False(t, canceled)
	require.False(t, f.look(measureAfter, high, false))
	require.True(t, canceled)

	f = newFed()
	require.True(t, f.look(time.Second, 2*over, true), "the writers wait")
	require.False(t, f.look(slowFor, over, false), "nobody waits any more, so it would grow")

	f = newFed()
	f.o.cancel = func() { t.Error("it installs") }
	f.o.whole.Store(true)
	require.False(t, f.look(stalledAfter, high, false))
}

// The bound follows the room on the disk, is never less than before there was one, and falls as the disk fills. Without
// room nothing is kept beyond that. Many short entries count, too: each takes memory.
func TestRoomRaisesTheBound(t *testing.T) {
	f := newFed()
	f.n.disk.size = 1 << 40
	for _, c := range []struct {
		free, log uint64
		slowed    bool
		kept      bool
	}{
		{1000 * budget, 100 * budget, false, true},
		{1000 * budget, 200 * budget, true, true},
		{100 * budget, 10 * budget, false, true},
		{100 * budget, 20 * budget, true, true},
		{1, pinFactor * budget, true, true},
		{0, pinFactor * budget, true, true},
		{0, pinFactor*budget + 1, true, false},
	} {
		f.n.disk.left = full + c.free
		require.Equal(t, c.kept, f.look(time.Second, c.log, true), "%+v", c)
		require.Equal(t, c.slowed && c.kept, f.Slow(testRange, 1000) > 0, "%+v", c)
	}
	f = newFed()
	f.n.log.entries = entriesMax * 3 / 4
	require.True(t, f.look(time.Second, 1, true))
	require.NotZero(t, f.Slow(testRange, 1000))
}

// A peer that takes the log at a tenth of the speed of the writers comes in sync, too: they wait more and more. One that
// takes less than the least speed of the writers does not, and has nothing kept for it in the end.
func TestSlowPeerComesInSync(t *testing.T) {
	const step, group = measureAfter, budget / 64
	play := func(peer float64) (took time.Duration, synced bool) {
		f := newFed()
		f.o.phase = following
		f.o.follows(0)
		lacks, match, wait := 3.*budget, 1., time.Duration(0)
		for now := time.Duration(0); now < time.Hour; now += step {
			for ; wait <= 0; wait += step / 20 { // Writers would write 20 groups in a step.
				lacks += group
				wait += f.Slow(testRange, group)
			}
			wait -= step
			taken := min(lacks, peer*step.Seconds())
			if lacks, match = lacks-taken, match+taken; lacks == 0 {
				return now, true
			}
			bound := f.o.follow(now, uint64(match), uint64(lacks), pinFactor*budget)
			f.o.full = lacks / bound
			f.slow(f.o, slowness(f.o.full))
			if now-f.o.progressed >= slowFor && f.o.full >= 1 {
				return now, false
			}
		}
		return time.Hour, false
	}
	took, synced := play(20 * group) // in a second
	require.True(t, synced)
	require.Less(t, took, 40*time.Minute)
	_, synced = play(budget / 1000)
	require.False(t, synced)
}
