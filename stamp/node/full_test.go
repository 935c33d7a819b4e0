package node_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/kv"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
)

// smallDisk is a file system with the capacity that a test sets: a write that does not fit fails with ENOSPC.
type smallDisk struct {
	vfs.FS
	mu             sync.Mutex
	capacity, used int64
	failed         int // writes that did not fit
	// asked counts the questions for its room.
	asked atomic.Int64
}

func newSmallDisk() *smallDisk { return &smallDisk{FS: vfs.NewMem(), capacity: 1 << 40} }

// leave sets the capacity such that so many bytes are free.
func (d *smallDisk) leave(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = d.used + bytes
}

func (d *smallDisk) left() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(0, d.capacity-d.used)
}

// take takes bytes of the disk, or gives them back.
func (d *smallDisk) take(bytes int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bytes > 0 && d.used+bytes > d.capacity {
		d.failed++
		return syscall.ENOSPC
	}
	d.used += bytes
	return nil
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	d.asked.Add(1)
	return vfs.DiskUsage{AvailBytes: uint64(d.left()), TotalBytes: 1 << 40}, nil
}

func (d *smallDisk) size(name string) int64 {
	info, err := d.Stat(name)
	if err != nil || info.IsDir() {
		return 0
	}
	return info.Size()
}

func (d *smallDisk) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &smallFile{File: f, d: d}, nil
}

func (d *smallDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	was := d.size(name)
	f, err := d.FS.Create(name, c)
	if err == nil {
		_ = d.take(-was)
	}
	return d.wrap(f, err)
}

func (d *smallDisk) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.wrap(d.FS.OpenReadWrite(name, c, opts...))
}

func (d *smallDisk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.wrap(d.FS.ReuseForWrite(from, to, c))
}

func (d *smallDisk) Remove(name string) error {
	was := d.size(name)
	err := d.FS.Remove(name)
	if err == nil {
		_ = d.take(-was)
	}
	return err
}

func (d *smallDisk) Rename(from, to string) error {
	was := d.size(to)
	err := d.FS.Rename(from, to)
	if err == nil {
		_ = d.take(-was)
	}
	return err
}

// smallFile is a file of a smallDisk. Writes at the end of what is written so far are from one goroutine.
type smallFile struct {
	vfs.File
	d  *smallDisk
	at int64
}

func (f *smallFile) grow(to int64) error {
	info, err := f.Stat()
	if err == nil && to > info.Size() {
		err = f.d.take(to - info.Size())
	}
	return err
}

func (f *smallFile) Write(p []byte) (int, error) {
	if err := f.grow(f.at + int64(len(p))); err != nil {
		return 0, err
	}
	n, err := f.File.Write(p)
	f.at += int64(n)
	return n, err
}

