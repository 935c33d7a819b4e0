package room_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/durable"
	"antipode/stamp/room"
)

const reserve = room.ReserveBytes

// world is the Watch of node 1, its disk, and what it said.
type world struct {
	vfs.FS
	w      *room.Watch
	left   uint64
	absent bool // the file system does not report its space
	sent   []string
	events []string
}

func (d *world) GetDiskUsage(string) (vfs.DiskUsage, error) {
	if d.absent {
		return vfs.DiskUsage{}, vfs.ErrUnsupported
	}
	return vfs.DiskUsage{AvailBytes: d.left, TotalBytes: 1 << 40}, nil
}

func newWorld() *world {
	d := &world{FS: vfs.NewMem(), left: 1 << 40}
	d.w = d.open()
	return d
}

func (d *world) open() *room.Watch {
	return room.New(room.Options{
		FS: d, Dir: "node", ReserveBytes: reserve, Node: 1, Peers: []geo.NodeID{1, 2, 3},
		Send:    func(to geo.NodeID, l room.Level) { d.sent = append(d.sent, fmt.Sprint(to, " ", l)) },
		Changed: func(full bool, reason string) { d.events = append(d.events, fmt.Sprint(full, ": ", reason)) },
		Removed: func(reason string) { d.events = append(d.events, reason) },
		Logger:  slog.New(slog.DiscardHandler),
	})
}

// A disk is full below its reserve, until 512 MiB above that are free. Each change is one event, whatever lies between.
func TestLevels(t *testing.T) {
	d := newWorld()
	for _, c := range []struct {
		left   uint64
		want   room.Level
		events int
	}{
		{reserve, room.Plenty, 0},
		{reserve - 1, room.Full, 1},
		{reserve + 512<<20 - 1, room.Full, 1},
		{reserve / 2, room.Full, 1},
		{reserve/2 - 1, room.Bare, 1},
		{reserve / 4, room.Bare, 1},
		{reserve/4 - 1, room.Spent, 1},
		{0, room.Spent, 1},
		{reserve / 3, room.Bare, 1},
		{reserve, room.Full, 1},
		{reserve + 512<<20, room.Plenty, 2},
		{reserve + 1, room.Plenty, 2},
		{0, room.Spent, 3},
		{1 << 40, room.Plenty, 4},
	} {
		d.left = c.left
		d.w.Check()
		require.Equal(t, c.want, d.w.Level(), "%d bytes left", c.left)
		require.Equal(t, c.want != room.Plenty, d.w.Full())
		require.Len(t, d.events, c.events, "%d bytes left", c.left)
		require.Equal(t, c.left >= reserve/4, room.Opens(d, "node", reserve), "a node opens its stores with what a level leaves it")
	}
	d.absent, d.left = true, 0
	d.w.Check()
	require.Equal(t, room.Plenty, d.w.Level(), "nothing is known")
	require.True(t, room.Opens(d, "node", reserve))
}

// Bytes that a full disk is asked to take count twice until the next look, so that no burst takes the room of
// what makes room.
func TestExpected(t *testing.T) {
	d := newWorld()
	d.w.Check()
	d.w.Expect(1 << 40)
	require.Equal(t, room.Plenty, d.w.Level(), "the reserve is for bursts")
	d.left = reserve - 1
	d.w.Check()
	d.w.Expect(reserve/4 - 1)
	require.Equal(t, room.Full, d.w.Level())
	d.w.Expect(1)
	require.Equal(t, room.Bare, d.w.Level())
	d.w.Expect(1 << 40)
	require.Equal(t, room.Spent, d.w.Level())
	d.w.Check()
	require.Equal(t, room.Full, d.w.Level(), "what the disk reports counts")
	d.w.Expect(0)
	require.Equal(t, room.Full, d.w.Level())
	require.Len(t, d.events, 1)
	d.left = 1 << 40
	d.w.Check()
	require.Equal(t, room.Plenty, d.w.Level())
}

// While its disk is full a node reports to its peers every tick, and once that it has room. A report holds for 20 ticks;
// a level of a later version counts as the worst.
func TestReports(t *testing.T) {
	d := newWorld()
	d.w.Tick()
	require.Empty(t, d.sent)
	d.left = reserve / 3
	for range 4 {
		d.w.Tick()
	}
	require.Equal(t, "2 2,3 2,2 2,3 2,2 2,3 2", strings.Join(d.sent, ","), "it looks at its disk every second tick")
	d.left, d.sent = 1<<40, nil
	for range 4 {
		d.w.Tick()
	}
	require.Equal(t, "2 2,3 2,2 0,3 0", strings.Join(d.sent, ","))

	d.w.Take(2, room.Full)
	d.w.Take(3, 17)
	for range 20 {
		require.Equal(t, room.Full, d.w.Of(2))
		require.Equal(t, room.Spent, d.w.Of(3))
		d.w.Tick()
	}
	d.w.Take(3, room.Plenty)
	d.w.Tick()
	require.Equal(t, room.Plenty, d.w.Of(2), "it is silent")
	require.Equal(t, room.Plenty, d.w.Of(3), "it has room")
	require.Equal(t, room.Plenty, d.w.Of(1))
	d.left = 0
	d.w.Check()
	require.Equal(t, room.Spent, d.w.Of(1), "of itself it knows")
}

