package node_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// readsEverywhere reads at each node until it answers.
func (f *fullStamp) readsEverywhere() {
	f.t.Helper()
	for id := geo.NodeID(1); id <= 3; id++ {
		done := f.read(id)
		f.until(fmt.Sprintf("a read at node %d", id), func() bool {
			if !*done && f.rng.IntN(200) == 0 {
				done = f.read(id)
			}
			return *done
		})
	}
}

// R5: reads need no room. All disks have less than a quarter of the reserve, all at one moment, under writes: reads go
// on at each node. So they do under a new leader, which has to commit an entry of its term first (R1). What takes room
// is refused, and nothing is proposed that no quorum would take: a command that changes nothing is answered. Writes go
// on once there is room, and nothing acknowledged is lost.
func TestR5ReadsNeedNoRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for seed := range seeds(4) {
			f, _ := newFullStamp(t, 770+seed)
			for range 10 {
				require.NoError(t, f.write())
				require.NoError(t, f.submit(&increment{}))
			}
			for range 4 { // They are in flight as the disks fill up.
				f.stepped.write()
			}
			for _, d := range f.disks {
				d.leave(smallReserve/8 - 1<<10)
			}
			f.steps(3 * time.Second)
			f.readsEverywhere()
			for range 3 {
				was := f.leaderOf()
				require.NotZero(t, was)
				f.paused[was] = 1 << 62
				f.until("another leader", func() bool {
					for id, n := range f.nodes {
						if id != was && n.Range(testRange).Leading() {
							return true
						}
					}
					return false
				})
				f.paused[was] = 0
				f.until("one leader", func() bool { return f.leaderOf() != 0 })
				f.readsEverywhere()
				require.ErrorIs(t, f.write(), kv.ErrBusy)
				require.ErrorIs(t, f.submit(deletion{}), kv.ErrBusy)
				require.ErrorIs(t, f.submit(reclaim{}), kv.ErrBusy)
				require.NoError(t, f.submit(probe{}))
			}
			f.noWriteFailed()
			for _, d := range f.disks {
				require.Greater(t, d.left(), int64(smallReserve/16), "three elections and all that was in flight take little")
				d.leave(1 << 40)
			}
			f.until("writes", func() bool { return f.write() == nil })
			f.readsEverywhere()
			f.until("all in sync", func() bool { return len(f.inSync()) == 3 })
		}
	})
}

// probe is a command that never changes anything.
type probe struct{}

func (probe) Evaluate(*ranges.Tx) error { return nil }

func (probe) Probes() {}

// R5: one node alone has next to nothing left. It stands still in other ranges and follows on in the catalog, without
// which no request that reaches it could be answered. What it takes is bounded, however much is written to the catalog.
func TestR5CatalogFollowsOnASpentNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, _ := newFullStamp(t, 790)
		cat := geo.FirstRange(geo.Catalog)
		spent := f.leaderOf()%3 + 1
		f.disks[spent].leave(smallReserve/8 - 1<<10)
		f.steps(3 * time.Second) // Another node leads what it led, of an older term than its last.
		submit := func(cmd ranges.Command) (err error) {
			done := false
			for id := geo.NodeID(1); id <= 3 && !done; id++ {
				if r := f.nodes[id].Range(cat); r.Leading() {
					r.Submit(cmd, func(e error) { err, done = e, true })
					f.until("an answer", func() bool { return done })
				}
			}
			return err
		}
		catchesUp := func() bool {
			var ended bool
			var err error
			f.nodes[spent].Range(cat).CatchUp(func(e error) { ended, err = true, e })
			for began := f.clock.Mono(); !ended && f.clock.Mono()-began < 2*time.Second; {
				f.step()
			}
			return ended && err == nil
		}
		for range 100 {
			require.NoError(t, submit(deletion{}))
		}
		require.True(t, catchesUp())
		at := f.nodes[spent].Range(testRange).Machine.AppliedState().Index
		require.NoError(t, f.write())
		require.Equal(t, at, f.nodes[spent].Range(testRange).Machine.AppliedState().Index)

		before := f.disks[spent].left()
		require.NoError(t, submit(setGate{openGate}))
		for range 40 { // 2.5 MiB, of which its share is 128 KiB.
			require.NoError(t, submit(&big{put{p: partition(1)}, 64 << 10}))
		}
		f.steps(time.Second)
		require.False(t, catchesUp(), "its share is used up")
		require.Greater(t, f.disks[spent].left(), before-int64(smallReserve/16))
		f.noWriteFailed()
	})
}