func (f *smallFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.grow(at + int64(len(p))); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

const (
	// smallReserve is the reserve of the nodes of a fullStamp: it holds some hundred of its writes, and a quarter of it what
	// a compaction of all their rows writes beside what it reads, full memtables, and what is in flight to a node (4 MiB).
	smallReserve = 64 << 20
	smallWrite   = smallReserve / 256
)

// fullStamp is a stepped stamp on small disks.
type fullStamp struct {
	*stepped
	disks map[geo.NodeID]*smallDisk
	// acked are the increments that were acknowledged, busy those that were refused.
	acked, busy int
	// waited is the longest that one waited for its answer.
	waited time.Duration
}

func newFullStamp(t *testing.T, seed uint64) (*fullStamp, *ranges.Range) {
	f := &fullStamp{disks: map[geo.NodeID]*smallDisk{}}
	f.stepped = newSteppedWith(t, seed, 50, func(o *Options) {
		f.disks[o.ID] = newSmallDisk()
		o.State.FS, o.ReserveBytes, o.InSyncTimeout = f.disks[o.ID], smallReserve, time.Second
		// A segment has the proportion that it has to the default reserve. A memtable has a quarter of it, since the flushes and
		// compactions of Pebble come in the machine's time: on a busy one more of them wait than ever would for a disk.
		o.State.StateMemTableBytes, o.State.LogSegmentBytes = smallReserve/128, smallReserve/8
	})
	lead := f.whole()
	for range 2000 { // 1 s: all are settled.
		f.step()
	}
	return f, lead
}

// big is a write of some bytes.
type big struct {
	put
	size int
}

func (c *big) Evaluate(tx *ranges.Tx) error {
	c.value = string(bytes.Repeat([]byte{byte(tx.Timestamp(0))}, c.size))
	return c.put.Evaluate(tx)
}

// write submits a write of smallWrite bytes at the leader, and steps until it is answered. It leaves the row of counterKey.
func (f *fullStamp) write() (err error) {
	f.t.Helper()
	answered, began := false, f.clock.Mono()
	f.until("an answer", func() bool {
		if !answered {
			if r := f.leading(); r != nil && r.Leading() {
				answered = true
				done := false
				r.Submit(&big{put{p: partition(1 + f.rng.IntN(20))}, smallWrite}, func(e error) { err, done = e, true })
				f.until("the end of a write", func() bool { return done })
			}
		}
		return answered
	})
	switch {
	case err == nil:
		f.acked++
		if f.acked%8 == 0 { // Pebble does it in the machine's time: on a busy one the log would wait for it in that of the test.
			for _, n := range f.nodes {
				require.NoError(f.t, n.FlushState())
			}
		}
		f.waited = max(f.waited, f.clock.Mono()-began)
	case errors.Is(err, kv.ErrBusy):
		f.busy++
	}
	return err
}

func (f *fullStamp) inSync() []geo.NodeID {
	r := f.leading()
	for r == nil {
		f.step()
		r = f.leading()
	}
	return slices.Sorted(slices.Values(r.Replica().InSyncNodes()))
}

func (f *fullStamp) noWriteFailed() {
	f.t.Helper()
	for id, d := range f.disks {
		require.Zero(f.t, d.failed, "writes that did not fit on the disk of node %d", id)
	}
}

// R2: a follower whose disk fills up leaves the in-sync set before a write of its stores fails, and without any write of
// clients having to wait for it. It stays up and votes, and returns by itself once there is room.
//
// Capability: Storage on a node: A disk that is nearly full.
func TestR2FullFollowerLeavesInTime(t *testing.T) {
	t.Parallel()
	for seed := range seeds(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, lead := newFullStamp(t, 700+seed)
				full := lead.Leader()%3 + 1
				require.NoError(t, f.write())
				f.disks[full].leave(smallReserve + 1<<20)
				f.waited = 0
				for range 300 { // More than is left there.
					require.NoError(t, f.write())
				}
				require.NotContains(t, f.inSync(), full)
				require.Less(t, f.waited, 500*time.Millisecond, "no write waits for the replica to time out")
				f.noWriteFailed()
				require.Positive(t, f.disks[full].left())
				require.True(t, f.nodes[full].Room().Full())
				require.NoError(t, f.nodes[full].Failed())

				f.disks[full].leave(1 << 40)
				f.until("it is in sync", func() bool { return len(f.inSync()) == 3 })
				require.NoError(t, f.write())
				at := lead.Machine.AppliedState().Index
				f.until("it has it all", func() bool { return f.nodes[full].Range(testRange).Machine.AppliedState().Index >= at })
				f.noWriteFailed()
			})
		})
	}
}

// submit runs a command at the leader, and steps until it is answered.
func (f *fullStamp) submit(cmd ranges.Command) (err error) {
	f.t.Helper()
	for {
		r := f.leading()
		for r == nil {
			f.step()
			r = f.leading()
		}
		done := false
		r.Submit(cmd, func(e error) { err, done = e, true })
		f.until("an answer", func() bool { return done })
		if !errors.Is(err, ranges.ErrNotLeader) {
			return err
		}
		f.step()
	}
}