// setAside sets a store of some bytes aside.
func (d *world) setAside(t *testing.T, store string, at int64, recoveries uint64) {
	t.Helper()
	dir := "node/" + store
	require.NoError(t, durable.MkdirAll(d, dir))
	require.NoError(t, durable.Write(d, dir, "data", make([]byte, 1000)))
	aside, err := room.SetAside(d, dir, time.Unix(0, at), recoveries)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%s.damaged-%d", dir, at), aside)
	left, err := d.List(dir)
	require.NoError(t, err)
	require.Empty(t, left, "an empty folder in its place")
}

// drop lets the node look at what is set aside until it was done.
func (d *world) drop(whole bool, recoveries uint64) {
	for range 200 {
		d.w.Tick()
		d.w.DropAside(func() bool { return whole }, func() uint64 { return recoveries }, func(f func()) { f() })
	}
}

func (d *world) asides(t *testing.T) (out []string) {
	names, err := d.List("node")
	require.NoError(t, err)
	for _, name := range names {
		if _, at, ok := strings.Cut(name, ".damaged-"); ok {
			out = append(out, name[:1]+at)
		}
	}
	return out
}

// Once all replicas are whole the newest store of each kind stays that was set aside, and on a full disk none. While one
// is not, nothing is removed; nor what was set aside before a range was re-formed with loss.
func TestAsideIsBounded(t *testing.T) {
	d := newWorld()
	for i, store := range []string{"state", "log", "state", "state", "log"} {
		d.setAside(t, store, int64(90+10*i), 5)
	}
	require.NoError(t, d.MkdirAll("node/state.damaged-operator", 0o755))
	d.w = d.open()
	require.NoError(t, d.w.FindAside())
	require.EqualValues(t, 5*1001, d.w.AsideBytes())
	d.left = 0
	d.drop(false, 5)
	d.drop(true, 6)
	require.ElementsMatch(t, []string{"s90", "l100", "s110", "s120", "l130", "soperator"}, d.asides(t))
	d.left, d.events = 1<<40, nil
	d.drop(true, 5)
	require.ElementsMatch(t, []string{"s120", "l130", "soperator"}, d.asides(t), "by time, not by name")
	require.EqualValues(t, 2*1001, d.w.AsideBytes())
	require.Equal(t, "false: 1099511627776 bytes left,state.damaged-90, 1001 bytes,log.damaged-100, 1001 bytes,state.damaged-110, 1001 bytes",
		strings.Join(d.events, ","))
	d.left = reserve - 1
	d.drop(true, 5)
	require.Equal(t, []string{"soperator"}, d.asides(t))
	require.Zero(t, d.w.AsideBytes())
}

// A store that is set aside on a disk that takes nothing counts as from before any recovery.
func TestSetAsideOnAFullDisk(t *testing.T) {
	d := newWorld()
	require.NoError(t, durable.MkdirAll(d, "node/log"))
	_, err := room.SetAside(noCreate{d.FS}, "node/log", time.Unix(0, 7), 3)
	require.NoError(t, err)
	require.NoError(t, d.w.FindAside())
	d.left = 0
	d.drop(true, 3)
	require.Equal(t, []string{"l7"}, d.asides(t))
}

type noCreate struct{ vfs.FS }

func (noCreate) Create(string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, fmt.Errorf("no space left on device")
}

// Damage is recorded once for each store, and marks their folders.
func TestDamage(t *testing.T) {
	d := newWorld()
	var damage room.Damage
	require.NoError(t, damage.Err())
	require.True(t, damage.Add("state", fmt.Errorf("a bit")))
	require.False(t, damage.Add("state", fmt.Errorf("another")))
	require.ErrorContains(t, damage.Err(), "a bit")
	require.Error(t, damage.Mark(d, "node"), "there is no such folder")
	require.NoError(t, d.MkdirAll("node/state", 0o755))
	require.NoError(t, damage.Mark(d, "node"))
}

// Using all that is beside the reserve leaves a disk that counts as having room.
func TestSpare(t *testing.T) {
	d := newWorld()
	w := d.open()
	d.left = 5 * reserve
	spare, known := w.Spare()
	require.True(t, known)
	d.left -= spare
	w.Check()
	require.Equal(t, room.Plenty, w.Level())
	spare, _ = w.Spare()
	require.Zero(t, spare)
	for left, want := range map[uint64]uint64{reserve / 2: 0, reserve + 512<<20: 0, reserve + 512<<20 + 7: 7} {
		d.left = left
		spare, _ = w.Spare()
		require.Equal(t, want, spare, left)
	}
	d.absent = true
	_, known = w.Spare()
	require.False(t, known)
}

// The disk is tight, for the bus, before it is full: with less than a quarter of the reserve beside the reserve, until
// half of it is there, and as long as this disk or that of a peer is full.
func TestTight(t *testing.T) {
	d := newWorld()
	for _, c := range []struct {
		left uint64
		want bool
	}{
		{1 << 40, false},
		{reserve + reserve/4, false},
		{reserve + reserve/4 - 1, true},
		{reserve + reserve/2 - 1, true},
		{reserve + reserve/2, false},
		{reserve - 1, true},
		{reserve + 512<<20 - 1, true},
		{reserve + 512<<20, false},
	} {
		d.left = c.left
		d.w.Check()
		require.Equal(t, c.want, d.w.Tight(), "%d bytes left", c.left)
	}
	d.w.Take(2, room.Full)
	require.True(t, d.w.Tight())
	d.w.Take(2, room.Plenty)
	require.False(t, d.w.Tight())
}