// steps steps for a while.
func (f *fullStamp) steps(d time.Duration) {
	for began := f.clock.Mono(); f.clock.Mono()-began < d; {
		f.step()
	}
}

// transfers counts the questions of leaders to others to lead the range, because of their disks.
func (f *fullStamp) transfers() (n int) {
	for _, e := range f.events {
		if e.Kind == LeaderTransferred && e.Range == testRange {
			require.Contains(f.t, e.Reason, "disk")
			n++
		}
	}
	return n
}

// R2: where one replica alone has room, the others stay in sync: writes are refused, and deletions and what makes room
// are taken, by all of them. With room on one more the range goes on without the third.
//
// Capability: Storage on a node: A disk that is nearly full.
func TestR2TwoFullDisksRefuseWrites(t *testing.T) {
	t.Parallel()
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprintf("leader full %t", leads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, lead := newFullStamp(t, 710)
				one := lead.Leader()%3 + 1
				other := 6 - one - lead.Leader()
				if leads {
					other = lead.Leader()
				}
				f.disks[one].leave(smallReserve - 1<<20)
				f.disks[other].leave(smallReserve - 1<<20)
				f.until("refusals", func() bool { return f.write() != nil })
				require.Equal(t, []geo.NodeID{1, 2, 3}, f.inSync())
				require.True(t, lead.NoRoom())
				for range 50 {
					require.ErrorIs(t, f.write(), kv.ErrBusy)
					require.NoError(t, f.submit(reclaim{}))
					require.NoError(t, f.submit(deletion{}))
					f.steps(20 * time.Millisecond)
				}
				require.Len(t, f.inSync(), 3)
				f.disks[one].leave(smallReserve/2 - 1<<20)
				f.until("half of the reserve", func() bool { return f.submit(deletion{}) != nil })
				require.ErrorIs(t, f.submit(deletion{}), kv.ErrBusy)
				require.NoError(t, f.submit(reclaim{}))
				require.Zero(t, f.transfers(), "nobody could take writes")

				f.disks[one].leave(1 << 40)
				f.until("writes", func() bool { return f.write() == nil })
				f.steps(2 * time.Second)
				require.NotContains(t, f.inSync(), other)
				require.NoError(t, f.write())
				f.noWriteFailed()
			})
		})
	}
}

// A leader whose disk is nearly full has a node with room lead: no outcome is unknown, and writes go on. It happens
// once, and leadership stays there when the first has room again.
//
// Capability: Storage on a node: A disk that is nearly full.
func TestR2FullLeaderIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for seed := range seeds(4) {
			f, lead := newFullStamp(t, 720+seed)
			was := lead.Leader()
			f.disks[was].leave(smallReserve - 1<<20)
			began := f.clock.Mono()
			for f.leaderOf() == was || f.leaderOf() == 0 {
				if r := f.leading(); r != nil {
					r.Submit(&increment{}, func(err error) { require.NotErrorIs(t, err, kv.ErrUnknown) })
				}
				f.step()
			}
			require.Less(t, f.clock.Mono()-began, 500*time.Millisecond, "an election timeout")
			for range 100 {
				require.NoError(t, f.write())
			}
			require.NotContains(t, f.inSync(), was)
			now := f.leaderOf()
			f.disks[was].leave(1 << 40)
			f.until("it is in sync", func() bool { return len(f.inSync()) == 3 })
			f.steps(15 * time.Second)
			require.Equal(t, now, f.leaderOf())
			require.Equal(t, 1, f.transfers())
			f.noWriteFailed()
		}
	})
}

// R2: a replica that left for want of room is needed again when another one dies: it returns, full as it is, and the
// range takes what a full disk takes. It leaves again once the other one is back.
func TestR2FullFollowerIsNeededAgain(t *testing.T) {
	f, lead := newFullStamp(t, 730)
	full := lead.Leader()%3 + 1
	third := 6 - full - lead.Leader()
	f.disks[full].leave(smallReserve - 1<<20)
	f.until("it left", func() bool { _ = f.write(); return !slices.Contains(f.inSync(), full) })
	require.NoError(t, f.write())
	f.paused[third] = 1 << 62
	f.until("it is back", func() bool { _ = f.submit(deletion{}); return slices.Contains(f.inSync(), full) })
	f.until("the third is out", func() bool { _ = f.submit(deletion{}); return !slices.Contains(f.inSync(), third) })
	require.NoError(t, f.submit(deletion{}))
	require.ErrorIs(t, f.write(), kv.ErrBusy)
	f.paused[third] = 0
	f.until("writes", func() bool { return f.write() == nil })
	require.NotContains(t, f.inSync(), full)
	f.noWriteFailed()
}

// A follower that has hardly anything left takes no entries, whatever its leader sends; it votes, and does not fail.
func TestSpentFollowerStandsStill(t *testing.T) {
	f, lead := newFullStamp(t, 740)
	was := lead.Leader()
	spent := was%3 + 1
	f.disks[spent].leave(smallReserve/4 - 1<<20)
	f.steps(100 * time.Millisecond)
	at := f.nodes[spent].Range(testRange).Machine.AppliedState().Index
	for range 20 {
		require.NoError(t, f.write())
	}
	require.Equal(t, at, f.nodes[spent].Range(testRange).Machine.AppliedState().Index)
	f.paused[was] = 1 << 62
	f.until("another leader, by its vote", func() bool {
		r := f.nodes[6-was-spent].Range(testRange)
		return r.Replica().IsLeader()
	})
	f.paused[was] = 0
	f.until("writes", func() bool { return f.write() == nil })
	f.noWriteFailed()
}

// R2, R5: while disks fill up and are emptied, nodes pause, directions are cut and messages lost, no acknowledged write is
// lost, no read is stale, and no write of a store fails. With room for all of them the replicas come together again.
func TestR2FullDisksUnderFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		acked, moved, left := 0, 0, 0
		for seed := range seeds(12) {
			f, _ := newFullStamp(t, 750+seed)
			f.net.calm = false
			for range 6_000 {
				f.step()
				switch f.rng.IntN(100) {
				case 0, 1, 2, 3:
					f.stepped.write()
				case 4, 5, 6:
					f.read(geo.NodeID(1 + f.rng.IntN(3)))
				case 7:
					if f.rng.IntN(4) == 0 {
						f.disturb()
					}
				case 8:
					if f.rng.IntN(4) == 0 {
						free := []int64{smallReserve / 5, smallReserve / 3, smallReserve - 1<<20, 1 << 40, 1 << 40}
						f.disks[geo.NodeID(1+f.rng.IntN(3))].leave(free[f.rng.IntN(len(free))])
					}
				}
			}
			f.net.calm = true
			clear(f.net.cut)
			clear(f.paused)
			for _, d := range f.disks {
				d.leave(1 << 40)
			}
			f.until("all in sync", func() bool { return len(f.inSync()) == 3 })
			f.until("a write", func() bool { return f.submit(&increment{}) == nil })
			for id := geo.NodeID(1); id <= 3; id++ {
				done := f.read(id)
				f.until("a read", func() bool {
					if !*done && f.rng.IntN(200) == 0 {
						done = f.read(id)
					}
					return *done
				})
			}
			f.noWriteFailed()
			acked += int(f.floor)
			for _, e := range f.events {
				if e.Kind == LeaderTransferred {
					moved++
				}
				if e.Kind == LeftInSync && e.Reason == "its disk is nearly full; writes go on with the others" {
					left++
				}
			}
		}
		fmt.Printf("%d acknowledged, %d transfers, %d left for want of room\n", acked, moved, left)
		require.Positive(t, moved)
		require.Positive(t, left)
		require.Greater(t, acked, 10*int(seeds(12)))
	})
}
